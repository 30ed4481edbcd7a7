package ir

// linearScan records y[k] = factors[k] · y[k-1] + terms[k] along dim, or with reverse y[k] = factors[k] · y[k+1] + terms[k].
func (b *Builder) linearScan(factors, terms Value, dim int, reverse bool) Value {
	return b.callNamed("_linear_scan", []any{factors, terms, dim, reverse})
}

// decomposeLinearScan solves the recurrence by doubling: after the round for a step, sum[k] takes in terms up to twice
// that away, and carry has the products of as many factors, which are for what lies farther away. It takes log n rounds
// of elementwise work.
func decomposeLinearScan(b *Builder, a Args) []Value {
	factors, sum, reverse := a.Tensor("factors"), a.Tensor("terms"), a.Bool("reverse")
	if factors.Shape() != sum.Shape() || !sum.DType().IsFloat() || sum.Rank() == 0 {
		a.Fail(ErrShape, "factors and terms must be floating, of one shape with dimensions, got %v and %v", factors.Shape(), sum.Shape())
	}
	dim := a.Dim("dim", sum.Rank())
	d, n := sum.DType(), sum.Dim(dim)
	if n <= 1 {
		return []Value{sum}
	}
	factors, sum = b.widen(factors), b.widen(sum)
	carry := b.Slice(factors, dim, 1, n, 1)
	if reverse {
		carry = b.Slice(factors, dim, 0, n-1, 1)
	}
	for step := 1; step < n; step *= 2 {
		if reverse {
			sum = b.Add(sum, b.padDim(b.Mul(carry, b.Slice(sum, dim, step, n, 1)), dim, 0, step, 0))
		} else {
			sum = b.Add(sum, b.padDim(b.Mul(carry, b.Slice(sum, dim, 0, n-step, 1)), dim, step, 0, 0))
		}
		if 2*step < n {
			carry = b.Mul(b.Slice(carry, dim, 0, n-2*step, 1), b.Slice(carry, dim, step, n-step, 1))
		}
	}
	return []Value{b.Cast(sum, d)}
}

// vjpLinearScan goes the other way: the cotangent of each term is that of its result and what the result behind it
// passes on, times the factor there.
func vjpLinearScan(b *Builder, a Args, out, grad []Value) []Value {
	factors, reverse := a.Tensor("factors"), a.Bool("reverse")
	dim := a.Dim("dim", factors.Rank())
	before, after := 1, -1
	if reverse {
		before, after = -1, 1
	}
	terms := b.linearScan(b.padDim(factors, dim, after, before, 0), grad[0], dim, !reverse)
	return []Value{b.Mul(terms, b.padDim(out[0], dim, before, after, 0)), terms}
}
