package ir

// Gradients of reductions and scans. They follow ATen's derivatives.yaml; where
// ATen looks at the data to choose a formula (products with zeros), a formula
// is used that is right for all data and can be differentiated again.

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
	chosen := b.Eq(self, b.keepReduced(out[0], self.Shape(), mask))
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
		return []Value{b.FullLike(self, 0)}
	case 1:
		return []Value{b.Cast(b.Reshape(grad[0], s.Dims()...), s.DType())}
	}
	x := b.Reshape(b.Permute(b.Cast(self, out[0].DType()), perm...), m, n)
	before := b.exclusiveCumprod(x, 1)
	after := b.Flip(b.exclusiveCumprod(b.Flip(x, 1), 1), 1)
	g := b.Mul(b.Reshape(grad[0], m, 1), b.Mul(before, after))
	g = b.Permute(b.Reshape(g, permuted...), inversePermutation(perm)...)
	return []Value{b.Cast(g, s.DType())}
}

// exclusiveCumprod records the products of all elements before each one.
func (b *Builder) exclusiveCumprod(x Value, dim int) Value {
	return b.Call1(OpCumprod, []any{b.padDim(x, dim, 1, -1, 1), dim})
}

func vjpCumsum(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	g := grad[0]
	if self.Rank() > 0 {
		dim := a.Dim("dim", self.Rank())
		g = b.Flip(b.Cumsum(b.Flip(g, dim), dim), dim)
	}
	return []Value{b.Cast(g, self.DType())}
}

// vjpCumprod computes, for elements x and cotangents g along dim,
//
//	dx[k] = (x[0]…x[k-1]) · s[k],  s[k] = g[k] + x[k+1]·s[k+1].
//
// The recurrence is solved by doubling: after the round for d, s[k] holds its
// terms up to g[k+2d-1], and a[k] = x[k+1]…x[k+d] carries s[k+d] into s[k]. It
// takes log n rounds of elementwise work and divides by nothing, so zeros are
// like any number, in higher derivatives, too.
func vjpCumprod(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	dim := a.Dim("dim", self.Rank())
	n := AtLeast1D(self.Shape()).Dim(dim)
	if self.Rank() == 0 || n <= 1 {
		return []Value{b.Cast(grad[0], self.DType())}
	}
	x := b.Cast(self, out[0].DType())
	s, carry := grad[0], b.Slice(x, dim, 1, n, 1)
	for d := 1; d < n; d *= 2 {
		term := b.Mul(carry, b.Slice(s, dim, d, n, 1))
		s = b.Add(s, b.padDim(term, dim, 0, d, 0))
		if 2*d < n {
			carry = b.Mul(b.Slice(carry, dim, 0, n-2*d, 1), b.Slice(carry, dim, d, n-d, 1))
		}
	}
	return []Value{b.Cast(b.Mul(b.exclusiveCumprod(x, dim), s), self.DType())}
}

func vjpCummax(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if grad[0].IsNil() || self.Rank() == 0 {
		return []Value{grad[0]}
	}
	return []Value{b.ScatterReduce(b.FullLike(self, 0), a.Int("dim"), out[1], grad[0], "sum")}
}

func vjpSort(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if grad[0].IsNil() || self.Rank() == 0 {
		return []Value{grad[0]}
	}
	return []Value{b.Scatter(b.FullLike(self, 0), a.Int("dim"), out[1], grad[0])}
}
