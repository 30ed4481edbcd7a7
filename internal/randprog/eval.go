package randprog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loris-ml/loris/backend/ref"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/ir"
)

// dataLeaf stands for a register with known elements.
type dataLeaf struct{ data []byte }

// LeafName returns "data".
func (*dataLeaf) LeafName() string { return "data" }

// evaluate computes values whose leaves are dataLeafs and numbers, on ref.
func evaluate(vals []ir.Value) ([][]byte, error) {
	var w graph.Walker
	po := w.Walk(vals)
	p, leaves := graph.FromPostOrder("value", &po)
	inputs := make([][]byte, len(leaves))
	for i, n := range leaves {
		switch l := n.Leaf().(type) {
		case *dataLeaf:
			inputs[i] = l.data
		case *ir.ScalarLeaf:
			inputs[i] = encode(n.Shapes()[0].DType(), l)
		default:
			return nil, fmt.Errorf("randprog: leaf %T has no elements", l)
		}
	}
	lowered, _ := graph.Optimize(p, graph.Options{NoRules: true})
	return ref.Eval(lowered, inputs)
}

func encode(d ir.DType, l *ir.ScalarLeaf) []byte {
	if d.IsFloat() {
		return EncodeFloats(d, []float64{l.AsFloat()})
	}
	i := l.Int
	if l.IsFloat {
		i = ir.FloatToInt(d, l.Float)
	}
	return encodeInts(d, []int64{i})
}

// EncodeFloats returns the elements of a floating dtype in memory, rounded.
func EncodeFloats(d ir.DType, vals []float64) []byte {
	var b []byte
	for _, v := range vals {
		switch d {
		case ir.F16:
			b = binary.LittleEndian.AppendUint16(b, half.F64ToF16(v))
		case ir.BF16:
			b = binary.LittleEndian.AppendUint16(b, half.F64ToBF16(v))
		case ir.F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		default:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

// DecodeFloats returns the elements of a floating dtype.
func DecodeFloats(d ir.DType, b []byte) []float64 {
	out := make([]float64, 0, len(b)/d.Size())
	for ; len(b) > 0; b = b[d.Size():] {
		var v float64
		switch d {
		case ir.F16:
			v = float64(half.F16ToF32(binary.LittleEndian.Uint16(b)))
		case ir.BF16:
			v = float64(half.BF16ToF32(binary.LittleEndian.Uint16(b)))
		case ir.F32:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		default:
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
		out = append(out, v)
	}
	return out
}

func encodeInts(d ir.DType, vals []int64) []byte {
	var b []byte
	for _, v := range vals {
		v = ir.WrapInt(d, v)
		for k := range d.Size() {
			b = append(b, byte(v>>(8*k)))
		}
	}
	return b
}

func decodeInts(d ir.DType, b []byte) []int64 {
	out := make([]int64, 0, len(b)/d.Size())
	for ; len(b) > 0; b = b[d.Size():] {
		var u uint64
		for k := range d.Size() {
			u |= uint64(b[k]) << (8 * k)
		}
		out = append(out, ir.WrapInt(d, int64(u)))
	}
	return out
}

// largest returns the greatest magnitude among elements, NaN if there is one,
// and whether all are multiples of an eighth up to 16: arithmetic on a few such
// numbers is exact in every dtype and order.
func largest(d ir.DType, b []byte) (m float64, dyadic bool) {
	dyadic = true
	if !d.IsFloat() {
		for _, v := range decodeInts(d, b) {
			m = math.Max(m, math.Abs(float64(v)))
		}
		return m, true
	}
	for _, v := range DecodeFloats(d, b) {
		m = math.Max(m, math.Abs(v))
		dyadic = dyadic && math.Abs(v) <= 16 && v*8 == math.Trunc(v*8)
	}
	return m, dyadic
}
