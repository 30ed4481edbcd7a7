package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/ir"
)

// fixture returns the path of a package that PyTorch made, and of the file with
// its inputs and outputs.
func fixture(name string) (pkg, data string) {
	dir := filepath.Join("..", "..", "..", "aoti", "testdata")
	return filepath.Join(dir, name+".pt2"), filepath.Join(dir, name+".safetensors")
}

// needLoading skips a test where models can't be loaded.
func needLoading(t *testing.T, pkg string) {
	t.Helper()
	r, err := aoti.Load(t.Context(), pkg)
	var te *aoti.TargetError
	switch {
	case errors.Is(err, aoti.ErrNoLibraries), errors.As(err, &te):
		t.Skip("models can't be loaded here:", err)
	case err != nil:
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestAOTIInspect(t *testing.T) {
	pkg, _ := fixture("mlp")
	out := succeed(t, "aoti", "inspect", pkg)
	for _, want := range []string{
		"mlp.pt2: archive, 1 model", "input 0       arg4_1: float32[8, 64] on cpu", "outputs       output0",
		"weights in the library, 37.6 KiB", "compiled for  cpu, linux, x86_64; AVX2", "aoti_torch_cpu_addmm_out",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var report struct {
		Models []map[string]any `json:"models"`
	}
	if err := json.Unmarshal([]byte(succeed(t, "aoti", "inspect", pkg, "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Models) != 1 || report.Models[0]["name"] != "model" || report.Models[0]["generation"] != "2.15" {
		t.Errorf("JSON: %v", report.Models)
	}
}

func TestAOTIConstants(t *testing.T) {
	pkg, _ := fixture("mlp")
	out := succeed(t, "aoti", "constants", pkg)
	if want := "constant_2_bias    2.bias         float32  [10]       64     "; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(succeed(t, "aoti", "constants", pkg, "--json")), &list); err != nil || len(list) != 4 {
		t.Errorf("JSON: %v, %v", list, err)
	}
	code, _, errOut := invoke(t, "", "aoti", "constants", pkg, "--model", "other")
	if code != command.ExitError || !strings.Contains(errOut, `no model "other"`) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestAOTISymbols(t *testing.T) {
	out := succeed(t, "aoti", "symbols")
	if !strings.Contains(out, "aoti_torch_cpu_addmm_out") || !strings.Contains(out, " implemented\n") {
		t.Errorf("the table is\n%.500s", out)
	}
	if missing := succeed(t, "aoti", "symbols", "--missing"); strings.Contains(missing, "  yes\n") {
		t.Error("--missing lists what there is")
	}
	var list []aoti.Symbol
	if err := json.Unmarshal([]byte(succeed(t, "aoti", "symbols", "--json")), &list); err != nil || len(list) < 100 {
		t.Errorf("JSON: %d symbols, %v", len(list), err)
	}
}

func TestAOTIRun(t *testing.T) {
	pkg, data := fixture("mlp")
	needLoading(t, pkg)
	saved := filepath.Join(t.TempDir(), "out.safetensors")
	out := succeed(t, "aoti", "run", pkg, "--in", data, "--out", saved, "--compare", data, "--instances", "2")
	if !strings.Contains(out, "largest absolute error") || !strings.Contains(out, "out0    f32[8,10]") {
		t.Errorf("the comparison is\n%s", out)
	}
	all, _, err := tensors.ReadFile(saved)
	if err != nil || all["out0"].Shape != ir.MakeShape(ir.F32, 8, 10) {
		t.Errorf("outputs %v, %v", all, err)
	}
	if out := succeed(t, "aoti", "run", pkg, "--random-inputs"); !strings.HasPrefix(out, "out0: f32[8,10]\n[[") {
		t.Errorf("printed\n%s", out)
	}
	code, _, errOut := invoke(t, "", "aoti", "run", pkg)
	if want := "loris: missing input \"arg4_1\" (or in0): give --in or --random-inputs\n"; code != command.ExitError || errOut != want {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// Other weights give other outputs: the comparison fails.
func TestAOTIUpdate(t *testing.T) {
	pkg, data := fixture("mlp")
	dir := t.TempDir()
	weights, changed := filepath.Join(dir, "w.safetensors"), filepath.Join(dir, "new.pt2")
	bias := tensors.Tensor{Name: "2.bias", Shape: ir.MakeShape(ir.F32, 10), Data: make([]byte, 40)}
	if err := tensors.WriteFile(weights, []tensors.Tensor{bias}, nil); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := invoke(t, "", "aoti", "update", pkg, "--weights", weights, "--out", changed)
	if code != command.ExitError || !strings.Contains(errOut, `constant "0.weight" has no new value`) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if _, err := os.Stat(changed); err == nil {
		t.Error("a failed update left a file")
	}
	succeed(t, "aoti", "update", pkg, "--weights", weights, "--out", changed, "--partial")
	needLoading(t, pkg)
	code, _, errOut = invoke(t, "", "aoti", "run", changed, "--in", data, "--compare", data)
	if code != command.ExitError || !strings.Contains(errOut, "80 elements are past the tolerances") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	// Updating the loaded model gives the same as the package that was written.
	for i, args := range [][]string{{changed}, {pkg, "--weights", weights}} {
		out := filepath.Join(dir, string(rune('a'+i)))
		succeed(t, append([]string{"aoti", "run", "--in", data, "--out", out}, args...)...)
	}
	succeed(t, "aoti", "run", changed, "--in", data, "--compare", filepath.Join(dir, "b"), "--rtol", "0", "--atol", "0")
}

func TestAOTIBench(t *testing.T) {
	pkg, _ := fixture("dynamic_batch")
	needLoading(t, pkg)
	var r benchResult
	out := succeed(t, "aoti", "bench", pkg, "--duration", "30ms", "--concurrency", "1,2", "--json", "--size", "s31=3")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Levels) != 2 || r.Levels[1].Concurrency != 2 || r.Levels[0].Runs == 0 || r.Model != "model" {
		t.Errorf("result %+v", r)
	}
	for _, l := range r.Levels {
		if l.Min > l.P50 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.Max || l.Min <= 0 {
			t.Errorf("percentiles are out of order: %+v", l)
		}
	}
	if text := succeed(t, "aoti", "bench", pkg, "--duration", "10ms", "--concurrency", "1"); !strings.Contains(text, "at once") {
		t.Errorf("the table is\n%s", text)
	}
}

func TestAOTIUsage(t *testing.T) {
	pkg, _ := fixture("mlp")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"aoti", "inspect"}, "loris: accepts 1 arg(s), received 0 (see loris aoti inspect --help)"},
		{[]string{"aoti", "fly"}, `loris: unknown command "fly" for "loris aoti" (see loris aoti --help)`},
		{[]string{"aoti", "run", pkg, "--instances", "0"}, "loris: --instances is 0: it takes at least one (see loris aoti run --help)"},
		{[]string{"aoti", "bench", pkg, "--concurrency", "0"}, "loris: --concurrency is [0]: it takes numbers from 1 (see loris aoti bench --help)"},
		{[]string{"aoti", "bench", pkg, "--duration", "-1s"}, "loris: --duration is -1s: it must be positive (see loris aoti bench --help)"},
		{[]string{"aoti", "update", pkg, "--out", "x"}, `loris: required flag(s) "weights" not set (see loris aoti update --help)`},
	} {
		code, _, errOut := invoke(t, "", c.args...)
		if code != command.ExitUsage || errOut != c.want+"\n" {
			t.Errorf("%v: exit code %d:\n%swant\n%s", c.args, code, errOut, c.want)
		}
	}
}

// A package that is no package, or one for a graph, is told apart.
func TestAOTIErrors(t *testing.T) {
	text := commandtest.Write(t, "x.pt2", "hello")
	for _, cmd := range []string{"inspect", "constants", "run", "bench"} {
		code, _, errOut := invoke(t, "", "aoti", cmd, text)
		if code != command.ExitError || !strings.Contains(errOut, "neither a zip archive nor a shared library") {
			t.Errorf("%s: exit code %d: %s", cmd, code, errOut)
		}
	}
}
