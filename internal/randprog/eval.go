package randprog

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
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
		return elements.EncodeFloats(d, []float64{l.AsFloat()})
	}
	i := l.Int
	if l.IsFloat {
		i = ir.FloatToInt(d, l.Float)
	}
	return elements.EncodeInts(d, []int64{i})
}

// largest returns the greatest magnitude among elements, NaN if there is one,
// and whether all are multiples of an eighth up to 16: arithmetic on a few such
// numbers is exact in every dtype and order.
func largest(d ir.DType, b []byte) (m float64, dyadic bool) {
	dyadic = true
	if !d.IsFloat() {
		for _, v := range elements.DecodeInts(d, b) {
			m = math.Max(m, math.Abs(float64(v)))
		}
		return m, true
	}
	for _, v := range elements.DecodeFloats(d, b) {
		m = math.Max(m, math.Abs(v))
		dyadic = dyadic && math.Abs(v) <= 16 && v*8 == math.Trunc(v*8)
	}
	return m, dyadic
}
