// Package check has what backends say of Programs that they cannot compile: those
// whose parts do not fit together, and where in the user's code an op is.
package check

import (
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Program finds Programs that were not built by a Builder or parser: operands come
// before their users, and shapes are what the rows of the table say. has reports
// whether the backend has a kernel for an op. Composites have no row; those that
// the backend has a kernel for pass.
func Program(p *graph.Program, has func(ir.Op) bool) error {
	if len(p.Shapes) < len(p.Params) {
		return fmt.Errorf("%w: %d shapes for %d parameters", ir.ErrArg, len(p.Shapes), len(p.Params))
	}
	for i, q := range p.Params {
		if q.Shape != p.Shapes[i] {
			return fmt.Errorf("%w: parameter %d is %v and %v", ir.ErrShape, i, q.Shape, p.Shapes[i])
		}
	}
	for i := range p.Instrs {
		if p.Inferred() && has(p.Instrs[i].Op) {
			continue
		}
		if err := instr(p, &p.Instrs[i], has); err != nil {
			return Located(&p.Instrs[i], err)
		}
	}
	for i, id := range p.Returns {
		if id < 0 || int(id) >= len(p.Shapes) {
			return fmt.Errorf("%w: return %d is value %d of %d", ir.ErrArg, i, id, len(p.Shapes))
		}
	}
	return nil
}

func instr(p *graph.Program, in *graph.Instr, has func(ir.Op) bool) (err error) {
	defer Recover(&err)
	sp := in.Op.Spec()
	if sp == nil {
		return backend.ErrUnsupported
	}
	if in.Out < 0 || int(in.Out)+in.NOut > len(p.Shapes) {
		return fmt.Errorf("%w: outputs from %d on, of %d values", ir.ErrArg, in.Out, len(p.Shapes))
	}
	for _, id := range in.Args {
		if id < 0 || id >= in.Out {
			return fmt.Errorf("%w: operand %d is not computed before value %d", ir.ErrArg, id, in.Out)
		}
	}
	if !has(in.Op) {
		return fmt.Errorf("%w: there is no kernel for it", backend.ErrUnsupported)
	}
	if sp.Composite() {
		return nil
	}
	if sp.Infer == nil {
		return backend.ErrUnsupported
	}
	want := sp.Infer(p.Args(in))
	if len(want) != in.NOut {
		return fmt.Errorf("%w: %d outputs, want %d", ir.ErrArg, in.NOut, len(want))
	}
	for i, s := range p.Outs(in) {
		if s != want[i] {
			return fmt.Errorf("%w: output %d is %v, want %v", ir.ErrShape, i, s, want[i])
		}
	}
	return nil
}

// Located adds the op that the user called and its line to an error; nil stands for no op.
func Located(in *graph.Instr, err error) error {
	if in == nil {
		return err
	}
	if line := ir.FormatLine(in.Line); line != "" {
		return fmt.Errorf("%v (at %s): %w", in.Called(), line, err)
	}
	return fmt.Errorf("%v: %w", in.Called(), err)
}

// Recover, deferred, turns a panic into an error.
func Recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = r
	default:
		*err = fmt.Errorf("panic: %v", r)
	}
}
