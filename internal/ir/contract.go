package ir

// Products and sums of products beyond matmul.

func init() {
	register("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", Spec{
		Category: Linalg,
		Doc:      "The sum of products over pairs of dimensions, which have equal sizes: dims_self[i] of self and dims_other[i] of other. One of size 1 counts for all of the other's. The others of self come first. ATen's tensordot.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.contractOver(a, a.Ints("dims_self"), a.Ints("dims_other"))}
		},
	})
	register("inner(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Linalg,
		Doc:      "The sum of products over the last dimensions; with a scalar the product. ATen's inner.",
		Decompose: func(b *Builder, a Args) []Value {
			if a.In[0].Rank() == 0 || a.In[1].Rank() == 0 {
				return []Value{b.Mul(a.In[0], a.In[1])}
			}
			return []Value{b.contractOver(a, []int{-1}, []int{-1})}
		},
	})
	register("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Spec{
		Doc:      "beta·self + alpha·(vec1 ⊗ vec2), self broadcasting to the matrix; where beta is 0 self counts nothing, even NaN. ATen's addr.",
		Category: Linalg, Promote: PromoteScalars,
		Decompose: func(b *Builder, a Args) []Value {
			x, y := a.Tensor("vec1"), a.Tensor("vec2")
			if x.Rank() != 1 || y.Rank() != 1 {
				a.Fail(ErrShape, "vec1 and vec2 must be vectors, got %v and %v", x.Shape(), y.Shape())
			}
			requireSameDType(a, "vec1")
			requireSameDType(a, "vec2")
			in := b.widenAll(a.In)
			self, beta := in[0], in[3]
			kept := b.Where(b.eq(beta, b.zeroOf(beta)), b.zeroOf(self), b.Mul(beta, self))
			sum := b.Add(kept, b.Mul(in[4], b.Mul(b.Unsqueeze(in[1], 1), b.Unsqueeze(in[2], 0))))
			if !sum.Shape().SameDims(MakeShape(sum.DType(), x.Dim(0), y.Dim(0))) {
				a.Fail(ErrShape, "self %v does not broadcast to the product of %v and %v", self.Shape(), x.Shape(), y.Shape())
			}
			return []Value{b.Cast(sum, a.In[0].DType())}
		},
	})
	register("trace(Tensor self) -> Tensor", Spec{
		Category: Linalg,
		Doc:      "The sum of the main diagonal of a matrix. ATen's trace.",
		Decompose: func(b *Builder, a Args) []Value {
			if a.In[0].Rank() != 2 {
				a.Fail(ErrShape, "trace: expected a matrix, got %v", a.In[0].Shape())
			}
			return []Value{b.Sum(b.diagonal(a.In[0]), nil, false)}
		},
	})
	register("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", Spec{
		Category: Linalg, Promote: PromoteDefault,
		Doc:       "The vector products of the vectors along dim, which has 3 elements; the other dimensions broadcast. ATen's linalg_cross.",
		Decompose: decomposeCross,
	})
	register("dist(Tensor self, Tensor other, float p=2) -> Tensor", Spec{
		Category: Linalg, Promote: PromoteDefault,
		Doc: "The p-norm of self - other, a scalar. ATen's dist.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.callNamed("norm", []any{b.Sub(a.In[0], a.In[1]), a.float("p")})}
		},
	})
}

// contractOver sums products over pairs of dimensions of the two operands.
func (b *Builder) contractOver(a Args, over, overOther []int) Value {
	x, y := a.In[0], a.In[1]
	if len(over) != len(overOther) {
		a.Fail(ErrArg, "both dimension lists should have same length, got %v and %v", over, overOther)
	}
	split := func(v Value, dims []int) (kept, keptDims, summed []int) {
		var mask [MaxRank]bool
		for _, d := range dims {
			d = a.NormDim(d, v.Rank())
			if mask[d] || v.Rank() == 0 {
				a.Fail(ErrIndex, "dimension %d appears twice or is not there", d)
			}
			mask[d] = true
			summed = append(summed, d)
		}
		for d := range v.Rank() {
			if !mask[d] {
				kept, keptDims = append(kept, d), append(keptDims, v.Dim(d))
			}
		}
		return kept, keptDims, summed
	}
	keptX, dimsX, summedX := split(x, over)
	keptY, dimsY, summedY := split(y, overOther)
	n := 1
	for i, d := range summedX {
		switch e := summedY[i]; {
		case x.Dim(d) == 1 && y.Dim(e) != 1:
			y = b.Call1(opSum, []any{y, []int{e}, true, y.DType()})
		case y.Dim(e) == 1 && x.Dim(d) != 1:
			x = b.Call1(opSum, []any{x, []int{d}, true, x.DType()})
		}
		if x.Dim(d) != y.Dim(summedY[i]) {
			a.Fail(ErrShape, "contracted dimensions need to match, but the first has size %d in dim %d and the second has size %d in dim %d",
				x.Dim(d), d, y.Dim(summedY[i]), summedY[i])
		}
		n *= x.Dim(d)
	}
	rows := b.Reshape(b.Permute(x, append(keptX, summedX...)...), numelOf(dimsX), n)
	cols := b.Reshape(b.Permute(y, append(summedY, keptY...)...), n, numelOf(dimsY))
	return b.Call1(opReshape, []any{b.MatMul(rows, cols), append(append([]int{}, dimsX...), dimsY...)})
}

func decomposeCross(b *Builder, a Args) []Value {
	s, ok := BroadcastDims(a.In[0].Shape(), a.In[1].Shape())
	if !ok || a.In[0].Rank() != a.In[1].Rank() || s.Rank() == 0 {
		a.Fail(ErrShape, "inputs must have the same number of dimensions and broadcast, got %v and %v", a.In[0].Shape(), a.In[1].Shape())
	}
	dim := a.Dim("dim", s.Rank())
	if a.In[0].Dim(dim) != 3 || a.In[1].Dim(dim) != 3 {
		a.Fail(ErrShape, "inputs dimension %d must have length 3, got %v and %v", dim, a.In[0].Shape(), a.In[1].Shape())
	}
	x, y := a.In[0], a.In[1]
	at := func(v Value, i int) Value { return b.Slice(v, dim, i%3, i%3+1, 1) }
	parts := make([]Value, 3)
	for i := range parts {
		parts[i] = b.Sub(b.Mul(at(x, i+1), at(y, i+2)), b.Mul(at(x, i+2), at(y, i+1)))
	}
	return []Value{b.Cat(parts, dim)}
}
