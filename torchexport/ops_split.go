package torchexport

import (
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// splitOps are views that ATen makes of other views.
var splitOps = map[string]func(c *call) []any{
	"aten.atleast_1d":                              atLeast(func(d []int) []int { return padDims(d, 1) }),
	"aten.atleast_2d":                              atLeast(func(d []int) []int { return padDims(d, 2) }),
	"aten.atleast_3d":                              atLeast(atLeast3D),
	"aten.tensor_split.sections":                   tensorSplit,
	"aten.tensor_split.indices":                    func(c *call) []any { return c.splitAt(c.intOr("dim", 0), c.ints("indices")) },
	"aten.tensor_split.tensor_indices_or_sections": splitByTensor,
	"aten.hsplit":                                  func(c *call) []any { return c.splitAlong(min(c.value("self").Rank()-1, 1)) },
	"aten.vsplit":                                  func(c *call) []any { return c.splitAlong(0) },
	"aten.dsplit":                                  func(c *call) []any { return c.splitAlong(2) },
	"aten.mH":                                      adjoint,
	"aten.adjoint":                                 adjoint,
	"aten.matrix_H":                                adjoint,
}

// splitByTensor splits at indices, or into sections, that a tensor tells.
func splitByTensor(c *call) []any {
	where := c.value("tensor_indices_or_sections")
	at, err := where.Cast(ir.I64).Int64s(c.wait())
	c.check(err)
	dim := c.intOr("dim", 0)
	if where.Rank() == 0 {
		return c.sections(dim, int(at[0]))
	}
	indices := make([]int, len(at))
	for i, n := range at {
		indices[i] = int(n)
	}
	return c.splitAt(dim, indices)
}

// copied makes an op that returns views one that returns tensors of their own.
func copied(run func(c *call) []any) func(c *call) []any {
	return func(c *call) []any { return owned(run(c)).([]any) }
}

// owned replaces views by tensors with their values.
func owned(v any) any {
	switch v := v.(type) {
	case *tensor:
		return newTensor(v.value())
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = owned(x)
		}
		return out
	}
	return v
}

// viewOfCopy returns the name of the view of which the op of a name is a copy, "permute" for
// "permute_copy".
func viewOfCopy(name string) (string, bool) {
	base, ok := strings.CutSuffix(name, "_copy")
	return base, ok && (viewOps["aten."+base] != nil || castOps["aten."+base] != nil)
}

// padDims puts ones before dims until there are n.
func padDims(dims []int, n int) []int { return append(ones(n-len(dims)), dims...) }

func atLeast3D(dims []int) []int {
	if len(dims) == 2 {
		return []int{dims[0], dims[1], 1}
	}
	if len(dims) == 1 {
		return []int{1, dims[0], 1}
	}
	return padDims(dims, 3)
}

// atLeast gives a tensor, or each of a list, more dimensions of size 1.
func atLeast(dims func(have []int) []int) func(c *call) []any {
	return func(c *call) []any {
		if _, ok := c.first(); ok {
			return c.sameElements(dims(c.value("self").Dims()))
		}
		ts := c.tensors("tensors")
		for i, t := range ts {
			ts[i] = t.Reshape(dims(t.Dims())...)
		}
		return []any{many(ts...)}
	}
}

func tensorSplit(c *call) []any { return c.sections(c.intOr("dim", 0), c.int("sections")) }

// sections are n views along dim, the first of which are longer by one where the size is no multiple.
func (c *call) sections(dim, n int) []any {
	size := c.value("self").Dim(dim)
	if n <= 0 || n > 1<<16 {
		panic(misuse(c.n.target, "%d sections", n))
	}
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size / n
		if i < size%n {
			sizes[i]++
		}
	}
	return c.piecesAlong(dim, sizes)
}

// splitAt are views along dim that begin at 0 and at each index; one may begin behind its end.
func (c *call) splitAt(dim int, indices []int) []any {
	size := c.value("self").Dim(dim)
	out := make([]any, 0, len(indices)+1)
	from := 0
	for _, to := range append(slices.Clone(indices), size) {
		to = clip(to, size)
		out = append(out, c.sliced(dim, from, max(from, to), 1))
		from = to
	}
	return []any{out}
}

// splitAlong splits into equal sections or at indices.
func (c *call) splitAlong(dim int) []any {
	if rank := c.value("self").Rank(); dim < 0 || dim >= rank {
		panic(misuse(c.n.target, "a tensor of rank %d", rank))
	}
	if _, ok := c.arg("indices"); ok {
		return c.splitAt(dim, c.ints("indices"))
	}
	n := c.int("sections")
	if size := c.value("self").Dim(dim); n <= 0 || size%n != 0 {
		panic(misuse(c.n.target, "%d equal sections of size %d", n, size))
	}
	return c.sections(dim, n)
}

// adjoint is the transposed matrix, conjugate where it is complex.
func adjoint(c *call) []any {
	if !c.value("self").DType().IsComplex() {
		return c.transposed(-2, -1)
	}
	turn := func(t *loris.Tensor) *loris.Tensor { return c.do("conj", t).Transpose(-2, -1) }
	return []any{c.tensor("self").view(turn, func(_, v *loris.Tensor) *loris.Tensor { return turn(v) })}
}
