package ir

// Reductions and their gradients, which follow ATen's derivatives.yaml. Where ATen looks at the
// data to choose a formula (products with zeros), a formula is used that is right for all data and
// can be differentiated again.

func init() {
	register("sum(Tensor self, int[]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Reduction,
		Doc: "Sum over dim (all dimensions if absent or empty). Elements are converted to the result dtype first: dtype, " +
			"else i64 for integers and bool, else self's; f16 and bf16 accumulate in f32. ATen's sum.dim_IntList.",
		Infer:   inferAccumulate,
		VJP:     vjpSum,
		Complex: complexSum,
	})
	register("prod(Tensor self, int[]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Reduction,
		Doc:      "Product over dim (all dimensions if absent or empty), with the dtypes of sum. ATen's prod, for any set of dimensions.",
		Infer:    inferAccumulate,
		VJP:      vjpProd,
	})
	register("amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Maximum over dim (all dimensions if absent or empty); NaN wins. The reduced dimensions must not be empty. " +
			"The gradient is shared evenly among equal maxima. ATen's amax.",
		Infer: inferExtremum,
		VJP:   vjpExtremum,
	})
	register("amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Minimum over dim (all dimensions if absent or empty); NaN wins. The reduced dimensions must not be empty. " +
			"The gradient is shared evenly among equal minima. ATen's amin.",
		Infer: inferExtremum,
		VJP:   vjpExtremum,
	})
	register("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Index (i64) of the first maximum along dim, or in the flattened tensor if dim is absent; the first NaN wins. " +
			"ATen's argmax.",
		Infer:  inferArgExtremum,
		NoGrad: "the result is an index",
	})
	register("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Index (i64) of the first minimum along dim, or in the flattened tensor if dim is absent; the first NaN wins. " +
			"ATen's argmin.",
		Infer:  inferArgExtremum,
		NoGrad: "the result is an index",
	})
	register("any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc:      "Whether any element over dim (all dimensions if absent, none if empty) is not zero, as bool, or as u8 for u8; NaN is not zero. ATen's any.",
		Infer:    inferLogicalReduce,
		NoGrad:   "the result is bool",
	})
	register("all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc:      "Whether all elements over dim (all dimensions if absent, none if empty) are not zero, as bool, or as u8 for u8; NaN is not zero. ATen's all.",
		Infer:    inferLogicalReduce,
		NoGrad:   "the result is bool",
	})
}

// ReduceDims returns what a use of a reduction (sum, prod, amax, amin, argmax,
// argmin, any, all) reduces: a mask over the operand's dimensions and whether
// the reduced ones stay with size 1. A dimension number out of range fails
// with ErrIndex.
func ReduceDims(a Args) (mask [MaxRank]bool, keepdim bool) {
	keepdim = a.Bool("keepdim")
	rank := a.In[0].Rank()
	switch a.Spec.Op {
	case opArgmax, opArgmin:
	case opAny, opAll:
		if d := a.Ints("dim"); d != nil && len(d) == 0 {
			return mask, keepdim
		}
		return a.dims("dim", rank), keepdim
	default:
		return a.dims("dim", rank), keepdim
	}
	d, ok := a.OptInt("dim")
	if ok {
		mask[a.NormDim(d, rank)] = true
		return mask, keepdim
	}
	for i := range rank {
		mask[i] = true
	}
	return mask, keepdim
}

// reducedShape drops the masked dimensions, or sets them to 1.
func reducedShape(s Shape, mask [MaxRank]bool, keepdim bool, d DType) Shape {
	dims := make([]int, 0, MaxRank)
	for i, n := range s.Dims() {
		switch {
		case !mask[i]:
			dims = append(dims, n)
		case keepdim:
			dims = append(dims, 1)
		}
	}
	return MakeShape(d, dims...)
}

// maskDims lists the dimensions below rank that the mask holds.
func maskDims(mask [MaxRank]bool, rank int) []int {
	dims := make([]int, 0, rank)
	for i := range rank {
		if mask[i] {
			dims = append(dims, i)
		}
	}
	return dims
}

// accumulateDType is the result dtype of sum, prod, cumsum and cumprod.
func accumulateDType(a Args) DType {
	in, d := a.In[0].DType(), a.DType("dtype")
	if d == Invalid {
		d = in
		if in.IsIntegral() {
			d = I64
		}
	}
	requireArithmetic(a, in)
	requireArithmetic(a, d)
	return d
}

// requireArithmetic fails for dtypes that can only be stored.
func requireArithmetic(a Args, d DType) {
	if !d.Valid() || d.IsStorage() {
		a.Fail(ErrDType, "no arithmetic is defined on %v", d)
	}
}

// requireNumbers fails for dtypes that a number cannot be converted to.
func requireNumbers(a Args, d DType) {
	if !d.IsF8() {
		requireArithmetic(a, d)
	}
}

func inferAccumulate(a Args) []Shape {
	d := accumulateDType(a)
	mask, keepdim := ReduceDims(a)
	return []Shape{reducedShape(a.In[0].Shape(), mask, keepdim, d)}
}

// requireNonEmpty fails if a reduction without identity meets an empty dimension.
func requireNonEmpty(a Args, mask [MaxRank]bool) {
	s := a.In[0].Shape()
	for i := range s.Rank() {
		if mask[i] && s.Dim(i) == 0 {
			if a.Get("dim") == nil {
				a.Fail(ErrShape, "expected the reduction dim to be given for a tensor without elements")
			}
			a.Fail(ErrShape, "expected reduction dim %d to have non-zero size", i)
		}
	}
}

func inferExtremum(a Args) []Shape {
	s := a.In[0].Shape()
	requireArithmetic(a, s.DType())
	mask, keepdim := ReduceDims(a)
	requireNonEmpty(a, mask)
	return []Shape{reducedShape(s, mask, keepdim, s.DType())}
}

func inferArgExtremum(a Args) []Shape {
	s := a.In[0].Shape()
	if s.DType() == Bool {
		a.Fail(ErrDType, "not defined for bool operands")
	}
	return []Shape{inferExtremum(a)[0].WithDType(I64)}
}

func inferLogicalReduce(a Args) []Shape {
	s := a.In[0].Shape()
	requireArithmetic(a, s.DType())
	mask, keepdim := ReduceDims(a)
	d := Bool
	if s.DType() == U8 {
		d = U8
	}
	return []Shape{reducedShape(s, mask, keepdim, d)}
}

// keepReduced brings a result of a reduction of s over mask back to s's rank.
func (b *Builder) keepReduced(v Value, s Shape, mask [MaxRank]bool) Value {
	return b.Reshape(v, reducedShape(s, mask, true, s.DType()).Dims()...)
}

func vjpSum(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	mask, _ := ReduceDims(a)
	g := b.keepReduced(b.Cast(grad[0], self.DType()), self.Shape(), mask)
	return []Value{b.ExpandAs(g, self)}
}

// vjpExtremum shares the gradient evenly among the elements equal to the result.
func vjpExtremum(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	mask, _ := ReduceDims(a)
	chosen := b.eq(self, b.keepReduced(out[0], self.Shape(), mask))
	count := b.Sum(chosen, maskDims(mask, self.Rank()), true)
	g := b.keepReduced(grad[0], self.Shape(), mask)
	return []Value{b.Div(b.Mul(g, b.Cast(chosen, self.DType())), count)}
}

// vjpProd multiplies the products of the elements before and after each one,
// which needs no division and so no care for zeros.
func vjpProd(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	mask, _ := ReduceDims(a)
	s := self.Shape()
	perm := make([]int, 0, MaxRank)
	permuted := make([]int, 0, MaxRank)
	m, n := 1, 1
	for _, reduced := range []bool{false, true} {
		for i := range s.Rank() {
			if mask[i] == reduced {
				perm, permuted = append(perm, i), append(permuted, s.Dim(i))
				if reduced {
					n *= s.Dim(i)
				} else {
					m *= s.Dim(i)
				}
			}
		}
	}
	switch n {
	case 0:
		return []Value{b.fullLike(self, 0)}
	case 1:
		return []Value{b.Cast(b.Reshape(grad[0], s.Dims()...), s.DType())}
	}
	x := b.Reshape(b.Permute(b.Cast(self, out[0].DType()), perm...), m, n)
	g := b.Mul(b.Reshape(grad[0], m, 1), b.callNamed("_products_of_others", []any{x}))
	g = b.Permute(b.Reshape(g, permuted...), inversePermutation(perm)...)
	return []Value{b.Cast(g, s.DType())}
}
