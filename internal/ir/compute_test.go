package ir_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/opinfo"
	"github.com/loris-ml/loris/internal/ref"
)

// compute records build over parameters with the inputs' shapes, decomposes the
// composites and runs the result on backend/ref.
func compute(inputs []opinfo.Tensor, build func(b *ir.Builder, w *graph.Walker, in []ir.Value) []ir.Value) (out []opinfo.Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			oe, ok := r.(*ir.OpError)
			if !ok {
				panic(r)
			}
			err = oe
		}
	}()
	params := make([]graph.Param, len(inputs))
	data := make([][]byte, len(inputs))
	for i, t := range inputs {
		d, err := ir.ParseDType(string(t.DType))
		if err != nil {
			return nil, err
		}
		params[i] = graph.Param{Name: fmt.Sprintf("x%d", i), Shape: ir.MakeShape(d, t.Shape...)}
		data[i] = t.Data
	}
	leaves := graph.NewParams(params)
	var b ir.Builder
	var w graph.Walker
	roots := build(&b, &w, leaves)
	// Numbers that the user passed are leaves of the graph, too: they become
	// parameters behind the others.
	po := w.Walk(append(append([]ir.Value(nil), leaves...), roots...))
	po.Roots = roots
	p, nodes := graph.FromPostOrder("test", &po)
	for _, n := range nodes[len(inputs):] {
		s, ok := n.Leaf().(*ir.ScalarLeaf)
		if !ok {
			return nil, fmt.Errorf("leaf %v is no scalar", n.Leaf())
		}
		data = append(data, scalarBytes(s, n.Shapes()[0].DType()))
	}
	opt, _ := graph.Optimize(p, graph.Options{NoRules: true})
	raw, err := ref.Eval(opt, data)
	if err != nil {
		return nil, err
	}
	for i, r := range raw {
		s := roots[i].Shape()
		out = append(out, opinfo.Tensor{DType: opinfo.DType(s.DType().String()), Shape: s.Dims(), Data: r})
	}
	return out, nil
}

func scalarBytes(s *ir.ScalarLeaf, d ir.DType) []byte {
	v := float64(s.Int)
	if s.IsFloat {
		v = s.Float
	}
	return floats(d, nil, v).Data
}

func appendElement(b []byte, d ir.DType, v float64) []byte {
	switch d {
	case ir.Bool, ir.U8:
		return append(b, uint8(v))
	case ir.I8:
		return append(b, uint8(int8(v)))
	case ir.I16:
		return binary.LittleEndian.AppendUint16(b, uint16(int16(v)))
	case ir.I32:
		return binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
	case ir.I64:
		return binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
	case ir.F16:
		return binary.LittleEndian.AppendUint16(b, half.F32ToF16(float32(v)))
	case ir.BF16:
		return binary.LittleEndian.AppendUint16(b, half.F32ToBF16(float32(v)))
	case ir.F32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}
