package vec

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels"
)

// Kind is an activation function.
type Kind uint8

// The activations that kernels apply to their results. Alpha and Beta are the
// parameters of Activation.
const (
	Identity    Kind = iota
	ReLU             // max(x, 0)
	LeakyReLU        // x, or Alpha·x where x is negative
	HardTanh         // x between Alpha and Beta
	GELU             // x·Φ(x)
	GELUTanh         // x·Φ(x) by the approximation with tanh
	SiLU             // x·sigmoid(x), also called swish
	Sigmoid          // 1/(1+e^-x)
	Tanh             //
	HardSwish        // x·min(max(x+3, 0), 6)/6
	HardSigmoid      // min(max(x+3, 0), 6)/6
)

// Activation is an activation with its parameters. The zero value changes
// nothing.
type Activation struct {
	Kind        Kind
	Alpha, Beta float64
}

// Clamp returns the activation as bounds of x, if it is no more than that.
func (a Activation) Clamp() (lo, hi float64, ok bool) {
	switch a.Kind {
	case Identity:
		return math.Inf(-1), math.Inf(1), true
	case ReLU:
		return 0, math.Inf(1), true
	case HardTanh:
		return a.Alpha, a.Beta, true
	}
	return 0, 0, false
}

// Apply sets x to its activation.
func Apply[A Float](a Activation, x []A) {
	switch a.Kind {
	case Identity:
	case ReLU:
		for i, v := range x {
			if v < 0 {
				x[i] = 0
			}
		}
	case LeakyReLU:
		slope := A(a.Alpha)
		for i, v := range x {
			if v < 0 {
				x[i] = v * slope
			}
		}
	case HardTanh:
		lo, hi := A(a.Alpha), A(a.Beta)
		for i, v := range x {
			if v < lo {
				x[i] = lo
			} else if v > hi {
				x[i] = hi
			}
		}
	case HardSwish:
		for i, v := range x {
			x[i] = v * min(max(v+3, 0), 6) / 6
		}
	case HardSigmoid:
		for i, v := range x {
			x[i] = min(max(v+3, 0), 6) / 6
		}
	default:
		smooth(a.Kind, x)
	}
}

// smooth applies the activations made of exponentials; those of float32 are package
// kernels'.
func smooth[A Float](k Kind, x []A) {
	if f, ok := any(x).([]float32); ok {
		smoothSingle(k, f)
		return
	}
	switch k {
	case GELU:
		for i, v := range x {
			x[i] = A(0.5 * float64(v) * math.Erfc(-float64(v)*(1/math.Sqrt2)))
		}
	case GELUTanh:
		for i, v := range x {
			f := float64(v)
			x[i] = A(f * sigmoid(2*math.Sqrt2/math.SqrtPi*(f+0.044715*f*f*f)))
		}
	case SiLU:
		for i, v := range x {
			x[i] = A(float64(v) * sigmoid(float64(v)))
		}
	case Sigmoid:
		for i, v := range x {
			x[i] = A(sigmoid(float64(v)))
		}
	case Tanh:
		for i, v := range x {
			x[i] = A(math.Tanh(float64(v)))
		}
	}
}

func smoothSingle(k Kind, x []float32) {
	switch k {
	case GELU:
		kernels.Gelu(x, x)
	case GELUTanh:
		kernels.GeluTanh(x, x)
	case SiLU:
		kernels.Silu(x, x)
	case Sigmoid:
		kernels.Sigmoid(x, x)
	case Tanh:
		kernels.Tanh(x, x)
	}
}
