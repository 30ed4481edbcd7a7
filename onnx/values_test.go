package onnx

import (
	"context"
	"math"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// TestValues holds nodes on x against numbers of onnxruntime: infinities and NaNs that must not
// spread, places that depend on rounding to f32, and sizes that do.
func TestValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	ten := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	number := func(name string, v int64) *pb.Attribute { return &pb.Attribute{Name: name, Type: pb.AttrInt, I: v} }
	word := func(name, v string) *pb.Attribute {
		return &pb.Attribute{Name: name, Type: pb.AttrString, S: v}
	}
	attrs := func(a ...*pb.Attribute) []*pb.Attribute { return a }
	nearest := attrs(word("coordinate_transformation_mode", "asymmetric"), word("nearest_mode", "floor"))
	for name, c := range map[string]struct {
		nodes   []string // attrs are those of the last
		attrs   []*pb.Attribute
		x, want []float32
	}{
		"Sign":                      {[]string{"Sign x -> y"}, nil, []float32{nan, -2, 0}, []float32{nan, -1, 0}},
		"ThresholdedRelu":           {[]string{"ThresholdedRelu x -> y"}, nil, []float32{-inf, nan, 2, inf}, []float32{0, 0, 2, inf}},
		"Shrink":                    {[]string{"Shrink x -> y"}, nil, []float32{-inf, nan, 0.25}, []float32{-inf, 0, 0}},
		"Hardmax":                   {[]string{"Hardmax x -> y"}, nil, []float32{-inf, 1, inf}, []float32{0, 0, 1}},
		"ReduceLogSumExp of no axe": {[]string{"ReduceLogSumExp x -> y"}, attrs(number("noop_with_empty_axes", 1)), []float32{1, 200}, []float32{1, 200}},
		"Unique":                    {[]string{"Unique x -> y"}, nil, []float32{nan, 1, nan, 0}, []float32{0, 1, nan}},
		"Pad":                       {[]string{"Pad x cut -> y"}, attrs(word("mode", "wrap")), []float32{0, 1, 2, 3}, []float32{1, 2, 3, 1, 2}},
		"Resize by 0.6":             {[]string{"Resize x  0.6 -> y"}, nearest, ten[:7], []float32{0, 1, 3, 5}},
		"Resize by 0.7":             {[]string{"Resize x  0.7 -> y"}, nearest, ten, []float32{0, 1, 2, 4, 5, 7, 8}},
		"Resize by corners": {[]string{"Resize x  0.6 -> y"}, attrs(word("coordinate_transformation_mode", "align_corners"), word("mode", "linear")),
			ten[:4], []float32{0, 3}},
		"Resize by 0.6 at opset 10": {[]string{"Resize x 0.6 -> y"}, nil, ten[:4], []float32{0, 2}},
		"DynamicQuantizeLinear":     {[]string{"DynamicQuantizeLinear x -> a y b"}, nil, []float32{0, 0}, []float32{1}},
		// Relu has no alpha, so that LeakyRelu has the first.
		"RNN": {[]string{"Reshape x 111 -> a", "RNN a 1 0 -> b y"}, attrs(number("hidden_size", 1), word("direction", "bidirectional"),
			&pb.Attribute{Name: "activations", Type: pb.AttrStrings, Strings: []string{"Relu", "LeakyRelu"}},
			&pb.Attribute{Name: "activation_alpha", Type: pb.AttrFloats, Floats: []float32{0.5}}), []float32{-2}, []float32{0, -1}},
		"Upsample": {[]string{"Upsample x 1.3 -> y"}, nil, ten, []float32{0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9}},
		"MaxUnpool": {[]string{"Reshape x 1112 -> a", "MaxUnpool a 03 -> b", "Flatten b -> y"}, attrs(number("axis", 0)),
			[]float32{inf, 2}, []float32{inf, 0, 0, 2}},
		"Col2Im": {[]string{"Reshape x 122 -> a", "Col2Im a 13 12 -> b", "Flatten b -> y"}, attrs(number("axis", 0)),
			[]float32{inf, 1, 2, 3}, []float32{inf, 3, 3}},
		"NegativeLogLikelihoodLoss": {[]string{"Reshape x 22 -> a", "NegativeLogLikelihoodLoss a 01 -> y"}, attrs(number("ignore_index", 0), word("reduction", "none")),
			[]float32{-inf, 0, -1, -2}, []float32{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(22, c.nodes...)
			if opset := map[string]int64{"Upsample": 9, "Resize by 0.6 at opset 10": 10}[name]; opset > 0 {
				m.Opsets[0].Version = opset
			}
			list := func(name string, dims []int64, v ...int64) {
				m.Graph.Initializers = append(m.Graph.Initializers, &pb.Tensor{Name: name, DType: int64(tInt64), Dims: dims, HasRaw: true, Raw: elements.EncodeInts(loris.I64, v)})
			}
			list("cut", []int64{2}, -1, 2)
			list("1112", []int64{4}, 1, 1, 1, 2)
			list("03", []int64{1, 1, 1, 2}, 0, 3)
			list("122", []int64{3}, 1, 2, 2)
			list("13", []int64{2}, 1, 3)
			list("12", []int64{2}, 1, 2)
			list("22", []int64{2}, 2, 2)
			list("01", []int64{2}, 0, 1)
			list("111", []int64{3}, 1, 1, 1)
			floats := func(name string, dims []int64, v ...float64) {
				m.Graph.Initializers = append(m.Graph.Initializers, &pb.Tensor{Name: name, DType: int64(tFloat), Dims: dims, HasRaw: true, Raw: elements.EncodeFloats(loris.F32, v)})
			}
			for name, v := range map[string]float64{"0.6": 0.6, "0.7": 0.7, "1.3": 1.3} {
				floats(name, []int64{1}, v)
			}
			floats("1", []int64{2, 1, 1}, 1, 1)
			floats("0", []int64{2, 1, 1}, 0, 0)
			for _, n := range m.Graph.Nodes {
				switch n.OpType {
				case "Resize":
					if m.Opsets[0].Version > 10 {
						n.Inputs = []string{"x", "", n.Inputs[1]}
					}
				case "MaxUnpool":
					n.Attributes = attrs(&pb.Attribute{Name: "kernel_shape", Type: pb.AttrInts, Ints: []int64{1, 2}}, &pb.Attribute{Name: "strides", Type: pb.AttrInts, Ints: []int64{1, 2}})
				}
			}
			m.Graph.Nodes[len(c.nodes)-1].Attributes = c.attrs
			model, err := Decode("m.onnx", pb.EncodeModel(m))
			if err != nil {
				t.Fatal(err)
			}
			outs, err := model.Call(context.Background(), loris.FromSlice(c.x))
			if err != nil {
				t.Fatal(err)
			}
			got, err := loris.Read[float32](context.Background(), outs[0].Flatten())
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.want) {
				t.Fatalf("%v, %v is expected", got, c.want)
			}
			for i, w := range c.want {
				if got[i] != w && !(got[i] != got[i] && w != w) {
					t.Errorf("%v, %v is expected", got, c.want)
					break
				}
			}
		})
	}
}
