package shim

import (
	"reflect"
	"testing"
)

func TestParseKeepsLines(t *testing.T) {
	const text = `# made by hand
shim.h aoti_torch_dtype int32
shim.h

c_shim_cpu.h aoti_torch_cpu_addmm_out AOTITorchError out:tensor self:tensor beta:float dims:int*? bare
`
	want := []Function{
		{},
		{Header: "shim.h", Name: "aoti_torch_dtype", Result: "int32"},
		{},
		{},
		{Header: "c_shim_cpu.h", Name: "aoti_torch_cpu_addmm_out", Result: "AOTITorchError", Params: []Param{
			{"out", "tensor"}, {"self", "tensor"}, {"beta", "float"}, {"dims", "int*?"}, {"bare", ""},
		}},
	}
	if got := Parse(text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestMath(t *testing.T) {
	for _, c := range []struct {
		header, name string
		want         bool
	}{
		{"c_shim_cpu.h", "aoti_torch_cpu_relu", true},
		{"c_shim_aten.h", "aoti_torch_aten_full", true},
		{"shim_deprecated.h", "aoti_torch_scatter_out", true},
		{"shim.h", "aoti_torch_index_put_out", true},
		{"shim.h", "aoti_torch_cpu_wrapped_linear_prepack", true},
		{"shim.h", "aoti_torch_empty_strided", false},
		{"shim.h:cuda", "aoti_torch_create_cuda_guard", false},
		{"", "", false},
	} {
		f := Function{Header: c.header, Name: c.name}
		if got := f.Math(); got != c.want {
			t.Errorf("%s %s: got %v, want %v", c.header, c.name, got, c.want)
		}
	}
}
