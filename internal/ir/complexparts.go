package ir

import "math"

// Ops that make complex numbers and take them apart.

func init() {
	register("view_as_real(Tensor self) -> Tensor", Spec{
		Category: View,
		Doc:      "The complex numbers of self as pairs of reals, in a last dimension of size 2. ATen's view_as_real.",
		Infer: func(a Args) []Shape {
			s := a.In[0].Shape()
			if !s.DType().IsComplex() {
				a.Fail(ErrDType, "only supported for complex tensors, got %v", s.DType())
			}
			return inferDims(a, s.DType().Part(), append(s.Dims(), 2))
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value { return []Value{b.viewAsComplex(grad[0])} },
	})
	register("view_as_complex(Tensor self) -> Tensor", Spec{
		Category: View,
		Doc:      "Pairs of f32 or f64, which are the last dimension, as complex numbers. ATen's view_as_complex.",
		Infer: func(a Args) []Shape {
			s := a.In[0].Shape()
			switch {
			case s.DType() != F32 && s.DType() != F64:
				a.Fail(ErrDType, "only supported for f32 and f64 tensors, got %v", s.DType())
			case s.Rank() == 0:
				a.Fail(ErrShape, "a scalar has no last dimension of size 2")
			case s.Dim(-1) != 2:
				a.Fail(ErrShape, "the last dimension must have size 2, got %d", s.Dim(-1))
			}
			return inferDims(a, s.DType().complexOf(), s.Dims()[:s.Rank()-1])
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value { return []Value{b.viewAsReal(grad[0])} },
	})
	initComplexParts()
	initPolar()
}

// initComplexParts has the ops that are the identity on reals, or a constant.
func initComplexParts() {
	self := func(b *Builder, a Args) []Value { return a.In }
	conj := func(b *Builder, re, im Value) (x, y Value) { return re, b.Neg(im) }
	for _, name := range []string{"conj", "_conj"} {
		register(name+"(Tensor self) -> Tensor", Spec{
			Category: Complex, Doc: "The complex conjugate, elementwise; reals stay as they are. ATen's " + name + ".",
			Decompose: self, Complex: ofParts(conj),
		})
	}
	register("real(Tensor self) -> Tensor", Spec{
		Category: Complex, Doc: "The real part, elementwise; reals stay as they are. ATen's real.", Decompose: self,
		Complex: func(b *Builder, a Args) []Value {
			re, _ := b.parts(a.In[0])
			return []Value{re}
		},
	})
	register("imag(Tensor self) -> Tensor", Spec{
		Category: Complex, Doc: "The imaginary part of complex numbers, elementwise. ATen's imag.",
		Decompose: func(b *Builder, a Args) []Value {
			if !a.In[0].DType().IsComplex() {
				a.Fail(ErrDType, "not defined for tensors with non-complex dtypes, got %v", a.In[0].DType())
			}
			_, im := b.parts(a.In[0])
			return []Value{im}
		},
	})
	register("angle(Tensor self) -> Tensor", Spec{
		Category: Complex,
		Doc:      "The angle of complex numbers, elementwise; π for negative reals, 0 for others, NaN for NaN. Integers and bool give f32. ATen's angle.",
		Promote:  PromoteIntToFloat,
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			zero := b.zeroOf(x)
			side := b.Where(b.lt(x, zero), b.fullLike(x, math.Pi), b.fullLike(x, 0))
			return []Value{b.Where(b.isNaN(x), x, side)}
		},
		Complex: func(b *Builder, a Args) []Value {
			re, im := b.parts(a.In[0])
			return []Value{b.atan2(im, re)}
		},
	})
}

func initPolar() {
	register("complex(Tensor real, Tensor imag) -> Tensor", Spec{
		Category: Complex, Doc: "Complex numbers of two parts, f32 or f64 and both alike, elementwise with broadcasting. ATen's complex.",
		Decompose: func(b *Builder, a Args) []Value {
			requireParts(a, "real", "imag")
			return []Value{b.fromParts(a.In[0], a.In[1])}
		},
	})
	register("polar(Tensor abs, Tensor angle) -> Tensor", Spec{
		Category: Complex,
		Doc:      "Complex numbers of their magnitude and angle, f32 or f64 and both alike, elementwise with broadcasting. ATen's polar.",
		Decompose: func(b *Builder, a Args) []Value {
			requireParts(a, "abs", "angle")
			r, phi := a.In[0], a.In[1]
			return []Value{b.fromParts(b.Mul(r, b.cos(phi)), b.Mul(r, b.sin(phi)))}
		},
	})
}

// requireParts fails unless both operands have one dtype that complex numbers are made of.
func requireParts(a Args, first, second string) {
	d, e := a.In[0].DType(), a.In[1].DType()
	switch {
	case d != F32 && d != F64:
		a.Fail(ErrDType, "%s must be f32 or f64, got %v", first, d)
	case d != e:
		a.Fail(ErrDType, "expected %v for %s, got %v", d, second, e)
	}
	if _, ok := BroadcastDims(a.In[0].Shape(), a.In[1].Shape()); !ok {
		a.Fail(ErrShape, "the operands do not broadcast together")
	}
}
