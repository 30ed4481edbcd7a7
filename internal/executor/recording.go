package executor

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Recording is what a function recorded, for exporters: a Program that need not run here.
type Recording struct {
	Program *graph.Program
	// Params say what the Program's parameters are.
	Params []RecordedParam
	// Results is the number of the function's results. The Program returns the values that Assigned
	// get after them.
	Results  int
	Assigned []*Variable
}

// RecordedParam is a parameter of a Recording: an input of the function, a variable, or a value.
type RecordedParam struct {
	Input    int       // or -1
	Variable *Variable // or nil
	Value    []byte    // of a tensor that the function captured, or of a number
	Number   bool      // Value is that of a number
	Seed     bool      // it is the seed of the session's random numbers
}

// Record calls fn with placeholders for the inputs and returns what it records, as Trace does, without
// compiling it. It waits for the values of tensors that fn captures. It returns an error wrapping
// ir.ErrArg for a function that asks for a number at each call.
func (s *Session) Record(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error)) (*Recording, error) {
	tr, err := s.record(ctx, inputs, newTensor, fn, true)
	if err != nil {
		return nil, err
	}
	r := &Recording{Program: tr.program, Results: tr.numOut, Assigned: tr.vars}
	for i := range tr.params {
		p := &tr.params[i]
		q := RecordedParam{Input: p.input, Variable: p.v, Seed: p.seed}
		switch {
		case p.seed:
		case p.host != nil:
			return nil, fmt.Errorf("%w: the function asks for a number at each call", ir.ErrArg)
		case p.data != nil:
			buf, err := p.data.Wait(ctx)
			if err != nil {
				return nil, err
			}
			if q.Value, err = s.read(ctx, buf); err != nil {
				return nil, err
			}
		case p.scalar != nil:
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], scalarBits(p.scalar, p.dtype))
			q.Value, q.Number = word[:p.dtype.Size()], true
		}
		r.Params = append(r.Params, q)
	}
	return r, nil
}
