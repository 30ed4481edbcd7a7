package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/opinfo"
)

// RunOpInfo holds every op of the table that has vectors, composites included,
// against PyTorch: results on all dtypes, and in f64 gradients. Composites that
// the backend lacks are decomposed. Each case runs as written and, where that
// makes another Program, after the rewrites of package graph. With -short it
// takes every fourth case.
func RunOpInfo(t *testing.T, b backend.Backend, d ir.Device) {
	s := &suite{b: b, d: d}
	for _, name := range opinfo.Ops() {
		t.Run(name, func(t *testing.T) {
			cases, err := opinfo.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				c := &cases[i]
				if !longtest.Enabled() && i%4 != 0 {
					continue
				}
				if why := unsupported(c); why != "" {
					t.Logf("left out: %v: %s", c, why)
					continue
				}
				s.opinfoCase(t, c)
			}
		})
	}
}

func (s *suite) opinfoCase(t *testing.T, c *opinfo.Case) {
	t.Helper()
	call, err := bindCase(c)
	if err != nil {
		t.Errorf("%v: %v", c, err)
		return
	}
	outs := call.outs
	if len(c.Mutated) == 0 && len(outs) > len(c.Outputs) {
		outs = outs[:len(c.Outputs)] // new running statistics that nothing asks for
	}
	s.opinfoRun(t, outs, "", func(got []opinfo.Tensor) error { return checkResults(c, got) })
	if len(c.Grads) == 0 {
		return
	}
	grads, err := call.grads(c)
	if err != nil {
		t.Errorf("%v: gradients: %v", c, err)
		return
	}
	s.opinfoRun(t, grads, "gradients of ", func(got []opinfo.Tensor) error {
		for i, g := range c.Grads {
			if err := tolerance(c, g.Tensor).Compare(got[i], g.Tensor); err != nil {
				return fmt.Errorf("%v: gradient of %s[%d]: %w", c, g.Input, g.Index, err)
			}
		}
		return nil
	})
}

// tolerance is twice the case's: PyTorch's result may be that far from the exact
// one, and so may the backend's.
func tolerance(c *opinfo.Case, want opinfo.Tensor) opinfo.Tolerance {
	t := c.Tolerance(want.DType)
	return opinfo.Tolerance{RTol: 2 * t.RTol, ATol: 2 * t.ATol}
}

// checkResults compares outputs and, behind them, new values of inputs.
func checkResults(c *opinfo.Case, got []opinfo.Tensor) error {
	n := len(c.Outputs)
	if len(got) != n+len(c.Mutated) {
		return fmt.Errorf("%v: %w: %d outputs, want %d", c, opinfo.ErrMismatch, len(got), n+len(c.Mutated))
	}
	for i, want := range c.Outputs {
		if err := tolerance(c, want).Compare(got[i], want); err != nil {
			return fmt.Errorf("%v: output %d: %w", c, i, err)
		}
	}
	for i, m := range c.Mutated {
		if err := tolerance(c, *m.Tensor).Compare(got[n+i], *m.Tensor); err != nil {
			return fmt.Errorf("%v: new value of %s: %w", c, m.Name, err)
		}
	}
	return nil
}

// opinfoRun computes values as written and after the rewrites.
func (s *suite) opinfoRun(t *testing.T, roots []ir.Value, what string, check func([]opinfo.Tensor) error) {
	t.Helper()
	var w graph.Walker
	po := w.Walk(roots)
	p, leaves := graph.FromPostOrder("opinfo", &po)
	inputs := make([][]byte, len(leaves))
	for i, l := range leaves {
		inputs[i] = leafData(l)
	}
	var written ir.Hash
	for _, noRules := range []bool{true, false} {
		q, _ := graph.Optimize(p, graph.Options{Supports: s.b.Supports, NoRules: noRules})
		if noRules {
			written = q.Hash()
		} else if q.Hash() == written {
			continue
		}
		out, err := s.run(context.Background(), q, inputs)
		if err == nil {
			got := make([]opinfo.Tensor, len(out))
			for i, raw := range out {
				sh := q.Shape(q.Returns[i])
				got[i] = opinfo.Tensor{DType: opinfo.DType(sh.DType().String()), Shape: sh.Dims(), Data: raw}
			}
			err = check(got)
		}
		if err != nil {
			t.Errorf("%s%v", what, err)
			if !errors.Is(err, opinfo.ErrMismatch) {
				t.Logf("in the program\n%s", q)
			}
			return
		}
	}
}

// caseLeaf is an operand of a case.
type caseLeaf struct {
	name string
	data []byte
}

func (l *caseLeaf) LeafName() string { return l.name }

func leafData(n *ir.Node) []byte {
	s := n.Shapes()[0]
	switch l := n.Leaf().(type) {
	case *caseLeaf:
		return l.data
	case *ir.ScalarLeaf:
		switch d := s.DType(); {
		case d.IsFloat() && l.IsFloat:
			return elements.EncodeFloats(d, []float64{l.Float})
		case d.IsFloat():
			return elements.EncodeFloats(d, []float64{ir.IntToFloat(d, l.Int)})
		case l.IsFloat:
			return elements.EncodeInts(d, []int64{ir.FloatToInt(d, l.Float)})
		default:
			return elements.EncodeInts(d, []int64{l.Int})
		}
	}
	panic(fmt.Sprintf("backendtest: leaf %T", n.Leaf()))
}

// boundCase is a case written as a graph.
type boundCase struct {
	b    ir.Builder
	in   map[string][]ir.Value
	outs []ir.Value
}

func bindCase(c *opinfo.Case) (call *boundCase, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			panic(r)
		}
	}()
	call = &boundCase{b: ir.Builder{Lines: ir.LinesOff}, in: map[string][]ir.Value{}}
	var args []ir.Named
	for _, a := range c.Inputs {
		switch {
		case a.Tensor != nil:
			v := tensorLeaf(a.Name, *a.Tensor)
			call.in[a.Name] = []ir.Value{v}
			args = append(args, ir.A(a.Name, v))
		case a.List != nil:
			vs := make([]ir.Value, len(a.List))
			for i, x := range a.List {
				if x != nil {
					vs[i] = tensorLeaf(fmt.Sprintf("%s%d", a.Name, i), *x)
				}
			}
			call.in[a.Name] = vs
			args = append(args, ir.A(a.Name, vs))
		default:
			args = append(args, ir.A(a.Name, attrValue(a.Scalar)))
		}
	}
	for _, a := range c.Attrs {
		args = append(args, ir.A(a.Name, attrValue(a.Value)))
	}
	f := form{&call.b, c.Op, args}
	call.outs = f.call()
	return call, nil
}

func tensorLeaf(name string, x opinfo.Tensor) ir.Value {
	d, err := ir.ParseDType(string(x.DType))
	if err != nil {
		panic(err)
	}
	return ir.NewLeaf(&caseLeaf{name, x.Data}, ir.MakeShape(d, x.Shape...), ir.Device{}).Out(0)
}

// attrValue returns an attribute as ir.Builder.Bind takes it.
func attrValue(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case []int64:
		out := make([]int, len(v))
		for i, n := range v {
			out[i] = int(n)
		}
		return out
	case opinfo.DType:
		d, err := ir.ParseDType(string(v))
		if err != nil {
			panic(err)
		}
		return d
	}
	return v
}

// grads records the gradients that a case has vectors of.
func (call *boundCase) grads(c *opinfo.Case) (out []ir.Value, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = r
		default:
			panic(r)
		}
	}()
	var outs, cots, wrt []ir.Value
	for i, x := range c.Cotangents {
		if x != nil {
			outs = append(outs, call.outs[i])
			cots = append(cots, tensorLeaf("cotangent", *x))
		}
	}
	for _, g := range c.Grads {
		wrt = append(wrt, call.in[g.Input][g.Index])
	}
	var w graph.Walker
	out = graph.Grad(&call.b, &w, outs, cots, wrt)
	for i, v := range out {
		if v.IsNil() {
			return nil, fmt.Errorf("no gradient flows to %s[%d]", c.Grads[i].Input, c.Grads[i].Index)
		}
	}
	return out, nil
}
