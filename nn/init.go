package nn

import (
	"math"

	"github.com/loris-ml/loris"
)

// Init records a variable's initial value with the given dims and the Maker's dtype,
// device and session. Random values depend on the session's seed (loris.Session.SetSeed)
// and the order in which layers are built, so a seed determines a model. The distributions
// are those of torch.nn.init; the numbers are not PyTorch's.
type Init func(m loris.Maker, dims ...int) *loris.Tensor

// Zeros initialises to 0.
func Zeros(m loris.Maker, dims ...int) *loris.Tensor { return m.Zeros(dims...) }

// Ones initialises to 1.
func Ones(m loris.Maker, dims ...int) *loris.Tensor { return m.Ones(dims...) }

// Constant initialises to v, f32 unless the Maker has another dtype.
func Constant(v float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor { return m.Full(v, dims...) }
}

// Uniform draws uniformly from [low, high).
func Uniform(low, high float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor { return m.Uniform(low, high, dims...) }
}

// Normal draws from the normal distribution.
func Normal(mean, std float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor { return m.Normal(mean, std, dims...) }
}

// TruncNormal draws from the normal distribution restricted to [low, high], as
// torch.nn.init.trunc_normal_: uniformly between the values of its distribution
// function at the bounds, through the inverse of that function.
func TruncNormal(mean, std, low, high float64) Init {
	if !(std > 0) || !(low < high) {
		panic(misuse("TruncNormal", "std %v must be positive and low %v less than high %v", std, low, high))
	}
	cdf := func(x float64) float64 { return 0.5 * (1 + math.Erf((x-mean)/(std*math.Sqrt2))) }
	l, h := 2*cdf(low)-1, 2*cdf(high)-1
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		d := m.DType(loris.F32)
		wide := m
		if d != loris.F64 {
			wide = m.With(loris.As(loris.F32))
		}
		t := wide.Uniform(l, h, dims...).Erfinv().Mul(std * math.Sqrt2).Add(mean)
		return t.Maximum(low).Minimum(high).Cast(d)
	}
}

// KaimingUniform draws uniformly from ±gain·√(3/fan_in), where the gain is that
// of a leaky ReLU with the slope a: √(2/(1+a²)). With a = √5, the default of
// linear and convolution weights, the bound is 1/√fan_in.
func KaimingUniform(a float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		in, _ := fans("KaimingUniform", dims)
		bound := math.Sqrt(2/(1+a*a)) * math.Sqrt(3/float64(in))
		return m.Uniform(-bound, bound, dims...)
	}
}

// KaimingNormal draws from the normal distribution with the standard deviation
// gain/√fan_in, where the gain is that of a leaky ReLU with the slope a.
func KaimingNormal(a float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		in, _ := fans("KaimingNormal", dims)
		return m.Normal(0, math.Sqrt(2/(1+a*a))/math.Sqrt(float64(in)), dims...)
	}
}

// XavierUniform draws uniformly from ±gain·√(6/(fan_in + fan_out)).
func XavierUniform(gain float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		in, out := fans("XavierUniform", dims)
		bound := gain * math.Sqrt(6/float64(in+out))
		return m.Uniform(-bound, bound, dims...)
	}
}

// XavierNormal draws from the normal distribution with the standard deviation
// gain·√(2/(fan_in + fan_out)).
func XavierNormal(gain float64) Init {
	return func(m loris.Maker, dims ...int) *loris.Tensor {
		in, out := fans("XavierNormal", dims)
		return m.Normal(0, gain*math.Sqrt(2/float64(in+out)), dims...)
	}
}

// fans returns, for a weight [out, in, …], the number of inputs that an output depends on
// and the number of outputs that depend on an input.
func fans(name string, dims []int) (in, out int) {
	if len(dims) < 2 {
		panic(misuse(name, "a weight of dimensions %v has no fans: at least 2 are needed", dims))
	}
	field := 1
	for _, d := range dims[2:] {
		field *= d
	}
	in, out = dims[1]*field, dims[0]*field
	if in < 1 || out < 1 {
		panic(misuse(name, "a weight of dimensions %v is empty", dims))
	}
	return in, out
}

// defaultWeight is the distribution of linear and convolution weights.
var defaultWeight = KaimingUniform(math.Sqrt(5))

// biasFor is the distribution of the bias beside a weight: ±1/√fan_in.
func biasFor(fanIn int) Init {
	bound := 1 / math.Sqrt(float64(fanIn))
	return Uniform(-bound, bound)
}
