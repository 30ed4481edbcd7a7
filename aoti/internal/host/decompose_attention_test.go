//go:build linux && cgo

package host

import (
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// waves fills a tensor of f32 with numbers that are the same in each test.
func waves(t *testing.T, seed int, dims ...int) *tensor {
	t.Helper()
	data := make([]float64, product(dims))
	for i := range data {
		data[i] = float64(float32(math.Sin(float64(i*7+seed*13)) * 1.5))
	}
	return tensorOf(t, ir.F32, data, dims...)
}

// turned returns a view with two dimensions exchanged.
func turned(t *testing.T, x *tensor, i, j int) *tensor {
	t.Helper()
	sizes, strides := slices.Clone(sizesOf(x)), slices.Clone(stridesOf(x))
	sizes[i], sizes[j], strides[i], strides[j] = sizes[j], sizes[i], strides[j], strides[i]
	v, err := viewOf(x, sizes, strides, 0, int32(x.dtype))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(v) })
	return v
}

// attended is attention by the CPU's kernel: the result and the logarithms.
func attended(t *testing.T, q, k, v, mask *tensor, causal bool) (out, sums []float64) {
	t.Helper()
	var y, lse *tensor
	args := []any{q, k, v, 0.0, causal, nil, nil, &y, &lse}
	if mask != nil {
		args[5] = mask
	}
	if err := invoke(t, "cpu__scaled_dot_product_flash_attention_for_cpu", args...); err != nil {
		t.Fatal(err)
	}
	defer release(y)
	defer release(lse)
	return numbers(t, y), numbers(t, lse)
}

func closeTo(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= 2e-5*max(1, math.Abs(want[i]))) && got[i] != want[i] {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

func TestAttentionForCUDA(t *testing.T) {
	const heads, rows, keys, width = 4, 5, 7, 8
	q, k, v := waves(t, 1, 2, heads, rows, width), waves(t, 2, 2, heads, keys, width), waves(t, 3, 2, heads, keys, width)
	shared, sharedV := waves(t, 4, 2, 2, rows, width), waves(t, 5, 2, 2, rows, width)
	bias := waves(t, 6, 1, heads, rows, keys)
	// The same with the heads of a place side by side.
	side := func(x *tensor) *tensor {
		d, err := eagerKernelOf("contiguous")(values{"self": turned(t, x, 1, 2)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { release(d[0]) })
		return d[0]
	}
	for _, c := range []struct {
		name    string
		args    []any // before the results
		k, v    *tensor
		mask    *tensor
		causal  bool
		byRows  bool
		sums    []int // the shape of the logarithms
		results string
	}{
		{"_scaled_dot_product_flash_attention", []any{q, k, v, 0.0, false, false, nil}, k, v, nil, false, false, []int{2, heads, rows}, "ttuuiittt"},
		{"_scaled_dot_product_flash_attention", []any{q, shared, sharedV, 0.0, true, false, nil}, shared, sharedV, nil, true, false, []int{2, heads, rows}, "ttuuiittt"},
		{"_scaled_dot_product_efficient_attention", []any{q, k, v, bias, true, 0.0, false, nil}, k, v, bias, false, false, []int{2, heads, 32}, "tttt"},
		{"_scaled_dot_product_cudnn_attention", []any{q, k, v, bias, true, 0.0, false, false, nil}, k, v, bias, false, false, []int{2, heads, rows, 1}, "ttuuiittu"},
		{"_scaled_dot_product_fused_attention_overrideable", []any{q, k, v, nil, 0.0, false, false, nil}, k, v, nil, false, false, []int{2, heads, rows}, "ttuuiittu"},
		{"_flash_attention_forward", []any{side(q), side(shared), side(sharedV), nil, nil, rows, rows, 0.0, true, false, nil, nil, nil, nil, nil}, shared, sharedV, nil, true, true,
			[]int{2, heads, rows}, "ttttt"},
		{"_efficient_attention_forward", []any{side(q), side(k), side(v), nil, nil, nil, nil, nil, 0.0, 0, true, nil, nil, nil}, k, v, nil, false, true, []int{2, heads, 32}, "ttttii"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "cuda_" + c.name
			args := c.args
			outs, ints := make([]*tensor, len(c.results)), make([]int64, len(c.results))
			for i, kind := range c.results {
				if kind == 'i' {
					args = append(args, &ints[i])
				} else {
					args = append(args, &outs[i])
				}
			}
			if err := invokeBy(t, byProgram(name), name, args...); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = discard(outs) }()
			for i, kind := range c.results {
				if kind != 'i' && (outs[i].storage == nil) != (kind == 'u') {
					t.Errorf("result %d is there: %v", i, outs[i].storage != nil)
				}
				if kind == 'i' && ints[i] != rows && ints[i] != int64(c.k.ndim) && ints[i] != keys {
					t.Errorf("result %d is %d", i, ints[i])
				}
			}
			want, sums := attended(t, q, c.k, c.v, c.mask, c.causal)
			y := outs[0]
			if c.byRows {
				y = turned(t, y, 1, 2)
			}
			closeTo(t, "the result", numbers(t, y), want)
			if got := intsOf(sizesOf(outs[1])); !slices.Equal(got, c.sums) {
				t.Fatalf("the logarithms are %v, want %v", got, c.sums)
			}
			got := numbers(t, outs[1])
			if last := c.sums[len(c.sums)-1]; last == 32 {
				for i := len(got)/32 - 1; i >= 0; i-- {
					got = slices.Delete(got, i*32+rows, i*32+32)
				}
			}
			closeTo(t, "the logarithms", got, sums)
		})
	}
}

// Sequences in a row do not see each other.
func TestAttentionOfSequencesInARow(t *testing.T) {
	const heads, width = 2, 4
	lengths := []int{3, 1, 4}
	q, k, v := waves(t, 1, 8, heads, width), waves(t, 2, 8, heads, width), waves(t, 3, 8, heads, width)
	ends := tensorOf(t, ir.I32, []float64{0, 3, 4, 8}, 4)
	outs := make([]*tensor, 5)
	args := []any{q, k, v, ends, ends, 4, 4, 0.0, true, false, nil, nil, nil, nil, nil}
	for i := range outs {
		args = append(args, &outs[i])
	}
	const name = "cuda__flash_attention_forward"
	if err := invokeBy(t, byProgram(name), name, args...); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = discard(outs) }()
	got, sums := numbers(t, outs[0]), numbers(t, outs[1])
	if s := intsOf(sizesOf(outs[1])); !slices.Equal(s, []int{heads, 8}) {
		t.Fatalf("the logarithms are %v", s)
	}
	from := 0
	for _, n := range lengths {
		part := func(x *tensor) *tensor { // [1, heads, n, width]
			p, err := viewOf(x, []int64{1, heads, int64(n), width}, []int64{8 * heads * width, width, heads * width, 1}, int64(from*heads*width), int32(x.dtype))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { release(p) })
			return p
		}
		want, logs := attended(t, part(q), part(k), part(v), nil, true)
		for h := range heads {
			for i := range n {
				at := ((from+i)*heads + h) * width
				closeTo(t, "a row", got[at:at+width], want[(h*n+i)*width:][:width])
				closeTo(t, "its logarithm", sums[h*8+from+i:][:1], logs[h*n+i:][:1])
			}
		}
		from += n
	}
}
