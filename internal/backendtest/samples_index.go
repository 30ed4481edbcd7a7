package backendtest

import (
	"fmt"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	makers["gather"] = gather
	makers["scatter"] = scatter
	makers["scatter_reduce"] = scatterReduce
	makers["index_select"] = indexSelect
	makers["index_add"] = indexAdd
	makers["sort"] = sortSamples
}

var indexDTypes = []ir.DType{ir.I64, ir.I32}

// addIndexed adds a sample of an op(self, dim, index, more..., rest...).
func (m *maker) addIndexed(name string, dim int, in []input, rest ...any) {
	m.add(name, in, func(b *ir.Builder, x []ir.Value) []ir.Value {
		args := []any{x[0], dim}
		for _, v := range x[1:] {
			args = append(args, v)
		}
		return b.Call(m.op, append(args, rest...))
	})
}

// places are shapes of self, dimension and shape of the index, as gather and
// scatter take them.
var places = []struct {
	self  []int
	dim   int
	index []int
}{
	{[]int{}, 0, []int{}}, {[]int{5}, 0, []int{9}}, {[]int{5}, -1, []int{0}}, {[]int{3, 4}, 0, []int{7, 4}}, {[]int{3, 4}, 1, []int{2, 6}},
	{[]int{40, 33}, 1, []int{40, 33}}, {[]int{40, 33}, 0, []int{40, 33}}, {[]int{2, 3, 4}, 1, []int{2, 5, 3}}, {[]int{3, 4}, 0, []int{0, 4}},
}

func gather(m *maker) {
	for _, c := range places {
		for _, t := range indexDTypes {
			self := m.random(c.self...)
			n := ir.AtLeast1D(self.shape).Dim(c.dim)
			m.addIndexed(fmt.Sprint(c, t), c.dim, []input{self, indices(m.rng, t, n, c.index...)})
		}
	}
}

// scatterInputs returns self, index and src, the latter sometimes larger than
// the index.
func (m *maker) scatterInputs(i int, t ir.DType) []input {
	c := places[i]
	self := m.random(c.self...)
	n := ir.AtLeast1D(self.shape).Dim(c.dim)
	src := append([]int(nil), c.index...)
	if i%2 == 1 && len(src) > 0 {
		src[0]++
	}
	return []input{self, indices(m.rng, t, n, c.index...), m.random(src...)}
}

func scatter(m *maker) {
	for i, c := range places {
		for _, t := range indexDTypes {
			m.addIndexed(fmt.Sprint(c, t), c.dim, m.scatterInputs(i, t))
		}
	}
}

func scatterReduce(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for i, c := range places {
		for _, reduce := range []string{"sum", "prod", "mean", "amax", "amin"} {
			for _, self := range []bool{true, false} {
				m.add(fmt.Sprint(c, reduce, self), m.scatterInputs(i, indexDTypes[i%2]), func(b *ir.Builder, x []ir.Value) []ir.Value {
					return b.Call(m.op, []any{x[0], c.dim, x[1], x[2], reduce}, ir.A("include_self", self))
				})
			}
		}
	}
}

// rows are shapes of self, dimension and length of the index, as index_select
// and index_add take them.
var rows = []struct {
	self []int
	dim  int
	n    int
}{
	{[]int{5}, 0, 9}, {[]int{5}, 0, 0}, {[]int{3, 4}, 0, 5}, {[]int{3, 4}, -1, 6}, {[]int{70, 33}, 0, 50}, {[]int{2, 3, 4}, 1, 7}, {[]int{3, 0}, 0, 2},
}

func indexSelect(m *maker) {
	for _, c := range rows {
		for _, t := range indexDTypes {
			self := m.random(c.self...)
			m.addIndexed(fmt.Sprint(c, t), c.dim, []input{self, indices(m.rng, t, self.shape.Dim(c.dim), c.n)})
		}
	}
	m.addIndexed("scalar index", 0, []input{m.random(4, 3), indices(m.rng, ir.I64, 4)})
	m.addIndexed("scalar self", 0, []input{m.random(), indices(m.rng, ir.I64, 1, 1)})
}

func indexAdd(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, c := range rows {
		for _, t := range indexDTypes {
			self := m.random(c.self...)
			src := self.shape.Dims()
			src[(c.dim+len(src))%len(src)] = c.n
			m.addIndexed(fmt.Sprint(c, t), c.dim, []input{self, indices(m.rng, t, self.shape.Dim(c.dim), c.n), m.random(src...)})
		}
	}
	m.addIndexed("scalar self", 0, []input{m.random(), indices(m.rng, ir.I64, 1, 1), m.random()})
}

func sortSamples(m *maker) {
	if m.dtype.IsStorage() {
		return
	}
	for _, dims := range [][]int{{}, {0}, {1}, {2}, {1003}, {70, 33}, {3, 4, 5}, {2, 0}} {
		for d := -1; d < len(dims); d++ {
			for _, down := range []bool{false, true} {
				m.call(fmt.Sprint(dims, d, down), []input{m.random(dims...)}, d, down)
			}
		}
	}
	for _, down := range []bool{false, true} {
		m.call(fmt.Sprint("special values ", down), []input{specials(m.dtype)}, 0, down)
		if m.dtype.IsFloat() {
			m.call(fmt.Sprint("NaN ", down), []input{vector(m.dtype, elements.EncodeFloats(m.dtype, withNaN(40, 17, 3, 39)))}, 0, down)
		}
	}
}
