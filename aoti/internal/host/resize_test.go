//go:build linux && cgo

package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestResize(t *testing.T) {
	leakCheck(t)
	x := tensorOf(t, ir.F32, []float64{1, 2, 3, 4, 5, 6}, 2, 3)
	size := func(dims []int64, format any) error { return invoke(t, "cpu_resize_", x, dims, format) }
	if err := size([]int64{4}, nil); err != nil || !slices.Equal(numbers(t, x), []float64{1, 2, 3, 4}) {
		t.Errorf("smaller: %v, %v", numbers(t, x), err)
	}
	if err := size([]int64{2, 3}, nil); err != nil || !slices.Equal(numbers(t, x), []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("as it was: %v, %v", numbers(t, x), err)
	}
	if err := size([]int64{4, 3}, nil); err != nil || !slices.Equal(numbers(t, x)[:6], []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("larger: %v, %v", numbers(t, x), err)
	}
	last := int32(formatLast)
	if err := size([]int64{1, 2, 3, 2}, &last); err != nil || !slices.Equal(stridesOf(x), []int64{12, 1, 4, 2}) {
		t.Errorf("channels innermost: %v, %v", stridesOf(x), err)
	}
	if err := size([]int64{2, 6}, &last); err == nil {
		t.Error("two dimensions with channels innermost")
	}
	if err := size([]int64{-1}, nil); err == nil {
		t.Error("a negative size")
	}
	y := tensorOf(t, ir.F32, []float64{7, 8}, 2)
	if err := invoke(t, "cpu_set__source_Tensor", y, x); err != nil || y.storage != x.storage {
		t.Errorf("set_: %v", err)
	}
	if err := size([]int64{100}, nil); err == nil || !strings.Contains(err.Error(), "others hold it") {
		t.Errorf("growing memory that is shared: %v", err)
	}
	if err := invoke(t, "cpu_resize_as_", x, tensorOf(t, ir.F64, []float64{0, 0, 0}, 3, 1), nil); err != nil || !slices.Equal(sizesOf(x), []int64{3, 1}) {
		t.Errorf("resize_as_: %v, %v", sizesOf(x), err)
	}
}

// Sizes that make no sense are errors and no panics.
func TestEagerKernelsCheckShapes(t *testing.T) {
	x, three := tensorOf(t, ir.F32, []float64{1, 2, 3, 4}, 2, 2), tensorOf(t, ir.F32, []float64{1, 2, 3}, 3)
	at, narrow := tensorOf(t, ir.I64, []float64{9, 9}, 2), tensorOf(t, ir.F8E5M2, []float64{1, 2, 3, 4}, 2, 2)
	for _, c := range []struct {
		name string
		args []any
	}{
		{"cpu_cholesky_solve", []any{three, x, false}},
		{"cpu_cholesky_solve", []any{x, three, false}},
		{"cpu_lu_unpack", []any{x, at, true, true}},
		{"cpu_avg_pool2d_backward", []any{three, x, []int64{2}, []int64{2}, []int64{0}, false, true, nil}},
		{"cpu_max_pool2d_with_indices_backward", []any{x, x, []int64{2}, []int64{2}, []int64{0}, []int64{1}, false, at}},
		{"cpu_fractional_max_pool2d", []any{x, []int64{2, 2}, []int64{4, 4}, three}},
		{"cpu_grid_sampler_3d", []any{x, x, 0, 0, false}},
		{"cpu_index_reduce", []any{x, 0, at, x, "prod", true}},
		{"cpu_index_reduce", []any{x, 0, at, x, "first", true}},
		{"cpu_segment_reduce", []any{x, "sum", at, nil, nil, 0, false, nil}},
		{"cpu__scaled_mm", []any{narrow, narrow, three, three, nil, nil, nil, false}},
		{"cpu__grouped_mm", []any{x, three, at, nil, nil}},
		{"cpu_upsample_linear1d_backward", []any{x, []int64{2}, []int64{1, 1, 2}, false, nil}},
	} {
		s := &signatures[shimLines()["aoti_torch_"+c.name]]
		var outs [3]*tensor
		n := 0
		for _, p := range s.params {
			if p.kind == kindOut {
				c.args = append(c.args, &outs[n])
				n++
			}
		}
		err := invoke(t, c.name, c.args...)
		if err == nil {
			t.Errorf("%s computes %v", c.name, outs[:n])
		}
		for _, o := range outs {
			if o != nil {
				release(o)
			}
		}
	}
}
