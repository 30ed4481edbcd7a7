package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// The passes of an op.
const forward, gradient = "forward", "gradient"

// How a tensor lies in memory where the size is awkward.
const transposed, expanded = "transposed", "expanded"

// errNoCase says that an op cannot be measured on a dtype, or not at all.
var errNoCase = errors.New("no such case")

// tensor is an operand that carries data.
type tensor struct {
	DType  string `json:"dtype"`
	Dims   []int  `json:"dims"`           // as they lie in memory
	Layout string `json:"layout"`         // what is made of them
	Full   []int  `json:"full,omitempty"` // the dimensions after expanding
	Offset int    `json:"offset"`         // in the file of the operands
	Grad   bool   `json:"grad"`           // whether its gradient is computed

	data     []byte
	value    ir.Value // after the layout
	constant bool     // it has no gradient
}

// argument is one argument of a call: one of its fields is set.
type argument struct {
	Name   string    `json:"name"`
	Tensor *tensor   `json:"tensor,omitempty"`
	List   []*tensor `json:"list,omitempty"`
	DType  string    `json:"dtype,omitempty"`
	Value  any       `json:"value,omitempty"`
}

// call is an op with its arguments, as it is written for the peer.
type call struct {
	Op         string     `json:"op"`
	Args       []argument `json:"args"`
	Cotangents []*tensor  `json:"cotangents"` // of the floating results, where the gradient is asked for

	spec    *ir.Spec
	size    size
	dtype   ir.DType
	rng     *rand.Rand
	builder ir.Builder
	tensors []*tensor
}

// dataLeaf is an operand.
type dataLeaf struct {
	name string
	data []byte
}

func (l *dataLeaf) LeafName() string { return l.name }

// newCall makes the arguments of an op, or returns an error that wraps errNoCase.
func newCall(sp *ir.Spec, d ir.DType, s size) (*call, error) {
	h := fnv.New64a()
	fmt.Fprint(h, sp.Name, d, s.name)
	c := &call{Op: sp.Name, spec: sp, size: s, dtype: d, rng: rand.New(rand.NewPCG(h.Sum64(), 1)), builder: ir.Builder{Lines: ir.LinesOff}}
	text := cmp.Or(s.recipe, s.own[sp.Name], recipes[sp.Name])
	if text == "-" {
		return nil, fmt.Errorf("%w: %s has none", errNoCase, sp.Name)
	}
	given := map[string]string{}
	for part := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(part, "=")
		if !ok || sp.Schema.Param(name) < 0 {
			return nil, fmt.Errorf("%s: %q is not about an argument", sp.Name, part)
		}
		given[name] = value
	}
	for _, p := range sp.Schema.Params {
		value, ok := given[p.Name]
		if !ok && (p.HasDef || p.Kind.Optional()) {
			continue
		}
		if !ok {
			value, ok = defaults[p.Name]
		}
		a, err := c.argument(p, value, ok)
		if err != nil && given[p.Name] == "" {
			return nil, fmt.Errorf("%w: no recipe for %s of %s: %w", errNoCase, p.Name, sp.Name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", sp.Name, p.Name, err)
		}
		c.Args = append(c.Args, a)
	}
	return c, nil
}

func (c *call) argument(p ir.Param, text string, given bool) (a argument, err error) {
	a.Name = p.Name
	switch p.Kind {
	case ir.KindTensor, ir.KindOptTensor:
		if !given {
			text = "r,c"
		}
		if a.Tensor, err = c.tensor(text); err == nil {
			a.Tensor.constant = constants[p.Name]
		}
	case ir.KindTensors:
		for one := range strings.SplitSeq(text, ";") {
			t, err := c.tensor(one)
			if err != nil {
				return a, err
			}
			a.List = append(a.List, t)
		}
	case ir.KindScalar, ir.KindOptScalar, ir.KindNumber, ir.KindFloat, ir.KindOptFloat:
		a.Value, err = c.scalar(p.Kind, text)
	case ir.KindInt, ir.KindOptInt:
		a.Value, err = c.size.number(text)
	case ir.KindInts, ir.KindOptInts:
		a.Value, err = c.size.numbers(text)
	case ir.KindBool:
		a.Value, err = strconv.ParseBool(text)
	case ir.KindStr:
		a.Value = text
	case ir.KindDType, ir.KindOptDType:
		a.DType = c.dtype.String()
		if text != "" {
			a.DType = text
		}
	}
	return a, err
}

// scalar returns an int where one is written, and otherwise a float, which integers do not take.
func (c *call) scalar(k ir.ParamKind, text string) (any, error) {
	if text == "" {
		text = "2"
		if c.dtype.IsFloat() {
			text = "0.5"
		}
	}
	if n, err := c.size.number(text); err == nil {
		if k == ir.KindFloat || k == ir.KindOptFloat {
			return float64(n), nil
		}
		return n, nil
	}
	return strconv.ParseFloat(text, 64)
}

// mostElements is how many a tensor has at most. Results in the square of a dimension have more in
// sizes whose dimension is long.
const mostElements = 1 << 26

func tooLarge(dims []int) error {
	n := 1
	for _, d := range dims {
		if n *= d; n > mostElements {
			return fmt.Errorf("%w: a tensor of %v is too large", errNoCase, dims)
		}
	}
	return nil
}

// tensor makes an operand of "DIMS:WHAT".
func (c *call) tensor(text string) (*tensor, error) {
	dimsText, what, _ := strings.Cut(text, ":")
	dims, err := c.size.numbers(dimsText)
	if err != nil {
		return nil, err
	}
	if err := tooLarge(dims); err != nil {
		return nil, err
	}
	f, err := c.fillOf(what)
	if err != nil {
		return nil, err
	}
	t := &tensor{DType: f.dtype.String(), Layout: c.layout(text, len(c.tensors)), Dims: dims}
	switch t.Layout {
	case transposed:
		t.Dims = []int{dims[1], dims[0]}
	case expanded:
		t.Dims, t.Full = []int{1, dims[1]}, dims
	}
	shape := ir.MakeShape(f.dtype, t.Dims...)
	t.data = f.make(c.rng, shape)
	t.value = c.leaf(fmt.Sprintf("in%d", len(c.tensors)), shape, t.data)
	switch t.Layout {
	case transposed:
		t.value = c.builder.Transpose(t.value, 0, 1)
	case expanded:
		t.value = c.builder.Expand(t.value, dims...)
	}
	c.tensors = append(c.tensors, t)
	return t, nil
}

// layout is how the operand of a number lies in memory.
func (c *call) layout(text string, i int) string {
	switch {
	case !c.size.awkward || text != "r,c":
		return ""
	case i == 0:
		return transposed
	case i == 1 && (c.spec.Category == ir.Pointwise):
		return expanded
	}
	return ""
}

func (c *call) leaf(name string, s ir.Shape, data []byte) ir.Value {
	return ir.NewLeaf(&dataLeaf{name, data}, s, ir.Device{}).Out(0)
}

// record makes the use of the op, and for the gradient pass its gradients. It returns the values to
// compute.
func (c *call) record(pass string) (roots []ir.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*ir.OpError)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%w: %w", errNoCase, e)
		}
	}()
	outs := c.builder.Call(c.spec.Op, nil, c.named()...)
	for _, y := range outs {
		if err := tooLarge(y.Shape().Dims()); err != nil {
			return nil, err
		}
	}
	if pass == forward {
		return outs, nil
	}
	var from, cots, wrt []ir.Value
	for i, y := range outs {
		if !y.DType().IsFloat() {
			continue
		}
		t := &tensor{DType: y.DType().String(), Dims: y.Shape().Dims(), data: c.uniform().make(c.rng, y.Shape())}
		t.value = c.leaf(fmt.Sprintf("cotangent%d", i), y.Shape(), t.data)
		c.Cotangents = append(c.Cotangents, t)
		from, cots = append(from, y), append(cots, t.value)
	}
	for _, t := range c.tensors {
		if t.value.DType().IsFloat() && !t.constant {
			wrt = append(wrt, t.value)
		}
	}
	if len(from) == 0 || len(wrt) == 0 {
		return nil, fmt.Errorf("%w: nothing that has a gradient", errNoCase)
	}
	var w graph.Walker
	grads := graph.Grad(&c.builder, &w, from, cots, wrt)
	any := false
	for i, g := range grads {
		if !g.IsNil() {
			any = true
			c.tensorOf(wrt[i]).Grad = true
			outs = append(outs, g)
		}
	}
	if !any {
		return nil, fmt.Errorf("%w: no gradient flows", errNoCase)
	}
	return outs, nil
}

func (c *call) tensorOf(v ir.Value) *tensor {
	for _, t := range c.tensors {
		if t.value == v {
			return t
		}
	}
	return nil
}

// named returns the arguments as a Builder takes them.
func (c *call) named() (list []ir.Named) {
	for _, a := range c.Args {
		switch {
		case a.Tensor != nil:
			list = append(list, ir.A(a.Name, a.Tensor.value))
		case a.List != nil:
			values := make([]ir.Value, len(a.List))
			for i, t := range a.List {
				values[i] = t.value
			}
			list = append(list, ir.A(a.Name, values))
		case a.DType != "":
			d, err := ir.ParseDType(a.DType)
			if err != nil {
				panic(err)
			}
			list = append(list, ir.A(a.Name, d))
		default:
			list = append(list, ir.A(a.Name, a.Value))
		}
	}
	return list
}
