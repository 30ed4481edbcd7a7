package tensors

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/npformat"
	"github.com/loris-ml/loris/ir"
)

// randomInts bounds the integers of Random: small enough to be indices.
const randomInts = 10

// Random returns a tensor of the shape with elements drawn from r: floats from
// the standard normal distribution, integers from 0 to 9, and bools.
func Random(name string, s ir.Shape, r *rand.Rand) Tensor {
	t := Tensor{Name: name, Shape: s, Data: make([]byte, 0, s.Bytes())}
	d, n := s.DType(), s.Numel()
	switch d {
	case ir.C64:
		d, n = ir.F32, 2*n
	case ir.C128:
		d, n = ir.F64, 2*n
	}
	for range n {
		t.Data = appendRandom(t.Data, d, r)
	}
	return t
}

func appendRandom(b []byte, d ir.DType, r *rand.Rand) []byte {
	le := binary.LittleEndian
	switch d {
	case ir.Bool:
		return append(b, byte(r.IntN(2)))
	case ir.U8, ir.I8:
		return append(b, byte(r.IntN(randomInts)))
	case ir.I16:
		return le.AppendUint16(b, uint16(r.IntN(randomInts)))
	case ir.I32:
		return le.AppendUint32(b, uint32(r.IntN(randomInts)))
	case ir.I64:
		return le.AppendUint64(b, uint64(r.IntN(randomInts)))
	case ir.F8E4M3FN:
		return append(b, half.F64ToE4M3(r.NormFloat64()))
	case ir.F8E5M2:
		return append(b, half.F64ToE5M2(r.NormFloat64()))
	case ir.F16:
		return le.AppendUint16(b, half.F64ToF16(r.NormFloat64()))
	case ir.BF16:
		return le.AppendUint16(b, half.F64ToBF16(r.NormFloat64()))
	case ir.F32:
		return le.AppendUint32(b, math.Float32bits(float32(r.NormFloat64())))
	}
	return le.AppendUint64(b, math.Float64bits(r.NormFloat64()))
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
	e.Int = func(i int) int64 { return intAt(t.Shape.DType(), t.Data, i) }
	e.Float = func(i int) float64 { return floatAt(t.Shape.DType(), t.Data, i) }
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

func intAt(d ir.DType, data []byte, i int) int64 {
	le := binary.LittleEndian
	switch d {
	case ir.Bool, ir.U8:
		return int64(data[i])
	case ir.I8:
		return int64(int8(data[i]))
	case ir.I16:
		return int64(int16(le.Uint16(data[2*i:])))
	case ir.I32:
		return int64(int32(le.Uint32(data[4*i:])))
	}
	return int64(le.Uint64(data[8*i:]))
}

func floatAt(d ir.DType, data []byte, i int) float64 {
	le := binary.LittleEndian
	switch d {
	case ir.F8E4M3FN:
		return float64(half.E4M3ToF32(data[i]))
	case ir.F8E5M2:
		return float64(half.E5M2ToF32(data[i]))
	case ir.F16:
		return float64(half.F16ToF32(le.Uint16(data[2*i:])))
	case ir.BF16:
		return float64(half.BF16ToF32(le.Uint16(data[2*i:])))
	case ir.F32, ir.C64:
		return float64(math.Float32frombits(le.Uint32(data[4*i:])))
	}
	return math.Float64frombits(le.Uint64(data[8*i:]))
}
