package tensors

import (
	"math/rand/v2"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/npformat"
)

// randomInts bounds the integers of Random: small enough to be indices.
const randomInts = 10

// Random returns a tensor of the shape with elements drawn from r: floats from
// the standard normal distribution, integers from 0 to 9, and bools.
func Random(name string, s ir.Shape, r *rand.Rand) Tensor {
	t := Tensor{Name: name, Shape: s, Data: make([]byte, 0, s.Bytes())}
	d := part(s.DType())
	for len(t.Data) < s.Bytes() {
		t.Data = appendRandom(t.Data, d, r)
	}
	return t
}

// part returns the dtype of a complex one's parts; others are their own.
func part(d ir.DType) ir.DType {
	switch d {
	case ir.C64:
		return ir.F32
	case ir.C128:
		return ir.F64
	}
	return d
}

func appendRandom(b []byte, d ir.DType, r *rand.Rand) []byte {
	switch {
	case d == ir.Bool:
		return elements.AppendInt(b, d, int64(r.IntN(2)))
	case d.IsIntegral():
		return elements.AppendInt(b, d, int64(r.IntN(randomInts)))
	}
	return elements.AppendFloat(b, d, r.NormFloat64())
}

// String returns the elements as NumPy prints them; a complex number is a row of
// its real and imaginary part.
func (t Tensor) String() string {
	dims, e := t.Shape.Dims(), npformat.Elem{}
	switch t.Shape.DType() {
	case ir.C64, ir.C128:
		dims = append(dims, 2)
	}
	e.Kind = kindOf(t.Shape.DType())
	e.Int = func(i int) int64 { return elements.Int(t.Shape.DType(), t.Data, i) }
	e.Float = func(i int) float64 { return elements.Float(part(t.Shape.DType()), t.Data, i) }
	return npformat.Format(dims, e, npformat.Defaults())
}

func kindOf(d ir.DType) npformat.Kind {
	switch d {
	case ir.Bool:
		return npformat.Bool
	case ir.F64, ir.C128:
		return npformat.Float64
	case ir.F16:
		return npformat.Float16
	case ir.BF16:
		return npformat.BFloat16
	case ir.F32, ir.C64, ir.F8E4M3FN, ir.F8E5M2:
		return npformat.Float32
	}
	return npformat.Int
}
