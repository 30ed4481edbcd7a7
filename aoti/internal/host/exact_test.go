//go:build linux && cgo

package host

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// Integers that a double does not hold keep all their bits.
func TestIntegersStayExact(t *testing.T) {
	const big = 1 << 53 // and so are big+1 and big+3 no doubles
	data := []int64{big + 3, big + 1, big + 2, big, big + 3}
	in, err := save(array[int64]{data, []int{5}}, ir.I64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(in) })
	order, err := save(array[int64]{[]int64{big, big + 1, big + 2, big + 3}, []int{4}}, ir.I64)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(order) })
	for _, c := range []struct {
		name string
		args []any
		outs [][]int64
	}{
		{"cpu_cummin", []any{in, 0}, [][]int64{{big + 3, big + 1, big + 1, big, big}, {0, 1, 1, 3, 3}}},
		{"cpu_cummax", []any{in, 0}, [][]int64{{big + 3, big + 3, big + 3, big + 3, big + 3}, {0, 0, 0, 0, 4}}},
		{"cpu_kthvalue", []any{in, 2, 0, false}, [][]int64{{big + 1}, {1}}},
		{"cpu_mode", []any{in, 0, false}, [][]int64{{big + 3}, {4}}},
		{"cpu_median", []any{in}, [][]int64{{big + 2}}},
		{"cpu_nanmedian", []any{in}, [][]int64{{big + 2}}},
		{"cpu_topk", []any{in, 3, 0, false, true}, [][]int64{{big, big + 1, big + 2}, {3, 1, 2}}},
		{"cpu_sort", []any{in, 0, false}, [][]int64{{big, big + 1, big + 2, big + 3, big + 3}, {3, 1, 2, 0, 4}}},
		{"cpu_searchsorted_Tensor", []any{order, in, false, false, nil, nil}, [][]int64{{3, 1, 2, 0, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			outs := make([]*tensor, len(c.outs))
			for i := range outs {
				c.args = append(c.args, &outs[i])
			}
			if err := invoke(t, c.name, c.args...); err != nil {
				t.Fatal(err)
			}
			for i, want := range c.outs {
				got, err := load[int64](outs[i])
				release(outs[i])
				if err != nil || !slices.Equal(got.data, want) {
					t.Errorf("result %d: %v (%v), want %v", i, got.data, err, want)
				}
			}
		})
	}
}
