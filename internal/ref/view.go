package ref

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	for _, op := range []ir.Op{aten.Reshape, aten.ViewAsReal, aten.ViewAsComplex} {
		kernels[op] = func(c *call) { copy(c.out[0].data, c.in[0].data) }
	}
	kernels[aten.Permute] = permute
	kernels[aten.Expand] = expand
	kernels[aten.Slice] = slice
	kernels[aten.Flip] = flip
	kernels[aten.Cat] = cat
	kernels[aten.ConstantPadNd] = constantPad
}

// move fills the output with elements of x; from maps coordinates of the output
// in place to those of x.
func move(c *call, from func(idx []int)) {
	x, out := c.in[0], c.out[0]
	at2 := make([]int, out.shape.Rank())
	each(out.shape, func(idx []int, flat int) {
		copy(at2, idx)
		from(at2)
		out.copyFrom(flat, x, at(x.shape, at2))
	})
}

func permute(c *call) {
	dims := ir.PermuteDims(c.Args)
	tmp := make([]int, len(dims))
	move(c, func(idx []int) {
		copy(tmp, idx)
		for i, d := range dims {
			idx[d] = tmp[i]
		}
	})
}

func expand(c *call) { move(c, func([]int) {}) }

func slice(c *call) {
	dim, start, _, step := ir.SliceBounds(c.Args)
	move(c, func(idx []int) { idx[dim] = start + idx[dim]*step })
}

func flip(c *call) {
	mask := ir.FlipDims(c.Args)
	s := c.in[0].shape
	move(c, func(idx []int) {
		for d := range idx {
			if mask[d] {
				idx[d] = s.Dim(d) - 1 - idx[d]
			}
		}
	})
}

func cat(c *call) {
	out := c.out[0]
	dim := c.Dim("dim", out.shape.Rank())
	offset := 0
	for _, x := range c.in {
		each(x.shape, func(idx []int, flat int) {
			idx[dim] += offset
			out.copyFrom(at(out.shape, idx), x, flat)
			idx[dim] -= offset
		})
		offset += x.shape.Dim(dim)
	}
}

func constantPad(c *call) {
	x, out := c.in[0], c.out[0]
	value, _ := c.operand("value")
	pad := c.Ints("pad")
	rank := x.shape.Rank()
	src := make([]int, rank)
	each(out.shape, func(idx []int, flat int) {
		inside := true
		for d := range rank {
			src[d] = idx[d]
			if p := 2 * (rank - 1 - d); p < len(pad) {
				src[d] -= pad[p]
			}
			inside = inside && src[d] >= 0 && src[d] < x.shape.Dim(d)
		}
		if inside {
			out.copyFrom(flat, x, at(x.shape, src))
		} else {
			out.copyFrom(flat, value, 0)
		}
	})
}
