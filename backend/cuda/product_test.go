//go:build cuda && linux && cgo

package cuda

import (
	"math"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// TestProducts counts what a product takes: one call of the library with what
// follows it where that can be, and launches for the rest.
func TestProducts(t *testing.T) {
	f, b := newFake(t, 1)
	const image = "%0 = reshape(%x, shape=[1,8,4])\n %1 = reshape(%w, shape=[4,8,1])\n "
	for _, c := range []struct {
		name, body         string
		products, launches int
	}{
		{"plain", "return matmul(%x, %w)", 1, 0},
		{"bias", "return add(matmul(%x, %w), %b)", 1, 0},
		{"bias and relu", "return relu(add(matmul(%x, %w), %b))", 1, 0},
		{"addend", "%0 = neg(%r)\n return add(add(matmul(%x, %w), %b), %0), %0", 1, 1},
		{"factor", "return mul(matmul(%x, %w), full(size=[], fill_value=2.0, dtype=f32))", 1, 0},
		{"factors, a bias and relu", "%0 = full(size=[1], fill_value=4.0, dtype=f32)\n return relu(add(div(mul(matmul(%x, %w), %0), full(size=[], fill_value=3.0, dtype=f32)), %b))", 1, 0},
		{"a factor of the run", "return mul(matmul(%x, %w), sum(%b))", 1, 2},
		{"another activation", "return tanh(add(matmul(%x, %w), %b))", 1, 1},
		{"transposed", "%0 = permute(%w, dims=[1,0])\n return matmul(%r, %0)", 1, 0},
		{"rows apart", "%0 = slice(%x, dim=1, start=0, end=8, step=2)\n %1 = slice(%w, dim=0, start=4, end=8, step=1)\n return matmul(%0, %1)", 1, 1},
		{"a vector", "%0 = slice(%x, dim=0, start=1, end=2, step=1)\n return matmul(%x, reshape(%0, shape=[8]))", 1, 0},
		{"a part", "%0 = reshape(slice(%x, dim=0, start=1, end=3, step=1), shape=[4,4])\n return matmul(%0, %0)", 1, 0},
		{"a convolution with one tap", image + "return relu(convolution(%0, %1, None, [1], [0], [1], false, [0], 1))", 1, 0},
		{"one with a bias", image + "return tanh(convolution(%0, %1, %b, [1], [0], [1], false, [0], 1))", 0, 1},
		{"one with steps", image + "return convolution(%0, %1, None, [2], [0], [1], false, [0], 1)", 0, 1},
		{"integers", "%0 = cast(%x, dtype=i32)\n %1 = cast(%w, dtype=i32)\n return matmul(%0, %1)", 0, 2},
	} {
		checkProducts(t, f, b, c.name, `
			%x = parameter "x" : f32[4,8]
			%w = parameter "w" : f32[8,4]
			%b = parameter "b" : f32[4]
			%r = parameter "r" : f32[4,4]
			`+c.body, c.products, c.launches, nearly)
	}
}

// TestProductsOfViews reads batches and views where they lie.
func TestProductsOfViews(t *testing.T) {
	f, b := newFake(t, 1)
	const params = `
		%q = parameter "q" : f32[2,8,4,16]
		%k = parameter "k" : f32[2,8,4,16]
		%w = parameter "w" : f32[4,16,8]
		%r = parameter "r" : f32[2,4,8,8]
		`
	for _, c := range []struct {
		name, body         string
		products, launches int
	}{
		{"heads of permuted projections", "return matmul(permute(%q, [0,2,1,3]), permute(%k, [0,2,3,1]))", 2, 0},
		{"with an addend and relu", "return relu(add(matmul(permute(%q, [0,2,1,3]), permute(%k, [0,2,3,1])), neg(%r)))", 2, 1},
		{"one key for a batch of heads", "return matmul(permute(%q, [0,2,1,3]), %w)", 2, 0},
		{"heads that share a key", "return matmul(%q, slice(%w, 0, 1, 2, 1))", 1, 0},
		{"a layer on a part of sequences", "return matmul(slice(reshape(%q, [2,8,64]), 1, 2, 6, 1), reshape(%w, [64,8]))", 1, 0},
		{"a layer on one of each", "return matmul(slice(reshape(%q, [2,8,64]), 1, 2, 3, 1), reshape(%w, [64,8]))", 1, 0},
	} {
		checkProducts(t, f, b, c.name, params+c.body, c.products, c.launches, nearly)
	}
}

// nearly is how products of f32s are close.
func nearly(_ ir.DType, got, want float64) bool { return math.Abs(got-want) < 2e-4 }

// checkProducts holds what a Program gives against the reference's, and counts its
// products and launches.
func checkProducts(t *testing.T, f *fakecuda.Fake, b *Backend, name, body string, products, launches int, closeTo func(d ir.DType, got, want float64) bool) {
	t.Helper()
	p, err := graph.Parse("program @p {" + body + "\n}")
	check(t, err)
	var raw [][]byte
	var in []backend.Buffer
	for i, q := range p.Params {
		d := q.Shape.DType()
		var data []byte
		for k := range q.Shape.Numel() {
			if v := 3 * math.Sin(float64(1+k*(i+2))); d.IsFloatOrF8() {
				data = elements.AppendFloat(data, d, v)
			} else {
				data = elements.AppendInt(data, d, int64(40*v))
			}
		}
		raw = append(raw, data)
		in = append(in, uploaded(t, b, q.Shape, data))
	}
	plain, _ := graph.Optimize(p, graph.Options{NoRules: true}) // without what ref has no kernel for
	want, err := ref.Eval(plain, raw)
	check(t, err)
	m, err := b.Compile(t.Context(), p, gpu(0), backend.CompileOptions{})
	check(t, err)
	f.Calls()
	outs, err := m.Run(t.Context(), in, nil)
	check(t, err)
	for i, o := range outs {
		expected := numbers(o.Shape(), want[i])
		for k, y := range got(t, o) {
			if !closeTo(o.Shape().DType(), y, expected[k]) {
				t.Errorf("%s: output %d, element %d is %v, want %v", name, i, k, y, expected[k])
			}
		}
	}
	if n := calls(f, "cublasLtMatmul", "cuLaunchKernel"); n[0] != products || n[1] != launches {
		t.Errorf("%s: %d products and %d launches, want %d and %d", name, n[0], n[1], products, launches)
	}
	check(t, m.Close())
}
