package onnx

import (
	"slices"

	"github.com/loris-ml/loris/onnx/internal/pb"
)

// inOrder returns the places of nodes in an order in which each comes behind those that it reads
// from, and otherwise in their own. ONNX wants files to be so, but converters append nodes, and
// other runtimes sort them. Nodes of a cycle come in some order, which a check of names refuses.
func inOrder(list []*pb.Node) (places []int) {
	makers := map[string]int{} // the node of each name
	for i, p := range list {
		for _, name := range p.Outputs {
			if name != "" {
				makers[name] = i
			}
		}
	}
	// A chain of nodes may be as long as the file, so what is left to visit is no call for each.
	type waiting struct {
		node  int
		reads []string
	}
	var stack []waiting
	seen := make([]bool, len(list))
	visit := func(i int) {
		if !seen[i] {
			seen[i] = true
			stack = append(stack, waiting{i, reads(list[i])})
		}
	}
	for i := range list {
		visit(i)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.reads) == 0 {
				places = append(places, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			maker, made := makers[top.reads[0]]
			top.reads = top.reads[1:]
			if made {
				visit(maker)
			}
		}
	}
	return places
}

// reads returns the names that a node reads, itself or in its graphs.
func reads(p *pb.Node) []string {
	names := slices.Clip(p.Inputs)
	for _, a := range p.Attributes {
		if a.G == nil {
			continue
		}
		for _, inner := range a.G.Nodes {
			names = append(names, reads(inner)...)
		}
		for _, out := range a.G.Outputs {
			names = append(names, out.Name)
		}
	}
	return names
}
