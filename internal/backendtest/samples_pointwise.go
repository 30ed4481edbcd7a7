package backendtest

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	makers["where"] = whereSamples
	makers["cast"] = castSamples
}

// pointwiseSamples returns the maker for primitives of one or two operands that have none of their
// own; nil for other ops.
func pointwiseSamples(sp *ir.Spec) func(m *maker) {
	switch {
	case sp.Category != ir.Pointwise || sp.Composite():
		return nil
	case len(sp.Schema.Params) == 1:
		return unarySamples
	case len(sp.Schema.Params) == 2:
		return binarySamples
	}
	return nil
}

// shapes are those of the unary samples: scalars, nothing, whole vectors, tails.
var shapes = [][]int{{}, {0}, {1}, {7}, {64}, {5, 7}, {2, 3, 4}, {2, 0, 3}, {1, 2, 1, 3, 1, 2, 1, 2}, {1003}}

func unarySamples(m *maker) {
	if m.dtype.IsComplex() {
		return
	}
	for _, dims := range shapes {
		m.call(fmt.Sprint(dims), []input{m.random(dims...)})
	}
	if m.dtype.IsStorage() {
		return
	}
	m.call("special values", []input{specials(m.dtype)})
	if m.dtype.Size() <= 2 && !m.short {
		m.call("all values", []input{every(m.dtype)})
	}
	m.add("of a scan of views", []input{m.random(6, 4)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		v := b.Slice(b.Permute(x[0], 1, 0), 1, 1, 6, 2)
		return []ir.Value{b.Unary(m.op, v), b.Unary(m.op, b.Flip(v, 0))}
	})
}

// pairs are the shapes of the binary samples: equal, one a scalar, rows,
// columns, both stretched, empty.
var pairs = [][2][]int{
	{{}, {}}, {{0}, {0}}, {{1}, {}}, {{5}, {5}}, {{}, {9}}, {{1003}, {1003}}, {{1003}, {}}, {{2, 3}, {3}}, {{7, 33}, {7, 1}},
	{{1, 33}, {7, 33}}, {{7, 1}, {1, 33}}, {{2, 1, 3}, {4, 1}}, {{0, 3}, {1, 3}}, {{1, 1}, {3, 1}}, {{2, 3, 4, 5}, {3, 1, 5}}, {{2, 3, 4, 5}, {1, 4, 1}},
}

func binarySamples(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, s := range pairs {
		m.call(fmt.Sprint(s[0], s[1]), []input{m.random(s[0]...), m.second(m.random(s[1]...))})
	}
	x := specials(m.dtype)
	n := x.shape.Dim(0)
	m.call("special values", []input{x.reshaped(n, 1), m.second(x)})
	m.add("of itself", []input{m.second(m.random(3, 5))}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Binary(m.op, x[0], x[0]), b.Binary(m.op, x[0], b.Flip(x[0], 1))}
	})
}

// second makes an operand fit to be the right one: integer divisors are not 0.
func (m *maker) second(x input) input {
	if m.dtype.IsFloat() || m.dtype == ir.Bool || !m.op.Spec().Divides {
		return x
	}
	v := elements.DecodeInts(m.dtype, x.data)
	for i := range v {
		if v[i] == 0 {
			v[i] = 1
		}
	}
	return input{x.shape, elements.EncodeInts(m.dtype, v)}
}

func whereSamples(m *maker) {
	for _, s := range append(slices.Clone(pairs), [2][]int{{4, 5}, {4, 5}}) {
		rank := max(len(s[0]), len(s[1]))
		full := make([]int, rank)
		for i := range full {
			full[i] = 1
			for _, d := range s {
				if k := i - rank + len(d); k >= 0 && d[k] != 1 {
					full[i] = d[k]
				}
			}
		}
		for _, c := range [][]int{full, s[0], s[1], {}} {
			m.call(fmt.Sprint(c, s[0], s[1]), []input{random(m.rng, ir.Bool, c...), m.random(s[0]...), m.random(s[1]...)})
		}
	}
}

func castSamples(m *maker) {
	for _, to := range ir.DTypes() {
		m.call("to "+to.String(), []input{m.random(3, 35)}, to)
		m.call("a scalar to "+to.String(), []input{m.random()}, to)
		m.call("nothing to "+to.String(), []input{m.random(0)}, to)
		if !m.dtype.IsStorage() {
			m.call("special values to "+to.String(), []input{specials(m.dtype)}, to)
		}
		if m.dtype == ir.F64 {
			wide := elements.EncodeFloats(m.dtype, []float64{1<<31 + 77, -1<<31 - 1, 1<<32 + 7, 1e12 + 7, 9.3e18, -9.3e18})
			m.call("values beyond 32 bits to "+to.String(), []input{vector(m.dtype, wide)}, to)
		}
		if m.dtype.IsF8() || m.dtype.Size() <= 2 && !m.short {
			m.call("all values to "+to.String(), []input{every(m.dtype)}, to)
		}
	}
}
