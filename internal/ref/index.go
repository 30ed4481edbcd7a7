package ref

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	kernels[aten.Gather] = gather
	kernels[aten.Scatter] = scatter
	kernels[aten.ScatterReduce] = scatterReduce
	kernels[aten.IndexSelect] = indexSelect
	kernels[aten.IndexAdd] = indexAdd
}

// index returns element i of an index tensor; it panics with an error wrapping
// ir.ErrIndex unless 0 <= index < n, n being the size of dimension dim.
func index(t tensor, i, dim, n int) int {
	v := t.int(i)
	if v < 0 || v >= int64(n) {
		panic(fmt.Errorf("%w: index %d is out of bounds for dimension %d of size %d", ir.ErrIndex, v, dim, n))
	}
	return int(v)
}

// places calls f for each element of the index operand of gather and scatter
// with its position, its coordinates, and the same ones with the index in place
// of coordinate dim; self is the shape that is indexed.
func places(c *call, self ir.Shape, f func(flat int, idx, place []int)) {
	t, _ := c.operand("index")
	dim := c.Dim("dim", self.Rank())
	self = ir.AtLeast1D(self)
	place := make([]int, self.Rank())
	each(ir.AtLeast1D(t.shape), func(idx []int, flat int) {
		copy(place, idx)
		place[dim] = index(t, flat, dim, self.Dim(dim))
		f(flat, idx, place)
	})
}

// position is at without broadcasting, on shapes that count as at least [1].
func position(s ir.Shape, idx []int) int {
	pos := 0
	for d := range ir.AtLeast1D(s).Rank() {
		pos = pos*ir.AtLeast1D(s).Dim(d) + idx[d]
	}
	return pos
}

func gather(c *call) {
	x := c.in[0]
	places(c, x.shape, func(flat int, _, place []int) {
		c.out[0].copyFrom(flat, x, position(x.shape, place))
	})
}

func scatter(c *call) {
	out := c.out[0]
	src, _ := c.operand("src")
	copy(out.data, c.in[0].data)
	places(c, out.shape, func(_ int, idx, place []int) {
		out.copyFrom(position(out.shape, place), src, position(src.shape, idx))
	})
}

// scatterReduce collects the elements for each place and folds them.
func scatterReduce(c *call) {
	x, out := c.in[0], c.out[0]
	src, _ := c.operand("src")
	copy(out.data, x.data)
	groups := make([][]int, out.numel())
	places(c, out.shape, func(_ int, idx, place []int) {
		p := position(out.shape, place)
		groups[p] = append(groups[p], position(src.shape, idx))
	})
	for p, g := range groups {
		if len(g) == 0 {
			continue
		}
		parts := newTensor(x.shape.WithDims(len(g)))
		for k, i := range g {
			parts.copyFrom(k, src, i)
		}
		if c.Bool("include_self") {
			own := newTensor(x.shape.WithDims(1))
			own.copyFrom(0, x, p)
			parts = tensor{x.shape.WithDims(len(g) + 1), append(own.data, parts.data...)}
		}
		fold(out, p, parts, c.Str("reduce"))
	}
}

// fold sets element p of out to the reduction of a vector that is not empty.
// The mean of integers is rounded down.
func fold(out tensor, p int, x tensor, reduce string) {
	n := x.numel()
	switch reduce {
	case "amax", "amin":
		better := greater
		if reduce == "amin" {
			better = less
		}
		best := 0
		for k := range n {
			if better(x, k, best) {
				best = k
			}
		}
		out.copyFrom(p, x, best)
		return
	}
	if x.dtype().IsFloat() {
		acc := x.float(0)
		for k := 1; k < n; k++ {
			if reduce == "prod" {
				acc *= x.float(k)
			} else {
				acc += x.float(k)
			}
		}
		if reduce == "mean" {
			acc /= float64(n)
		}
		out.setFloat(p, acc)
		return
	}
	acc := x.int(0)
	for k := 1; k < n; k++ {
		if reduce == "prod" {
			acc *= x.int(k)
		} else {
			acc += x.int(k)
		}
	}
	if reduce == "mean" {
		q := acc / int64(n)
		if acc%int64(n) < 0 {
			q--
		}
		acc = q
	}
	out.setInt(p, acc)
}

func indexSelect(c *call) {
	x, out := c.in[0], c.out[0]
	t, _ := c.operand("index")
	dim := c.Dim("dim", x.shape.Rank())
	s := ir.AtLeast1D(x.shape)
	each(ir.AtLeast1D(out.shape), func(idx []int, flat int) {
		k := idx[dim]
		idx[dim] = index(t, k, dim, s.Dim(dim))
		out.copyFrom(flat, x, position(s, idx))
		idx[dim] = k
	})
}

func indexAdd(c *call) {
	x, out := c.in[0], c.out[0]
	t, _ := c.operand("index")
	source, _ := c.operand("source")
	dim := c.Dim("dim", x.shape.Rank())
	s := ir.AtLeast1D(x.shape)
	sums := make([]float64, x.numel())
	for i := range sums {
		sums[i] = x.float(i)
	}
	copy(out.data, x.data)
	each(ir.AtLeast1D(source.shape), func(idx []int, flat int) {
		k := idx[dim]
		idx[dim] = index(t, k, dim, s.Dim(dim))
		p := position(s, idx)
		idx[dim] = k
		if out.dtype().IsFloat() {
			sums[p] += source.float(flat)
			out.setFloat(p, sums[p])
		} else {
			out.setInt(p, out.int(p)+source.int(flat))
		}
	})
}
