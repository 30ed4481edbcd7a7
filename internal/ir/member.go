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
	triangle := func(name, side string) {
		register(name+"_indices(int row, int col, int offset=0, *, ScalarType dtype=i64) -> Tensor", Spec{
			Category: Creation, NoGrad: constantGrad,
			Doc: "The rows and the columns, i64[2, n] or i32, of the elements on and " + side + " the given diagonal of a matrix [row, col], in row-major order. ATen's " + name + "_indices.",
			Decompose: func(b *Builder, a Args) []Value {
				rows, cols, offset, d := a.Int("row"), a.Int("col"), a.Int("offset"), a.DType("dtype")
				if rows < 0 || cols < 0 || d != I64 && d != I32 {
					a.Fail(ErrArg, "row and col must not be negative and dtype i64 or i32, got %d, %d and %v", rows, cols, d)
				}
				inferDims(a, I64, []int{rows, cols})
				if name == "triu" { // the lower triangle from its end
					offset = cols - rows - offset
				}
				row, col := b.lowerTriangle(rows, cols, offset, name == "triu")
				n := row.Dim(0)
				return []Value{b.Cast(b.Cat([]Value{b.Reshape(row, 1, n), b.Reshape(col, 1, n)}, 0), d)}
			},
		})
	}
	triangle("tril", "below")
	triangle("triu", "above")
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

// lowerTriangle records the row and the column, f64 whole numbers, of each element on and below a
// diagonal of a matrix [rows, cols], in row-major order; with turned they are counted from the last
// element, row and column back. First come rows each of which has one element more than the one before,
// then whole ones.
func (b *Builder) lowerTriangle(rows, cols, offset int, turned bool) (row, col Value) {
	before := min(max(-offset, 0), rows) // rows without elements
	first := min(max(before+offset+1, 0), cols)
	growing := min(cols-first, rows-before)
	inGrowing := growing*first + growing*(growing-1)/2
	n := inGrowing + (rows-before-growing)*cols
	number := func(v int) Value { return b.Const(v, F64) }
	at := b.Iota(n, F64)
	if turned {
		at = b.Sub(number(n-1), at)
	}
	start := number(inGrowing)
	// Quotients of whole numbers below 2⁵² are right when they are rounded down.
	rest := b.Sub(at, start)
	whole := b.floor(b.Div(rest, number(max(cols, 1))))
	row, col = b.Add(whole, number(before+growing)), b.Sub(rest, b.Mul(whole, number(cols)))
	if growing > 0 {
		// Before row m of these there are m·first + m·(m-1)/2 elements.
		sum := func(m Value) Value {
			return b.Mul(b.Mul(m, b.Add(m, number(2*first-1))), b.Const(0.5, F64))
		}
		half := b.Const(float64(first)-0.5, F64)
		m := b.floor(b.Sub(b.sqrt(b.Add(b.Mul(half, half), b.Add(at, at))), half))
		m = b.Where(b.gt(sum(m), at), b.Sub(m, number(1)), m)
		next := b.Add(m, number(1))
		m = b.Where(b.le(sum(next), at), next, m)
		inside := b.lt(at, start)
		row, col = b.Where(inside, b.Add(m, number(before)), row), b.Where(inside, b.Sub(at, sum(m)), col)
	}
	if turned {
		row, col = b.Sub(number(rows-1), row), b.Sub(number(cols-1), col)
	}
	return row, col
}
