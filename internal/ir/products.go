package ir

import "slices"

// Products that ATen, or what Inductor makes of a graph, has ops for.
func init() {
	unlisted := func(schema, doc string, decompose func(b *Builder, a Args) []Value) {
		register(schema, Spec{Doc: doc, Category: Linalg, Unlisted: true, Decompose: decompose})
	}
	register("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Spec{
		Doc:      "beta·self + alpha·(the sum of the products batch1 [b, n, m] @ batch2 [b, m, p]); with beta 0 NaN and infinities of self don't matter. As torch.addbmm.",
		Category: Linalg, Promote: PromoteScalars, Decompose: addbmm,
	})
	unlisted("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
		"relu, or gelu by tanh, of addmm. As at::_addmm_activation.",
		func(b *Builder, a Args) []Value {
			y := b.callNamed("addmm", []any{a.Tensor("self"), a.Tensor("mat1"), a.Tensor("mat2"), a.Tensor("beta"), a.Tensor("alpha")})
			if a.Bool("use_gelu") {
				return []Value{b.callNamed("gelu", []any{y}, A("approximate", "tanh"))}
			}
			return []Value{b.relu(y)}
		})
	unlisted("_mm_plus_mm(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor", "a @ b + c @ d. As inductor::_mm_plus_mm.",
		func(b *Builder, a Args) []Value {
			return []Value{b.Add(b.MatMul(a.In[0], a.In[1]), b.MatMul(a.In[2], a.In[3]))}
		})
	unlisted("mm_dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", "mm of operands that are converted to out_dtype. As at::mm with a dtype.",
		func(b *Builder, a Args) []Value {
			d := a.DType("out_dtype")
			return []Value{b.callNamed("mm", []any{b.Cast(a.In[0], d), b.Cast(a.In[1], d)})}
		})
	unlisted("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
		"self [n, k] @ the transpose of mat2 [m, k] of i8, times scales [m], computed in f32. As at::_weight_int8pack_mm.",
		func(b *Builder, a Args) []Value {
			p := b.MatMul(b.Cast(a.In[0], F32), b.Transpose(b.Cast(a.In[1], F32), 0, 1))
			return []Value{b.Cast(b.Mul(p, b.Cast(a.In[2], F32)), a.In[0].DType())}
		})
	unlisted("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
		"The sum over sumdim of the product of three tensors that get new dimensions first. As at::_trilinear.", trilinear)
	unlisted("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor output, Tensor rstd)",
		"rms_norm and the factor of each row. As at::_fused_rms_norm.", fusedRMSNorm)
	unlisted("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
		"Products of groups of matrices. The groups of an operand with 2 dimensions lie side by side, and offs says where they end. As at::_grouped_mm.",
		func(b *Builder, a Args) []Value { return groupedProducts(b, a, a.Tensor("self"), a.Tensor("mat2")) })
	unlisted("_scaled_grouped_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? offs=None, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
		"_grouped_mm of a matrix of rows and of columns that are scaled. As at::_scaled_grouped_mm.", scaledGroupedProducts)
	unlisted("_efficientzerotensor(int[] size, *, ScalarType? dtype=None) -> Tensor", "Zeros of f32 unless dtype is given. As at::_efficientzerotensor.",
		func(b *Builder, a Args) []Value {
			d := a.DType("dtype")
			if d == Invalid {
				d = DefaultDType
			}
			return []Value{b.Full(a.Ints("size"), 0, d)}
		})
}

func addbmm(b *Builder, a Args) []Value {
	self, beta, alpha := a.Tensor("self"), a.Tensor("beta"), a.Tensor("alpha")
	x, y := a.Tensor("batch1"), a.Tensor("batch2")
	if x.Rank() != 3 || y.Rank() != 3 || x.DType() != y.DType() {
		a.Fail(ErrShape, "batch1 and batch2 must have 3 dimensions and one dtype, got %v and %v", x.Shape(), y.Shape())
	}
	p := b.Sum(b.MatMul(b.widen(x), b.widen(y)), []int{0}, false)
	d, zero := p.DType(), b.Const(0, p.DType())
	beta, alpha = b.Cast(beta, d), b.Cast(alpha, d)
	kept := b.Where(b.eq(beta, zero), zero, b.Mul(b.widen(self), beta))
	return []Value{b.Cast(b.ExpandAs(b.Add(kept, b.Mul(p, alpha)), p), self.DType())}
}

func trilinear(b *Builder, a Args) []Value {
	var p Value
	for i, name := range []string{"expand1", "expand2", "expand3"} {
		x := a.In[i]
		for _, d := range a.Ints(name) {
			x = b.Unsqueeze(x, d)
		}
		if i > 0 {
			x = b.Mul(p, x)
		}
		p = x
	}
	if dims := a.Ints("sumdim"); len(dims) > 0 {
		p = b.Sum(p, dims, false)
	}
	return []Value{p}
}

func fusedRMSNorm(b *Builder, a Args) []Value {
	x, weight, n := a.Tensor("input"), a.Tensor("weight"), len(a.Ints("normalized_shape"))
	if n < 1 || n > x.Rank() || !slices.Equal(x.Shape().Dims()[x.Rank()-n:], a.Ints("normalized_shape")) {
		a.Fail(ErrShape, "the last dimensions of %v are not %v", x.Shape(), a.Ints("normalized_shape"))
	}
	eps, ok := a.OptFloat("eps")
	if !ok {
		eps = 0x1p-23
		if x.DType() == F64 {
			eps = 0x1p-52
		}
	}
	wide := b.widen(x)
	var dims []int
	for i := range n {
		dims = append(dims, x.Rank()-n+i)
	}
	factor := b.rsqrt(b.Add(b.Mean(b.Mul(wide, wide), dims, true), b.Const(eps, wide.DType())))
	y := b.Mul(wide, factor)
	if !weight.IsNil() {
		y = b.Mul(y, b.Cast(weight, y.DType()))
	}
	return []Value{b.Cast(y, x.DType()), factor}
}

// groupedProducts computes the groups of an operand with 2 dimensions over the whole, with 0 for
// what belongs to others.
func groupedProducts(b *Builder, a Args, x, y Value) []Value {
	if !a.Tensor("bias").IsNil() {
		a.Fail(ErrArg, "a bias of grouped products is not supported")
	}
	d := a.DType("out_dtype")
	if d == Invalid {
		d = a.Tensor("self").DType()
	}
	flat := [2]bool{x.Rank() == 2, y.Rank() == 2}
	if !flat[0] && x.Rank() != 3 || !flat[1] && y.Rank() != 3 || flat[0] && flat[1] && x.Dim(1) != y.Dim(0) {
		a.Fail(ErrShape, "grouped products of %v and %v", x.Shape(), y.Shape())
	}
	if flat == [2]bool{} {
		return []Value{b.Cast(b.MatMul(x, y), d)}
	}
	ends := a.Tensor("offs")
	if ends.IsNil() {
		a.Fail(ErrShape, "the groups of %v and %v have no ends: offs is missing", x.Shape(), y.Shape())
	}
	if ends.Rank() != 1 || !flat[0] && x.Dim(0) != ends.Dim(0) || !flat[1] && y.Dim(0) != ends.Dim(0) {
		a.Fail(ErrShape, "offs must say where the groups of %v and %v end, got %v", x.Shape(), y.Shape(), ends.Shape())
	}
	groups := ends.Dim(0)
	ends = b.Reshape(b.Cast(ends, I64), groups, 1)
	starts := b.Cat([]Value{b.Full([]int{1, 1}, 0, I64), b.Slice(ends, 0, 0, groups-1, 1)}, 0)
	// only keeps of v what belongs to each group along dimension dim of [groups, *, *].
	only := func(v Value, dim int) Value {
		i := b.Iota(v.Dim(dim-3), I64)
		mine := b.logicalAnd(b.ge(i, starts), b.lt(i, ends))
		return b.Where(b.Unsqueeze(mine, 3-dim), v, b.Const(0, v.DType()))
	}
	var out Value
	switch flat {
	case [2]bool{true, false}: // rows of x
		out = b.Sum(only(b.MatMul(x, y), 1), []int{0}, false)
	case [2]bool{false, true}: // columns of y
		out = b.Sum(only(b.MatMul(x, y), 2), []int{0}, false)
	default: // both: of what is added up
		out = b.MatMul(only(x, 2), only(y, 1))
	}
	return []Value{b.Cast(out, d)}
}

func scaledGroupedProducts(b *Builder, a Args) []Value {
	x, y := b.Cast(a.Tensor("self"), F32), b.Cast(a.Tensor("mat2"), F32)
	rows, columns := a.Tensor("scale_a"), a.Tensor("scale_b")
	if x.Rank() != 2 || y.Rank() != 3 || !a.Tensor("scale_result").IsNil() {
		a.Fail(ErrArg, "scaled grouped products are of a matrix and a batch of them, without a scale of the result")
	}
	if rows.Shape().Numel() != x.Dim(0) || columns.Shape().Numel() != y.Dim(0)*y.Dim(2) {
		a.Fail(ErrShape, "scale_a and scale_b must have a factor for each row and column, got %v and %v", rows.Shape(), columns.Shape())
	}
	x = b.Mul(x, b.Reshape(rows, x.Dim(0), 1))
	y = b.Mul(y, b.Reshape(columns, y.Dim(0), 1, y.Dim(2)))
	return groupedProducts(b, a, x, y)
}
