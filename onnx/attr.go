package onnx

import "github.com/loris-ml/loris/onnx/internal/pb"

// attr returns the attribute of a node, or nil; one that stands for an attribute of the function
// around is that one's.
func (c *call) attr(name string) *pb.Attribute {
	a := c.node.attrs[name]
	if a != nil && a.RefName != "" {
		a = c.frame.attrs[a.RefName]
	}
	return a
}

func (c *call) has(name string) bool { return c.attr(name) != nil }

// typed is attr that refuses an attribute of another type.
func (c *call) typed(name string, kind int64) *pb.Attribute {
	a := c.attr(name)
	if a != nil && a.Type != kind {
		c.fail("attribute %q has type %d, %d is expected", name, a.Type, kind)
	}
	return a
}

func (c *call) int(name string, def int) int {
	if a := c.typed(name, pb.AttrInt); a != nil {
		return int(a.I)
	}
	return def
}

func (c *call) bool(name string, def bool) bool {
	d := 0
	if def {
		d = 1
	}
	return c.int(name, d) != 0
}

func (c *call) float(name string, def float64) float64 {
	if a := c.typed(name, pb.AttrFloat); a != nil {
		return float64(a.F)
	}
	return def
}

func (c *call) text(name, def string) string {
	if a := c.typed(name, pb.AttrString); a != nil {
		return a.S
	}
	return def
}

// list returns an attribute of integers, nil where there is none.
func (c *call) list(name string) []int {
	a := c.typed(name, pb.AttrInts)
	if a == nil {
		return nil
	}
	return ints(a.Ints)
}

func (c *call) floatList(name string) []float64 {
	a := c.typed(name, pb.AttrFloats)
	if a == nil {
		return nil
	}
	out := make([]float64, len(a.Floats))
	for i, v := range a.Floats {
		out[i] = float64(v)
	}
	return out
}

func (c *call) texts(name string) []string {
	if a := c.typed(name, pb.AttrStrings); a != nil {
		return a.Strings
	}
	return nil
}

// elemAttr returns an attribute that is an element type.
func (c *call) elemAttr(name string, def elemType) elemType {
	e := elemType(c.int(name, int(def)))
	if !e.held() {
		c.unsupported("%v elements", e)
	}
	return e
}

// body returns the graph of an attribute.
func (c *call) body(name string) *graph {
	g := c.node.graphs[name]
	if g == nil {
		c.fail("attribute %q, a graph, is missing", name)
	}
	return g
}

// opt returns input i, or nil where it is left out.
func opt(in []*value, i int) *value {
	if i < len(in) {
		return in[i]
	}
	return nil
}

// listInput returns integers that are an input from an opset version on and were an attribute
// before; nil where neither is there.
func (c *call) listInput(in []*value, i int, attr string) []int {
	if v := opt(in, i); v != nil {
		return c.intList(v)
	}
	return c.list(attr)
}
