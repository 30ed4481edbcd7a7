package loris

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Random numbers depend on the session's seed and on the number of the op among the
// random ops of the step, so that they are equal on every backend and in every run of a
// program. MarkStep advances the seed.

func (m Maker) random(name string, op ir.Op, pos ...any) *Tensor {
	defer renamed(op, name)
	out := new(executor.Tensor)
	m.Session().ex().Random(m.device, op, out, pos)
	return (*Tensor)(out)
}

// Rand returns uniform numbers in [0, 1), f32 by default.
func (m Maker) Rand(dims ...int) *Tensor { return m.random("rand", aten.Uniform, dims, m.DType(F32)) }

// Randn returns standard normal numbers, f32 by default.
func (m Maker) Randn(dims ...int) *Tensor { return m.random("randn", aten.Normal, dims, m.DType(F32)) }

// Uniform returns uniform numbers in [low, high), f32 by default. Other bounds
// never recompile.
func (m Maker) Uniform(low, high float64, dims ...int) *Tensor {
	return m.Rand(dims...).Mul(high - low).Add(low)
}

// Normal returns normal numbers with the given mean and standard deviation, f32
// by default. Other parameters never recompile.
func (m Maker) Normal(mean, std float64, dims ...int) *Tensor {
	return m.Randn(dims...).Mul(std).Add(mean)
}

// RandInt returns integers in [low, high), i64 by default.
func (m Maker) RandInt(low, high int, dims ...int) *Tensor {
	return m.random("randint", aten.Randint, low, high, dims, m.DType(I64))
}

// RandPerm returns the numbers 0 to n-1 in random order, i64 by default.
func (m Maker) RandPerm(n int) *Tensor {
	return m.random("randperm", opRandperm, n, m.DType(I64))
}

// Bernoulli returns ones with probability p and zeros otherwise, f32 by default.
func (m Maker) Bernoulli(p float64, dims ...int) *Tensor {
	return m.With(As(F32)).Rand(dims...).Lt(p).Cast(m.DType(F32))
}

// Rand returns uniform f32 numbers in [0, 1), in the default session.
func Rand(dims ...int) *Tensor { return Maker{}.Rand(dims...) }

// Randn returns standard normal f32 numbers, in the default session.
func Randn(dims ...int) *Tensor { return Maker{}.Randn(dims...) }

// Uniform is Maker.Uniform in the default session.
func Uniform(low, high float64, dims ...int) *Tensor { return Maker{}.Uniform(low, high, dims...) }

// Normal is Maker.Normal in the default session.
func Normal(mean, std float64, dims ...int) *Tensor { return Maker{}.Normal(mean, std, dims...) }

// RandInt returns i64 numbers in [low, high), in the default session.
func RandInt(low, high int, dims ...int) *Tensor { return Maker{}.RandInt(low, high, dims...) }

// RandPerm returns the i64 numbers 0 to n-1 in random order, in the default
// session.
func RandPerm(n int) *Tensor { return Maker{}.RandPerm(n) }

// Bernoulli is Maker.Bernoulli in the default session.
func Bernoulli(p float64, dims ...int) *Tensor { return Maker{}.Bernoulli(p, dims...) }

// like is a Maker for tensors like t, of its dtype if that is floating.
func (t *Tensor) like() Maker {
	m := Maker{session: t.Session(), device: t.Device(), dtype: F32}
	if d := t.DType(); d.IsFloat() {
		m.dtype = d
	}
	return m
}

// RandLike returns uniform numbers in [0, 1) of the tensor's shape and device.
func (t *Tensor) RandLike() *Tensor { return t.like().Rand(t.Dims()...) }

// RandnLike returns standard normal numbers of the tensor's shape and device.
func (t *Tensor) RandnLike() *Tensor { return t.like().Randn(t.Dims()...) }

// Bernoulli returns ones with the probability that each element gives, of a
// floating dtype, and zeros otherwise.
func (t *Tensor) Bernoulli() *Tensor {
	return t.random(opBernoulli)
}

// Dropout returns the tensor, of a floating dtype, with each element set to zero
// with probability p, a number or a scalar, and the others divided by 1-p.
// Another p never recompiles. Differentiable. ATen's dropout in training.
func (t *Tensor) Dropout(p any) *Tensor { return t.random(opDropout, p, true) }

// Dropout is [Tensor.Dropout] as a function.
func Dropout(t *Tensor, p any) *Tensor { return t.Dropout(p) }

// random records a random op over the tensor, with its device's seed.
func (t *Tensor) random(op ir.Op, pos ...any) *Tensor {
	s := t.owner(op)
	args := append([]any{t.ex()}, pos...)
	for i, v := range args {
		args[i] = arg(v)
	}
	out := new(executor.Tensor)
	s.Random(t.ex().Device(), op, out, args)
	return (*Tensor)(out)
}
