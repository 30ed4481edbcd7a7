package ir

// Comparisons with a tolerance or a set, and places of triangles.

func init() {
	register("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", Spec{
		Category: Indexing, Promote: PromoteDefault, NoGrad: noGradBool,
		Doc: "Whether |self - other| is at most atol + rtol·|other|, or both are equal, or both NaN with equal_nan, elementwise with broadcasting, as bool. ATen's isclose.",
		Decompose: func(b *Builder, a Args) []Value {
			x, y := a.In[0], a.In[1]
			rtol, atol := a.float("rtol"), a.float("atol")
			if rtol < 0 || atol < 0 {
				a.Fail(ErrArg, "rtol and atol must be greater than or equal to zero, but got %v and %v", rtol, atol)
			}
			same := b.eq(x, y)
			if !x.DType().IsFloat() {
				x, y = b.Cast(x, F64), b.Cast(y, F64)
			} else if a.Bool("equal_nan") {
				same = b.logicalOr(same, b.logicalAnd(b.isNaN(x), b.isNaN(y)))
			}
			off := b.abs(b.Sub(x, y))
			near := b.le(off, b.shift(b.scale(b.abs(y), rtol), atol))
			return []Value{b.logicalOr(same, b.logicalAnd(b.isFinite(off), near))}
		},
	})
	register("isin(Tensor elements, Tensor test_elements, *, bool invert=False) -> Tensor", Spec{
		Category: Indexing, Promote: PromoteDefault, NoGrad: noGradBool,
		Doc: "Whether each of elements is among test_elements, or with invert is not, as bool. ATen's isin.",
		Decompose: func(b *Builder, a Args) []Value {
			x, set := a.In[0], b.flatten(a.In[1])
			requireArithmetic(a, x.DType())
			if x.DType() == Bool {
				x, set = b.Cast(x, U8), b.Cast(set, U8)
			}
			n := set.Dim(0)
			if n == 0 {
				return []Value{b.Full(x.Shape().Dims(), a.Bool("invert"), Bool)}
			}
			sorted, _ := b.Sort(set, 0, false)
			at := b.callNamed("searchsorted", []any{sorted, b.flatten(x)})
			found := b.Reshape(b.IndexSelect(sorted, 0, b.minimum(at, b.Const(n-1, I64))), x.Shape().Dims()...)
			if a.Bool("invert") {
				return []Value{b.ne(found, x)}
			}
			return []Value{b.eq(found, x)}
		},
	})
	triangle := func(name, side string, compare *Op) {
		register(name+"_indices(int row, int col, int offset=0, *, ScalarType dtype=i64) -> Tensor", Spec{
			Category: Creation, NoGrad: constantGrad,
			Doc: "The rows and the columns, i64[2, n] or i32, of the elements on and " + side + " the given diagonal of a matrix [row, col], in row-major order. ATen's " + name + "_indices.",
			Decompose: func(b *Builder, a Args) []Value {
				rows, cols, offset, d := a.Int("row"), a.Int("col"), a.Int("offset"), a.DType("dtype")
				if rows < 0 || cols < 0 || d != I64 && d != I32 {
					a.Fail(ErrArg, "row and col must not be negative and dtype i64 or i32, got %d, %d and %v", rows, cols, d)
				}
				inferDims(a, I64, []int{rows, cols})
				n := 0
				for r := range rows {
					below := min(max(r+offset+1, 0), cols)
					if name == "triu" {
						below = cols - min(max(r+offset, 0), cols)
					}
					n += below
				}
				i, j := b.rowsAndColumns(rows, cols)
				inside := b.Binary(*compare, b.Sub(j, i), b.Const(offset, I64))
				at := b.callNamed("nonzero_static", []any{}, A("self", b.ExpandAs(inside, b.Full([]int{rows, cols}, false, Bool))), A("size", n))
				return []Value{b.Cast(b.Transpose(at, 0, 1), d)}
			},
		})
	}
	triangle("tril", "below", &opLe)
	triangle("triu", "above", &opGe)
	register("index_fill(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", Spec{
		Category: Indexing,
		Doc:      "self with value, of rank 0 and cast to self's dtype, in the slices along dim that index names; a negative one counts from the end. ATen's index_fill.",
		Decompose: func(b *Builder, a Args) []Value {
			x, index, v := a.In[0], a.In[1], a.In[2]
			requireIndex(a, index)
			if v.Rank() != 0 || index.Rank() > 1 {
				a.Fail(ErrShape, "value must have no dimensions and index at most one, got %v and %v", v.Shape(), index.Shape())
			}
			return b.alongDim(x, a.Dim("dim", x.Rank()), func(x Value, dim int) []Value {
				index = b.flatten(index)
				source := b.Expand(b.Cast(v, x.DType()), dimsWith(x, dim, index.Dim(0))...)
				return []Value{b.indexCopy(x, dim, b.wrapIndex(index, x.Dim(dim)), source)}
			})
		},
	})
}
