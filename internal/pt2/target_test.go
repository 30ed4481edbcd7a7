package pt2

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestCheckTarget(t *testing.T) {
	here := Target{Devices: []string{"cpu"}, OS: "linux", Arch: "amd64", Features: map[string]bool{"AVX2": true}}
	for _, tc := range []struct {
		name, metadata string
		change         func(*tiny)
		extra          []file
		want           string
		missing        []string
	}{
		{"fits", `{"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64", "AOTI_CPU_ISA": "AVX2"}`, nil, nil, "", nil},
		{"scalar code", `{"AOTI_CPU_ISA": "INVALID_VEC_ISA"}`, nil, nil, "", nil},
		{"nothing said", `{}`, nil, nil, "", nil},
		{"device", `{"AOTI_DEVICE_KEY": "cuda"}`, nil, nil, "compiled for device cuda, this process has cpu", []string{"cuda"}},
		{"platform", `{"AOTI_PLATFORM": "darwin"}`, nil, nil, "compiled for platform darwin, this process has linux", nil},
		{"machine", `{"AOTI_MACHINE": "aarch64"}`, nil, nil, "compiled for machine aarch64, this process has amd64", nil},
		{"the library's machine", `{}`, func(o *tiny) { o.machine = elf.EM_AARCH64 }, nil, "compiled for machine EM_AARCH64", nil},
		{"features", `{"AOTI_CPU_ISA": "AVX512 AVX512_VNNI AMX_TILE"}`, nil, nil,
			"compiled for CPU feature AVX512 AVX512_VNNI AMX_TILE, this process has AVX2; missing: AVX512, AVX512_VNNI, AMX_TILE",
			[]string{"AVX512", "AVX512_VNNI", "AMX_TILE"}},
		{"a feature that is not known", `{"AOTI_CPU_ISA": "AVX1024"}`, nil, nil, "missing: AVX1024", []string{"AVX1024"}},
	} {
		o := tinyModel()
		if tc.change != nil {
			tc.change(&o)
		}
		p := mustOpen(t, []file{
			{name: "data/aotinductor/model/x.so", data: string(o.build())},
			{name: "data/aotinductor/model/x_metadata.json", data: tc.metadata},
		})
		m, err := p.Model("")
		if err != nil {
			t.Fatal(err)
		}
		err = m.CheckTarget(here)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		var te *TargetError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), tc.want) || !slices.Equal(te.Missing, tc.missing) || te.Model != "model" {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestCheckTargetMac(t *testing.T) {
	p := mustOpen(t, []file{{name: "data/aotinductor/model/x.dylib", data: "x"}, {name: "data/aotinductor/model/x.cpp", data: "x"}})
	var te *TargetError
	if err := p.Models()[0].CheckTarget(Target{OS: "linux", Arch: "amd64"}); !errors.As(err, &te) || !strings.Contains(err.Error(), "x.dylib") {
		t.Errorf("got %v", err)
	}
}

func TestHostTarget(t *testing.T) {
	h := HostTarget()
	if h.Arch == "amd64" && h.Features["AVX512"] && !h.Features["AVX2"] {
		t.Errorf("features %v", h.Features)
	}
	if !slices.Contains(h.Devices, "cpu") {
		t.Errorf("devices %v", h.Devices)
	}
}

func TestInspect(t *testing.T) {
	files := append(modern(), file{
		name: "m/data/aotinductor/model/x.wrapper.json",
		data: `{"nodes": [{"name": "a", "node": {"target": "aten::foo"}}, {"name": "b", "node": {"target": "aten::foo"}}]}`,
	})
	r, err := mustOpen(t, files).Inspect(Host{
		Target:     Target{Devices: []string{"cpu"}, OS: "linux", Arch: "amd64", Features: map[string]bool{"AVX512": true}},
		Provides:   func(name string) bool { return name == "aoti_torch_clone" },
		ProvidesOp: func(string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Models[0]
	if want := []string{"GOMP_parallel", "Sleef_expf8_u10", "_ZN2at4_ops3add4callE", "aten::foo"}; !slices.Equal(m.Missing, want) {
		t.Errorf("missing %v, want %v", m.Missing, want)
	}
	if !strings.HasSuffix(m.Refused, "missing: AVX512_VNNI") || m.Unique != 1 || m.System != 1 {
		t.Errorf("refused %q, %d unique, %d system symbols", m.Refused, m.Unique, m.System)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"t.pt2: archive, 1 model", "compiled for  cpu, linux, x86_64; AVX512 AVX512_VNNI, -march=x86-64-v3",
		"input 0       arg0_1: float32[s21 in 0|1|2..16, s50 in 3.., 8] on cpu", "host ABI      1: aoti_torch_clone\n",
		"OpenMP        1: GOMP_parallel(!)", "libtorch C++  1: _ZN2at4_ops3add4callE(!)",
		"extern op     aten::foo, 2 calls, not known to this host", "needs         libtorch_cpu.so, libgomp.so.1, libc.so.6",
		"constants     3 (1 folded), 256 B; weights in the library, 64 B", "interface     PyTorch 2.15 (2 container functions)",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	text.Reset()
	if err := m.WriteConstants(&text); err != nil || !strings.Contains(text.String(), "fc_weight          fc.weight") {
		t.Errorf("constants:\n%s%v", text.String(), err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(data, &back); err != nil || back["kind"] != "archive" {
		t.Errorf("JSON: %v, %v", back["kind"], err)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
