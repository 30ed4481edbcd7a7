package onnx

import "github.com/loris-ml/loris/onnx/internal/pb"

// inOrder returns the places of nodes in an order in which each comes behind those that it reads
// from, and otherwise in their own. ONNX wants files to be so, but converters append nodes, and
// other runtimes sort them. Nodes of a cycle come in some order, which a check of names refuses.
func inOrder(list []*pb.Node) []int {
	o := &order{list: list, makers: map[string]int{}, seen: make([]bool, len(list))}
	for i, p := range list {
		for _, name := range p.Outputs {
			if name != "" {
				o.makers[name] = i
			}
		}
	}
	for i := range list {
		o.visit(i)
	}
	return o.places
}

// order is a search through nodes along what they read.
type order struct {
	list   []*pb.Node
	makers map[string]int // the node of each name
	seen   []bool
	places []int
}

func (o *order) visit(i int) {
	if o.seen[i] {
		return
	}
	o.seen[i] = true
	o.before(o.list[i])
	o.places = append(o.places, i)
}

// before visits the nodes that a node reads from, itself or in its graphs.
func (o *order) before(p *pb.Node) {
	o.names(p.Inputs)
	for _, a := range p.Attributes {
		if a.G == nil {
			continue
		}
		for _, inner := range a.G.Nodes {
			o.before(inner)
		}
		for _, out := range a.G.Outputs {
			o.names([]string{out.Name})
		}
	}
}

func (o *order) names(names []string) {
	for _, name := range names {
		if i, made := o.makers[name]; made {
			o.visit(i)
		}
	}
}
