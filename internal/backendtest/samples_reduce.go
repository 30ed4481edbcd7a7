package backendtest

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	for _, name := range []string{"sum", "prod", "amax", "amin", "any", "all"} {
		makers[name] = reduction
	}
	makers["argmax"] = argReduction
	makers["argmin"] = argReduction
	makers["cumsum"] = scan
	makers["cumprod"] = scan
	makers["cummax"] = scan
}

// nearOne returns elements whose product stays in range.
func (m *maker) nearOne(dims ...int) input {
	x := m.random(dims...)
	if (m.op != aten.Prod && m.op != aten.Cumprod) || !m.dtype.IsFloat() {
		return x
	}
	v := elements.DecodeFloats(m.dtype, x.data)
	for i := range v {
		v[i] = 1 + v[i]/16
	}
	return input{x.shape, elements.EncodeFloats(m.dtype, v)}
}

func reduction(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, c := range []struct{ dims, over []int }{
		{[]int{}, nil}, {[]int{}, []int{0}}, {[]int{1}, nil}, {[]int{17}, nil}, {[]int{4096}, nil}, {[]int{1003}, []int{-1}},
		{[]int{3, 4, 5}, nil}, {[]int{3, 4, 5}, []int{}}, {[]int{3, 4, 5}, []int{0}}, {[]int{3, 4, 5}, []int{1}}, {[]int{3, 4, 5}, []int{-1}},
		{[]int{3, 4, 5}, []int{0, 2}}, {[]int{3, 4, 5}, []int{2, 1}}, {[]int{3, 4, 5}, []int{0, 1, 2}}, {[]int{70, 33}, []int{0}},
		{[]int{70, 33}, []int{1}}, {[]int{2, 300}, []int{1}}, {[]int{300, 2}, []int{0}}, {[]int{3, 1, 40, 1}, []int{2}}, {[]int{2, 0, 3}, []int{0}},
		{[]int{2, 3, 2, 3, 2}, []int{1, 3}},
	} {
		for _, keep := range []bool{false, true} {
			var over any
			if c.over != nil {
				over = c.over
			}
			m.call(fmt.Sprint(c.dims, over, keep), []input{m.nearOne(c.dims...)}, over, keep)
		}
	}
	m.call("special values", []input{specials(m.dtype).reshaped(specials(m.dtype).shape.Dim(0), 1)}, []int{1})
	if m.op != aten.Amax && m.op != aten.Amin {
		m.call("no elements", []input{m.random(0, 3)}, []int{0})
		m.call("no elements at all", []input{m.random(0, 3)})
	}
	if m.op == aten.Sum || m.op == aten.Prod {
		for _, to := range ir.ComputeDTypes() {
			m.call("to "+to.String(), []input{m.nearOne(4, 9)}, []int{1}, false, to)
		}
	} else if m.dtype.IsFloat() {
		m.call("NaN", []input{vector(m.dtype, elements.EncodeFloats(m.dtype, withNaN(40, 3, 17)))})
	}
	m.add("of a transpose", []input{m.nearOne(6, 35)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		t := b.Permute(x[0], 1, 0)
		return []ir.Value{b.Call1(m.op, []any{t, []int{0}}), b.Call1(m.op, []any{t, []int{1}})}
	})
}

// withNaN returns n numbers with NaN at the given places.
func withNaN(n int, places ...int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i * 7 % 11)
	}
	zero := 0.0
	for _, p := range places {
		v[p] = zero / zero
	}
	return v
}

func argReduction(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, dims := range [][]int{{}, {1}, {1003}, {3, 4, 5}, {70, 33}, {2, 300}} {
		for _, keep := range []bool{false, true} {
			m.call(fmt.Sprint(dims, keep), []input{m.random(dims...)}, nil, keep)
			for d := -1; d < len(dims); d++ {
				m.call(fmt.Sprint(dims, d, keep), []input{m.random(dims...)}, d, keep)
			}
		}
	}
	m.call("empty result", []input{m.random(0, 3)}, 1)
	m.call("special values", []input{specials(m.dtype)})
	if m.dtype.IsFloat() {
		m.call("NaN", []input{vector(m.dtype, elements.EncodeFloats(m.dtype, withNaN(40, 17, 3, 39)))})
	}
}

func scan(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, dims := range [][]int{{}, {0}, {1}, {203}, {3, 4, 5}, {70, 33}, {2, 0, 3}} {
		for d := -1; d < len(dims); d++ {
			m.call(fmt.Sprint(dims, d), []input{m.nearOne(dims...)}, d)
		}
	}
	if m.op != aten.Cummax {
		for _, to := range ir.ComputeDTypes() {
			m.call("to "+to.String(), []input{m.nearOne(4, 9)}, 1, to)
		}
	} else if m.dtype.IsFloat() {
		m.call("NaN", []input{vector(m.dtype, elements.EncodeFloats(m.dtype, withNaN(40, 17, 3, 39)))}, 0)
	}
}
