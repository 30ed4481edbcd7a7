package export_test

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/pt2"
)

// members returns the members of a package.
func members(t testing.TB, pkg []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(pkg), int64(len(pkg)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = data
	}
	return all
}

// library returns the library of the package of a program.
func library(t testing.TB, program string) []byte {
	t.Helper()
	for name, data := range members(t, sampleOf(t, programs(t)[program], 1).export(t)) {
		if strings.HasSuffix(name, ".so") {
			return data
		}
	}
	t.Fatal("the package has no library")
	return nil
}

// driverFunctions returns the text of each function of testdata/driver.cpp.
func driverFunctions(t *testing.T) map[string]string {
	t.Helper()
	src, err := os.ReadFile("testdata/driver.cpp")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?ms)^(?:static )?[a-z ]+[ *](\w+)\([^;{\n]*\)(?:\n\{\n(.*?)^| \{([^\n]*))\}$`).FindAllStringSubmatch(string(src), -1) {
		all[m[1]] = m[2] + m[3]
	}
	return all
}

// The functions that docs/aoti-export.md lists are what a library exports, and each is called by the
// function of the driver that the list names.
func TestLibraryExportsTheInterface(t *testing.T) {
	doc, err := os.ReadFile("../../docs/aoti-export.md")
	if err != nil {
		t.Fatal(err)
	}
	driver := driverFunctions(t)
	rules := 0
	for name := range driver {
		if strings.HasPrefix(name, "rule_") {
			rules++
			if !strings.Contains(string(doc), "| `driver.cpp: "+name+"` |") {
				t.Errorf("%s of the driver is not documented", name)
			}
		}
	}
	if rules != 5 {
		t.Errorf("the driver tests %d rules by name", rules)
	}
	var want []string
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); strings.HasPrefix(line, "| `AOTInductor") {
			name, by := strings.Trim(cells[1], " `"), strings.Trim(cells[3], " `")
			want = append(want, name)
			if short := "C(" + strings.TrimPrefix(name, "AOTInductorModelContainer") + ")"; !strings.Contains(driver[by], name) && !strings.Contains(driver[by], short) {
				t.Errorf("%s of the driver, which the table says tests %s, does not call it", by, name)
			}
		}
	}
	slices.Sort(want)
	data := library(t, "mlp")
	l, err := pt2.ReadLibrary(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	got := l.Generation().Functions
	if len(got) != 47 || !slices.Equal(got, want) {
		t.Errorf("%d functions are exported, %d documented:\n%v\n%v", len(got), len(want), got, want)
	}
}

// No memory of a library is writable and executable, nothing asks for an executable stack, and weights
// lie last, on a page of their own.
func TestSegmentsOfALibrary(t *testing.T) {
	data := library(t, "mlp")
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var last *elf.Prog
	stack := false
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			if p.Flags&(elf.PF_W|elf.PF_X) == elf.PF_W|elf.PF_X {
				t.Errorf("the segment at %#x is writable and executable", p.Vaddr)
			}
			if last != nil && p.Vaddr < last.Vaddr+last.Memsz {
				t.Errorf("the segment at %#x begins in the one before", p.Vaddr)
			}
			last = p
		case elf.PT_GNU_STACK:
			stack = p.Flags&elf.PF_X == 0
		}
	}
	const weights = (64*128 + 128 + 128*10 + 16) * 4
	if last.Flags != elf.PF_R || last.Off%4096 != 0 || last.Filesz != weights || last.Off+last.Filesz != uint64(len(data)) {
		t.Errorf("the last segment is %+v of %d bytes, want %d of weights", last.ProgHeader, len(data), weights)
	}
	if !stack {
		t.Error("the stack would be executable")
	}
}

// A library names libtorch_cpu, since Python loads that for itself alone, and calls nothing that PyTorch
// 2.6 lacks, but where it looks first whether it is there.
func TestLibraryNeedsWhatPyTorchHas(t *testing.T) {
	for _, program := range []string{"mlp", "conv", "encoder", "gpt", "moves", "scatter"} {
		data := library(t, program)
		l, err := pt2.ReadLibrary(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(l.Needed, "libtorch_cpu.so") {
			t.Errorf("%s: needs %v", program, l.Needed)
		}
		for _, s := range l.Undefined {
			if (strings.HasPrefix(s.Name, "aoti_torch_") || strings.HasPrefix(s.Name, "torch_")) && !s.Weak && !slices.Contains(functionsOf26, s.Name) {
				t.Errorf("%s: calls %s", program, s.Name)
			}
		}
	}
}

// functionsOf26 are functions of libtorch that PyTorch 2.6 has (torch/csrc/inductor/aoti_torch).
var functionsOf26 = strings.Fields(`
aoti_torch__reinterpret_tensor aoti_torch_assign_tensors_out aoti_torch_copy_ aoti_torch_create_tensor_from_blob aoti_torch_delete_tensor_object aoti_torch_empty_strided
aoti_torch_get_data_ptr aoti_torch_get_device_type aoti_torch_get_dim aoti_torch_get_dtype aoti_torch_get_sizes aoti_torch_get_strides
aoti_torch_grad_mode_is_enabled aoti_torch_grad_mode_set_enabled
aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu aoti_torch_cpu_addmm_out aoti_torch_cpu_bmm_out aoti_torch_cpu_convolution aoti_torch_cpu_cumprod
aoti_torch_cpu_cummax aoti_torch_cpu_cumsum aoti_torch_cpu_max_pool2d_with_indices aoti_torch_cpu_max_pool3d_with_indices aoti_torch_cpu_mm_out
aoti_torch_cpu_scatter_reduce_two_out aoti_torch_cpu_scatter_src_out aoti_torch_cpu_sort_stable`)
