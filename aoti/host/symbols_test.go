//go:build linux && cgo

package host

import (
	"os"
	"path/filepath"
	"testing"
)

// absent are the functions of shim.h that the host does not have: quantised
// products of fbgemm's, which are deprecated.
var absent = map[string]bool{
	"aoti_torch_cpu_wrapped_fbgemm_pack_gemm_matrix_fp16": true,
	"aoti_torch_cpu__wrapped_linear_prepack":              true,
	"aoti_torch_cpu_wrapped_fbgemm_linear_fp16_weight":    true,
	"aoti_torch_cpu__wrapped_quantized_linear_prepacked":  true,
}

func TestShimIsThere(t *testing.T) {
	for _, s := range Symbols() {
		if s.Header == "shim.h" && !s.Implemented && !absent[s.Name] {
			t.Errorf("%s is missing", s.Name)
		}
		if s.Header == "shim.h:cuda" && s.Implemented {
			t.Errorf("%s is there", s.Name)
		}
	}
}

func TestStubsAreCurrent(t *testing.T) {
	if len(signatures) < 300 {
		t.Fatalf("%d lines of symbols", len(signatures))
	}
	for _, name := range []string{"shim_gen.h", "op_gen.c"} {
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			t.Error(err)
		}
	}
}
