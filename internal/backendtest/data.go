package backendtest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// input is one operand of a sample.
type input struct {
	shape ir.Shape
	data  []byte
}

// random returns elements that are unlike each other but tame: floats around 0
// with a spread of 2, integers from -5 to 5 (0 to 10 unsigned), so that there
// are equal ones, and arbitrary bytes for storage dtypes.
func random(rng *rand.Rand, d ir.DType, dims ...int) input {
	s := ir.MakeShape(d, dims...)
	switch {
	case d.IsFloat():
		v := make([]float64, s.Numel())
		for i := range v {
			v[i] = 2 * rng.NormFloat64()
		}
		return input{s, elements.EncodeFloats(d, v)}
	case d.IsIntegral():
		v := make([]int64, s.Numel())
		for i := range v {
			switch {
			case d == ir.Bool:
				v[i] = rng.Int64N(2)
			case d.IsSigned():
				v[i] = rng.Int64N(11) - 5
			default:
				v[i] = rng.Int64N(11)
			}
		}
		return input{s, elements.EncodeInts(d, v)}
	}
	data := make([]byte, s.Bytes())
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return input{s, data}
}

// indices returns integers in [0, n) in no order.
func indices(rng *rand.Rand, d ir.DType, n int, dims ...int) input {
	s := ir.MakeShape(d, dims...)
	v := make([]int64, s.Numel())
	for i := range v {
		v[i] = rng.Int64N(int64(n))
	}
	return input{s, elements.EncodeInts(d, v)}
}

// specials returns the values of a dtype at which kernels go wrong, as a vector.
func specials(d ir.DType) input {
	switch {
	case d == ir.Bool:
		return vector(d, elements.EncodeInts(d, []int64{0, 1}))
	case d.IsInt():
		lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
		if bits := 8 * d.Size(); d == ir.U8 {
			lo, hi = 0, 255
		} else if bits < 64 {
			lo, hi = -1<<(bits-1), 1<<(bits-1)-1
		}
		return vector(d, elements.EncodeInts(d, []int64{0, 1, -1, 2, -2, 3, 7, -7, 31, 63, 100, lo, lo + 1, hi, hi - 1}))
	}
	v := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 2.5, -2.5, 3, 1.5, 0.1, -0.1, 0.99, -0.99, 1.01,
		1e-3, -1e-3, 1e-7, -1e-7, 5, -5, 8, 11, -11, 20, -20, 50, -50, 88, -88, 100, -100, 1000, -1000, 12345.678, 60000, -60000,
		math.Inf(1), math.Inf(-1), math.NaN(),
	}
	_, tiny := epsilon(d)
	v = append(v, tiny, -tiny)
	switch d {
	case ir.BF16, ir.F32:
		v = append(v, 3e38, -3e38, 1e-45, 1e-20, 1e20)
	case ir.F64:
		v = append(v, 3e38, 700, -745, 1e300, -1e300, 5e-324, 1e-200)
	}
	return vector(d, elements.EncodeFloats(d, v))
}

// every returns all values of a dtype of at most 16 bits, as a vector.
func every(d ir.DType) input {
	n := 1 << (8 * d.Size())
	if d == ir.Bool {
		n = 2
	}
	data := make([]byte, 0, n*d.Size())
	for i := range n {
		if d.Size() == 1 {
			data = append(data, byte(i))
		} else {
			data = binary.LittleEndian.AppendUint16(data, uint16(i))
		}
	}
	return vector(d, data)
}

func vector(d ir.DType, data []byte) input {
	return input{ir.MakeShape(d, len(data)/d.Size()), data}
}

// reshaped returns the same elements under other dimensions.
func (x input) reshaped(dims ...int) input { return input{x.shape.WithDims(dims...), x.data} }
