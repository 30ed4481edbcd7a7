package torchexport

import (
	"slices"

	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
)

// ignored are arguments that do not change what an op computes here: where a tensor lies, how fast it
// is made, and those of gradients that PyTorch's engine alone uses.
var ignored = []string{
	"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "generator", "cudnn_enabled", "cudnn_enable", "deterministic",
	"benchmark", "allow_tf32", "scale_grad_by_freq", "sparse", "implicit", "path", "stable", "compute_mode",
}

// generic records an op by the row of its name, with arguments bound by ATen's names.
func generic(op ir.Op) func(c *call) []any {
	schema := op.Spec().Schema
	return func(c *call) []any {
		var named []ir.Named
		for _, a := range c.args {
			i := schema.Param(a.name)
			if i < 0 {
				if alias, ok := op.Spec().Aliases[a.name]; ok {
					i = schema.Param(alias)
				}
			}
			if i < 0 {
				if a.value != nil && !slices.Contains(ignored, a.name) {
					panic(misuse(c.n.target, "argument %q is not supported", a.name))
				}
				continue
			}
			if v, ok := c.bind(&schema.Params[i], a); ok {
				named = append(named, ir.A(schema.Params[i].Name, v))
			}
		}
		outs := importer.Call(c.s, c.device, op, nil, named...)
		if len(schema.Returns) == 1 && schema.Returns[0] == "*" {
			return []any{many(outs...)}
		}
		return many(outs...)
	}
}

// bind converts an argument for a parameter; false leaves it to its default.
func (c *call) bind(p *ir.Param, a argument) (any, bool) {
	if a.value == nil {
		return nil, p.Kind.Optional()
	}
	fail := func(want string) *ir.OpError { return c.wrong(a.name, want, a.value) }
	switch p.Kind {
	case ir.KindTensor, ir.KindOptTensor, ir.KindScalar, ir.KindOptScalar:
		switch v := a.value.(type) {
		case *tensor, int64, float64, bool:
			return plainValue(v), true
		}
		panic(fail("a tensor or a number"))
	case ir.KindTensors:
		return c.tensors(a.name), true
	case ir.KindInt, ir.KindOptInt:
		n, ok := toInt(a.value)
		if !ok {
			panic(fail("an integer"))
		}
		return n, true
	case ir.KindInts, ir.KindOptInts:
		ns, ok := toInts(a.value)
		if !ok {
			panic(fail("a list of integers"))
		}
		return ns, true
	case ir.KindFloat, ir.KindOptFloat:
		f, ok := toFloat(a.value)
		if !ok {
			panic(fail("a number"))
		}
		return f, true
	case ir.KindNumber:
		switch v := a.value.(type) {
		case int64, float64, bool:
			return plainValue(v), true
		}
		panic(fail("a number"))
	}
	switch v := a.value.(type) {
	case bool, string, ir.DType:
		return v, true
	}
	panic(fail(p.Type))
}
