//go:build linux && cgo

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// description is oneDNN's of i8 weights [16, 8] in blocks of 4 of the first
// dimension, changed by set.
func description(size int, set func(put func(at int, x uint64))) []byte {
	b := make([]byte, size)
	put := func(at int, x uint64) { binary.LittleEndian.PutUint64(b[at:], x) }
	put(0, 1|2<<32) // version, rank
	put(8, 16)
	put(16, 8)
	binary.LittleEndian.PutUint32(b[104:], 5)
	put(112, 16)
	put(120, 8)
	binary.LittleEndian.PutUint32(b[312:], formatBlocked)
	put(320, 32)
	put(328, 4)
	put(416, 1)
	put(424, 4)
	put(520, 0)
	if set != nil {
		set(put)
	}
	return b
}

// TestDescriptions: packed weights of 8 bits may carry sums for oneDNN's own
// products, and nothing else; others carry nothing.
func TestDescriptions(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     []byte
		d     ir.DType
		wrong string // "" if it can be read
	}{
		{"plain", description(blockedBytes+4, nil), ir.I8, ""},
		{"of 2.6", description(olderBytes+4, nil), ir.I8, ""},
		{"shifted", description(blockedBytes+4, func(put func(int, uint64)) { put(extraAt, sumsShifted) }), ir.I8, ""},
		{"signed", description(olderBytes+4, func(put func(int, uint64)) { put(extraAt, sumsSigned|sumsShifted) }), ir.I8, ""},
		{"scaled", description(blockedBytes+4, func(put func(int, uint64)) { put(extraAt, 2) }), ir.I8, "extras 0x2"},
		{"sums of floats", description(blockedBytes+4, func(put func(int, uint64)) {
			put(104, 3)
			put(112, 16)
			put(extraAt, sumsShifted)
		}), ir.I8, "extras 0x8"},
		{"another format", description(blockedBytes+4, func(put func(int, uint64)) { put(312, 3) }), ir.I8, "format 3"},
		{"another size", description(blockedBytes, nil), ir.I8, "768 bytes"},
		{"no weights of 8 bits", description(blockedBytes, nil), ir.F32, ""},
	} {
		err := readable(c.b, c.d)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wrong != "" && (!errors.Is(err, errBlocked) || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "without freezing")):
			t.Errorf("%s: %v, want %q and what to do", c.name, err, c.wrong)
		}
	}
	older, err := parseBlocked(description(olderBytes+4, nil))
	if err != nil || !older.older {
		t.Errorf("a description of 2.6 is %v, %v", older, err)
	}
}

// TestQuantErrors: what does not fit is an error of its kind, and leaks nothing.
func TestQuantErrors(t *testing.T) {
	leakCheck(t)
	x, w := tensorOf(t, ir.U8, make([]float64, 6), 2, 3), tensorOf(t, ir.I8, make([]float64, 12), 3, 4)
	floats, number, zero := tensorOf(t, ir.F32, make([]float64, 6), 2, 3), tensorOf(t, ir.F32, []float64{0.5}, 1), tensorOf(t, ir.I32, []float64{3}, 1)
	other := tensorOf(t, ir.U8, make([]float64, 6), 2, 3)
	image, filter := tensorOf(t, ir.U8, make([]float64, 32), 1, 2, 4, 4), tensorOf(t, ir.I8, make([]float64, 16), 2, 2, 2, 2)
	one, none := []int64{1, 1}, []int64{0, 0}
	scales := tensorOf(t, ir.F32, make([]float64, 5), 5)
	f32 := int32(6)
	linear := func(x, w, scale, scales *tensor, post string, step float64) []any {
		return []any{x, scale, zero, w, scales, nil, nil, step, 0, nil, post, []*float64{}, ""}
	}
	sum := func(other *tensor, dtype *int32, binary string, alpha float64) []any {
		return []any{x, number, zero, w, number, nil, other, nil, 1.0, 0, dtype, 1.0, 0, binary, alpha, "none", []*float64{}, ""}
	}
	conv := func(x, w *tensor, groups int) []any {
		return []any{x, number, zero, w, number, nil, nil, one, none, one, groups, 1.0, 0, nil, "none", []*float64{}, ""}
	}
	for _, c := range []struct {
		name string
		args []any
		want error
	}{
		{"cpu__qlinear_pointwise_tensor", linear(floats, w, number, number, "none", 1), ir.ErrDType},
		{"cpu__qlinear_pointwise_tensor", linear(x, floats, number, number, "none", 1), ir.ErrDType},
		{"cpu__qlinear_pointwise_tensor", linear(x, x, number, number, "none", 1), ir.ErrDType},
		{"cpu__qlinear_pointwise_tensor", linear(other, tensorOf(t, ir.I8, make([]float64, 8), 2, 4), number, number, "none", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_tensor", linear(x, w, scales, number, "none", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_tensor", linear(x, w, number, scales, "none", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_tensor", linear(x, w, number, number, "mish", 1), errUnimplemented},
		{"cpu__qlinear_pointwise_tensor", linear(x, w, number, number, "none", 0), ir.ErrArg},
		{"cpu__qlinear_pointwise_binary_tensor", sum(other, nil, "sum", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_binary_tensor", sum(other, nil, "add", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_binary_tensor", sum(other, &f32, "sum", 1), ir.ErrDType},
		{"cpu__qlinear_pointwise_binary_tensor", sum(nil, nil, "sum", 1), ir.ErrShape},
		{"cpu__qlinear_pointwise_binary_tensor", sum(other, nil, "mul", 1), errUnimplemented},
		{"cpu__qlinear_pointwise_binary_tensor", sum(other, nil, "sum", 2), errUnimplemented},
		{"cpu__qconv_pointwise_tensor", conv(x, filter, 1), ir.ErrShape},
		{"cpu__qconv_pointwise_tensor", conv(image, w, 1), ir.ErrShape},
		{"cpu__qconv2d_pointwise_tensor", conv(image, filter, 2), ir.ErrShape},
		{"cpu__weight_int4pack_mm_cpu_tensor", []any{x, w, number, number}, ir.ErrDType},
		{"cpu__weight_int4pack_mm_cpu_tensor", []any{floats, x, number, number}, ir.ErrShape},
		{"cpu__weight_int4pack_mm_cpu_tensor", []any{floats, x, scales, number}, ir.ErrShape},
		{"cpu__dyn_quant_matmul_4bit", []any{x, number, 4, 3, 2}, ir.ErrDType},
		{"cpu__dyn_quant_matmul_4bit", []any{floats, number, 3, 3, 2}, ir.ErrShape},
		{"cpu__dyn_quant_matmul_4bit", []any{tensorOf(t, ir.F32, make([]float64, 8), 2, 4), number, 4, 4, 2}, ir.ErrShape},
		{"cpu__fused_moving_avg_obs_fq_helper_functional", []any{x, zero, zero, number, number, number, zero, 0.1, 0, 255, 0, false, false}, ir.ErrDType},
		{"cpu__fused_moving_avg_obs_fq_helper_functional", []any{floats, zero, zero, number, number, number, zero, 0.1, 9, 9, 0, false, false}, ir.ErrArg},
		{"cpu__fused_moving_avg_obs_fq_helper_functional", []any{floats, zero, zero, number, number, number, zero, 0.1, 0, 255, 0, true, false}, ir.ErrShape},
	} {
		s := &signatures[shimLines()["aoti_torch_"+c.name]]
		outs := make([]*tensor, 6)
		args := slices.Clone(c.args)
		for _, p := range s.params {
			if p.kind == kindOut {
				args = append(args, &outs[len(args)-len(c.args)])
			}
		}
		if err := invoke(t, c.name, args...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestObserverState: the observer writes its state, makes room for that of
// channels, and returns the tensor as it is where it only watches.
func TestObserverState(t *testing.T) {
	leakCheck(t)
	x := tensorOf(t, ir.F32, []float64{-1, 0.5, 2, 1, 3, 4}, 2, 3)
	on, off := tensorOf(t, ir.I64, []float64{1}, 1), tensorOf(t, ir.I64, []float64{0}, 1)
	empty := func(d ir.DType) *tensor { return tensorOf(t, d, []float64{}, 0) }
	state := []*tensor{empty(ir.F32), empty(ir.F32), empty(ir.F32), empty(ir.I32)}
	var y, mask *tensor
	run := func(rounds *tensor) {
		t.Helper()
		if err := invoke(t, "cpu__fused_moving_avg_obs_fq_helper", x, on, rounds, state[0], state[1], state[2], state[3],
			0.5, 0, 255, 0, true, false, &y, &mask); err != nil {
			t.Fatal(err)
		}
	}
	run(off)
	if got := fmt.Sprint(numbers(t, state[0]), numbers(t, state[1]), numbers(t, y)); got != "[-1 1] [2 4] [-1 0.5 2 1 3 4]" {
		t.Errorf("range and tensor are %s", got)
	}
	release(y)
	release(mask)
	if err := storeAll(x, array[float64]{[]float64{-3, 0, 2, 1, 3, 8}, []int{2, 3}}); err != nil {
		t.Fatal(err)
	}
	run(on)
	defer release(y)
	defer release(mask)
	// The averages are now -2 to 2 and 1 to 6, the grids -2 to 2 and 0 to 6.
	for i, want := range [][]float64{{-2, 1}, {2, 6}, {4. / 255, 6. / 255}, {128, 0}} {
		for j, got := range numbers(t, state[i]) {
			if math.Abs(got-want[j]) > 1e-6 {
				t.Errorf("state %d of channel %d is %v, want %v", i, j, got, want[j])
			}
		}
	}
	if got, want := numbers(t, mask), []float64{0, 1, 1, 1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("inside the grid are %v, want %v", got, want)
	}
}

// TestScaledLargest: the oldest form also returns the largest magnitude.
func TestScaledLargest(t *testing.T) {
	leakCheck(t)
	x, y := tensorOf(t, ir.F8E4M3FN, []float64{1, 2, 3, -4}, 2, 2), tensorOf(t, ir.F8E4M3FN, []float64{1, 0, 0, 1}, 2, 2)
	two, half := tensorOf(t, ir.F32, []float64{2}, 1), tensorOf(t, ir.F32, []float64{0.5}, 1)
	var out, most *tensor
	if err := invoke(t, "_scaled_mm", x, y, nil, nil, two, two, half, 0, &out, &most); err != nil {
		t.Fatal(err)
	}
	defer release(out)
	defer release(most)
	if got := fmt.Sprint(numbers(t, out), numbers(t, most)); got != "[8 16 24 -32] [16]" {
		t.Errorf("%s", got)
	}
}
