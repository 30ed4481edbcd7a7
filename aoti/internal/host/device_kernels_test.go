//go:build linux && cgo

package host

import (
	"strings"
	"testing"
)

// elsewhereOps are the functions for CUDA, and for all devices, that devices do not
// compute; all others they do.
var elsewhereOps = map[Where]string{
	ThroughHost: `_fft_c2c cuda__fft_c2c cuda__fft_r2c
		cuda_cholesky_inverse cuda_cholesky_solve cuda_geqrf
		cuda_lu_unpack cuda_ormqr cuda_triangular_solve`,
	Refused: `cuda__cudnn_rnn cuda__flash_attention_forward_quantized cuda__fused_moving_avg_obs_fq_helper
		cuda__fused_moving_avg_obs_fq_helper_functional cuda__scaled_dot_product_flash_attention_quantized cuda__to_sparse
		cuda__weight_int4pack_mm cuda_to_sparse`,
}

func TestWhereOpsOfDevicesAreComputed(t *testing.T) {
	want := map[string]Where{}
	for where, names := range elsewhereOps {
		for _, n := range strings.Fields(names) {
			want["aoti_torch_"+n] = where
		}
	}
	seen := map[Where]int{}
	for _, s := range Symbols() {
		if s.Where == "" {
			if strings.HasPrefix(s.Header, "c_shim_cuda") {
				t.Errorf("%s is computed nowhere", s.Name)
			}
			continue
		}
		expected, ok := want[s.Name]
		if !ok {
			expected = OnDevice
		}
		delete(want, s.Name)
		if s.Where != expected {
			t.Errorf("%s: %q, want %q", s.Name, s.Where, expected)
		}
		if s.Implemented != (s.Where != Refused) {
			t.Errorf("%s is %q, and implemented: %v", s.Name, s.Where, s.Implemented)
		}
		seen[s.Where]++
	}
	for n := range want {
		t.Errorf("there is no %s", n)
	}
	if seen[OnDevice] < 150 {
		t.Errorf("only %v", seen)
	}
}
