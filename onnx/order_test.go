package onnx

import (
	"context"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// Nodes may lie in any order: converters append some that others read from.
func TestNodesInAnyOrder(t *testing.T) {
	branch := func(in string) *pb.Graph {
		return &pb.Graph{Name: "b", Nodes: []*pb.Node{{OpType: "Neg", Inputs: []string{in}, Outputs: []string{"r"}}}, Outputs: []*pb.ValueInfo{{Name: "r"}}}
	}
	inBranch := modelOf(22, "If flag -> y", "Relu x -> b")
	inBranch.Graph.Initializers = []*pb.Tensor{{Name: "flag", DType: int64(tBool), HasRaw: true, Raw: []byte{1}}}
	inBranch.Graph.Nodes[0].Attributes = []*pb.Attribute{{Name: "then_branch", Type: pb.AttrGraph, G: branch("b")}, {Name: "else_branch", Type: pb.AttrGraph, G: branch("x")}}
	for name, m := range map[string]*pb.Model{
		"chain":  modelOf(22, "Neg c -> y", "Relu b -> c", "Identity x -> b"),
		"branch": inBranch,
	} {
		model, err := Decode("m.onnx", pb.EncodeModel(m))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		outs, err := model.Call(context.Background(), loris.FromSlice([]float32{-1, 2}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := loris.Read[float32](context.Background(), outs[0]); err != nil || !slices.Equal(got, []float32{0, -2}) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// A chain of nodes in the wrong order, which may be as long as a file, needs no deeper stack than a short one.
func TestLongChainInOrder(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	list := make([]*pb.Node, 1<<18)
	for i := range list {
		list[i] = &pb.Node{OpType: "Neg", Inputs: []string{strconv.Itoa(i + 1)}, Outputs: []string{strconv.Itoa(i)}}
	}
	for at, i := range inOrder(list) {
		if want := len(list) - 1 - at; i != want {
			t.Fatalf("node %d is at %d, want %d", i, at, want)
		}
	}
}
