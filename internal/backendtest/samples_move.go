package backendtest

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	makers["reshape"] = reshape
	makers["view_as_real"] = complexView
	makers["view_as_complex"] = complexView
	makers["permute"] = permute
	makers["expand"] = expand
	makers["slice"] = slice
	makers["flip"] = flip
	makers["cat"] = cat
	makers["constant_pad_nd"] = constantPad
	makers["full"] = full
	makers["arange"] = arange
	makers["linspace"] = linspace
}

func reshape(m *maker) {
	for _, c := range [][2][]int{
		{{}, {1, 1}}, {{1}, {}}, {{12}, {3, 4}}, {{3, 4}, {-1}}, {{2, 3, 4}, {4, -1, 3}}, {{0, 3}, {3, 0}}, {{5, 7}, {5, 7}},
		{{2, 1, 3}, {1, 2, 3, 1}},
	} {
		m.call(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...)}, c[1])
	}
	m.add("of a transpose", []input{m.random(5, 7)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Reshape(b.Permute(x[0], 1, 0), 35)}
	})
}

func permute(m *maker) {
	for _, c := range [][2][]int{
		{{}, {}}, {{4}, {0}}, {{5, 7}, {1, 0}}, {{67, 35}, {-1, 0}}, {{2, 3, 4}, {0, 2, 1}}, {{2, 3, 4}, {2, 0, 1}}, {{2, 3, 4}, {1, 0, 2}},
		{{2, 0, 3}, {2, 1, 0}}, {{2, 3, 4, 5}, {0, 2, 1, 3}}, {{2, 3, 4, 5}, {3, 1, 0, 2}}, {{2, 1, 2, 1, 2, 1, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}},
	} {
		m.call(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...)}, c[1])
	}
}

// complexView has pairs that lie as complex numbers do, and others.
func complexView(m *maker) {
	for _, dims := range [][]int{{2}, {5, 2}, {3, 0, 2}, {2, 3, 2}} {
		m.call(fmt.Sprint(dims), []input{m.random(dims...)})
	}
	m.add("of a transpose", []input{m.random(2, 6)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Unary(m.op, b.Permute(x[0], 1, 0))}
	})
	m.add("of slices", []input{m.random(6, 4)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		v := b.Slice(x[0], 0, 1, 6, 2)
		return []ir.Value{b.Unary(m.op, b.Slice(v, 1, 1, 3, 1)), b.Unary(m.op, b.Slice(v, 1, 2, 4, 1)), b.Unary(m.op, b.Slice(v, 1, 0, 4, 2))}
	})
	m.add("of odd rows", []input{m.random(5, 3)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Unary(m.op, b.Slice(x[0], 1, 0, 2, 1))}
	})
}

func expand(m *maker) {
	for _, c := range [][2][]int{
		{{}, {}}, {{}, {3, 2}}, {{1}, {5}}, {{1}, {0}}, {{3}, {4, 3}}, {{3, 1}, {3, 70}}, {{3, 1}, {2, -1, 5}}, {{1, 3, 1}, {2, 3, 4}}, {{0, 1}, {0, 5}},
	} {
		m.call(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...)}, c[1])
	}
}

func slice(m *maker) {
	for _, c := range []struct {
		dims       []int
		dim        int
		start, end any
		step       int
	}{
		{[]int{9}, 0, nil, nil, 1}, {[]int{9}, 0, 2, 7, 1}, {[]int{9}, 0, -3, nil, 1}, {[]int{9}, 0, nil, -3, 2}, {[]int{9}, 0, 7, 2, 1},
		{[]int{9}, 0, -100, 100, 4}, {[]int{9}, 0, nil, nil, -1}, {[]int{9}, 0, 7, 2, -2}, {[]int{9}, 0, 20, nil, 1}, {[]int{4, 9}, 0, 1, 3, 1},
		{[]int{4, 9}, -1, 1, 8, 3}, {[]int{4, 9}, 1, nil, nil, -3}, {[]int{2, 5, 3}, 1, 1, 4, 2}, {[]int{2, 0, 3}, 1, 0, 1, 1}, {[]int{70, 40}, 1, 3, 36, 1},
	} {
		m.call(fmt.Sprint(c.dims, c.dim, c.start, c.end, c.step), []input{m.random(c.dims...)}, c.dim, c.start, c.end, c.step)
	}
}

func flip(m *maker) {
	for _, c := range [][2][]int{
		{{}, {}}, {{9}, {0}}, {{70}, {-1}}, {{3, 4}, {}}, {{3, 4}, {0}}, {{3, 4}, {1}}, {{3, 4}, {0, 1}}, {{2, 3, 4}, {0, -1}}, {{2, 0}, {0}},
	} {
		m.call(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...)}, c[1])
	}
}

func cat(m *maker) {
	for _, c := range []struct {
		dims [][]int
		dim  int
	}{
		{[][]int{{3}}, 0}, {[][]int{{3}, {4}}, 0}, {[][]int{{3}, {0}, {1}}, -1}, {[][]int{{2, 3}, {4, 3}}, 0}, {[][]int{{2, 3}, {2, 1}, {2, 70}}, 1},
		{[][]int{{2, 1, 3}, {2, 2, 3}}, 1}, {[][]int{{0, 3}, {0, 4}}, 1},
	} {
		in := make([]input, len(c.dims))
		for i, d := range c.dims {
			in[i] = m.random(d...)
		}
		m.add(fmt.Sprint(c.dims, c.dim), in, func(b *ir.Builder, x []ir.Value) []ir.Value {
			return []ir.Value{b.Cat(x, c.dim)}
		})
	}
	m.add("the same twice", []input{m.random(2, 3)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		return []ir.Value{b.Cat([]ir.Value{x[0], b.Flip(x[0], 1), x[0]}, 0)}
	})
}

func constantPad(m *maker) {
	for _, c := range [][2][]int{
		{{}, {}}, {{5}, {1, 2}}, {{5}, {-1, -2}}, {{5}, {3, -4}}, {{3, 4}, {1, 0}}, {{3, 4}, {0, 1, 2, 0}}, {{3, 4}, {-1, 1, 1, -1}},
		{{2, 3, 4}, {0, 0, 1, 1}}, {{0, 2}, {1, 1, 1, 1}}, {{30, 40}, {1, 1, 1, 1}}, {{5}, {-5, 0}},
	} {
		m.add(fmt.Sprint(c[0], c[1]), []input{m.random(c[0]...), m.random()}, func(b *ir.Builder, x []ir.Value) []ir.Value {
			return []ir.Value{b.PadConst(x[0], c[1], x[1])}
		})
	}
}

func full(m *maker) {
	values := []any{0, 1, -3, 2.5, true}
	if !m.dtype.IsInt() {
		values = append(values, 300, 1e30, -0.1) // which not all integers hold
	}
	for _, v := range values {
		for _, dims := range [][]int{{}, {0}, {3, 37}} {
			m.call(fmt.Sprint(dims, v), nil, dims, v, m.dtype)
		}
	}
}

func arange(m *maker) {
	for _, c := range [][3]any{
		{0, 0, 1}, {0, 70, 1}, {5, -5, -1}, {1, 10, 3}, {0.0, 1.0, 0.1}, {-1.5, 2.5, 0.25}, {3.5, 0.5, -1.0}, {0, 100000, 7},
	} {
		m.call(fmt.Sprint(c), nil, c[0], c[1], c[2], m.dtype)
	}
}

func linspace(m *maker) {
	for _, c := range []struct {
		start, end any
		steps      int
	}{
		{0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 10, 4}, {5, 1, 5}, {0, 100, 301}, {-1.5, 2.5, 37},
	} {
		if m.dtype == ir.U8 && c.start == -1.5 {
			continue // which it cannot hold
		}
		m.call(fmt.Sprint(c), nil, c.start, c.end, c.steps, m.dtype)
	}
}
