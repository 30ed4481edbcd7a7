package executor

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// same returns an error unless a second recording of the function is equal to the first: what
// differs depends on something of the host that only the first call would see.
func (tr *Traced) same(ctx context.Context, again *Traced) error {
	if !tr.sameGraph(again) {
		at := commonPrefix(again.program, tr.program)
		if at == len(again.program.Instrs) {
			at-- // the graph ends here
		}
		var line uintptr
		if at >= 0 {
			line = again.program.Instrs[at].Line
		}
		return impure(line, "it records other ops")
	}
	for i, p := range tr.params {
		q := again.params[i]
		switch {
		case p.input != q.input || p.v != q.v || (p.data == nil) != (q.data == nil):
			return impure(usedAt(again.program, i), "it uses other inputs or variables")
		case p.scalar != nil && !sameNumber(p.scalar, q.scalar):
			return impure(usedAt(again.program, i), "it uses the number %v and then %v", p.scalar.AsFloat(), q.scalar.AsFloat())
		case p.data != q.data:
			equal, err := sameContents(ctx, p.data, q.data)
			if err != nil {
				return err
			}
			if !equal {
				return impure(usedAt(again.program, i), "it uses a tensor with other elements")
			}
		}
	}
	return nil
}

// sameGraph reports whether two recordings have the same ops, inputs and assignments.
func (tr *Traced) sameGraph(again *Traced) bool {
	return tr.hash == again.hash && len(tr.params) == len(again.params) &&
		slices.Equal(tr.vars, again.vars) && len(tr.onCall) == len(again.onCall)
}

func sameNumber(a, b *ir.ScalarLeaf) bool {
	return a.IsFloat == b.IsFloat && a.Int == b.Int && math.Float64bits(a.Float) == math.Float64bits(b.Float)
}

// sameContents compares data elementwise.
func sameContents(ctx context.Context, a, b *Data) (bool, error) {
	var contents [2][]byte
	for i, d := range []*Data{a, b} {
		buf, err := d.Wait(ctx)
		if err != nil {
			return false, err
		}
		if contents[i], err = backend.Contents(ctx, buf); err != nil {
			return false, err
		}
	}
	return bytes.Equal(contents[0], contents[1]), nil
}

// usedAt returns the line of the first op that uses a parameter.
func usedAt(p *graph.Program, param int) uintptr {
	for i := range p.Instrs {
		if slices.Contains(p.Instrs[i].Args, graph.ID(param)) {
			return p.Instrs[i].Line
		}
	}
	return 0
}

func impure(line uintptr, format string, args ...any) error {
	e := ir.NewOpError("compile", ir.ErrArg, nil, "the function, called twice, does not record the same: "+format+
		"; each call of a compiled function would repeat the first: make what changes an input, a variable or a Maker.ScalarFunc", args...)
	if line != 0 {
		e.Line = ir.FormatLine(line)
	}
	return e
}
