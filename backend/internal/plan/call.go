package plan

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Call is one use of an op while its steps are emitted.
type Call struct {
	b     *Builder
	Instr *graph.Instr
	// Last is whose results are made: the end of the Epilogue, or Instr; nil if they are not those
	// of the Program.
	Last     *graph.Instr
	Epilogue *fuse.Epilogue // or nil
	ir.Args
	// Operands are the computed operands, see Compute.
	Operands []Value
	// Shapes are those of the results to make, and Results where the first of them lie.
	Shapes  []ir.Shape
	Results []Value

	place    *Value       // of the first result, or nil
	chosen   *fuse.Chosen // what Choose was called with
	standIns ir.StandIns  // of Args, in a call whose memory is used again
}

// Inner returns a call of the same instruction on other operands, whose results have other dtypes
// and are not those of the Program.
func (c *Call) Inner(operands []Value, shapes []ir.Shape) *Call {
	return &Call{b: c.b, Instr: c.Instr, Args: c.Args, Operands: operands, Shapes: shapes}
}

// Compute has all operands computed.
func (c *Call) Compute() {
	if c.Operands == nil {
		c.Operands = make([]Value, 0, len(c.Instr.Args))
	}
	for _, id := range c.Instr.Args[len(c.Operands):] {
		c.Operands = append(c.Operands, c.b.Computed(id))
	}
}

// ComputeFirst has the first n operands computed.
func (c *Call) ComputeFirst(n int) {
	for _, id := range c.Instr.Args[len(c.Operands):n] {
		c.Operands = append(c.Operands, c.b.Computed(id))
	}
}

// Operand returns an operand by name; ok is false for an optional one that was not given.
func (c *Call) Operand(name string) (v Value, ok bool) {
	if c.Tensor(name).IsNil() {
		return Value{}, false
	}
	return c.Operands[c.InputIndex(name)], true
}

// Result makes the buffer of the next result, unless it has a place.
func (c *Call) Result() Value {
	v := Value{}
	if c.place != nil && len(c.Results) == 0 {
		v = *c.place
	} else {
		v = c.b.NewValue(c.Shapes[len(c.Results)])
	}
	c.Results = append(c.Results, v)
	return v
}

// ResultOfCopy makes the next result a copy of the first operand, which takes its memory if nothing
// else uses that later.
func (c *Call) ResultOfCopy() Value {
	out := c.Result()
	c.b.emitter.CopyTo(c.Instr, out, c.Operands[0])
	return out
}

// Copied has a dense copy of a value emitted.
func (c *Call) Copied(v Value) Value { return c.b.Copied(c.Instr, v) }

// Dense returns a value with its elements in order, a copy if they are not so: the same for all calls that ask for the
// value.
func (c *Call) Dense(v Value) Value {
	if v.Contiguous() {
		return v
	}
	if to, ok := c.b.copies[v]; ok {
		return to
	}
	to := c.Copied(v)
	if c.b.copies == nil {
		c.b.copies = map[Value]Value{}
	}
	c.b.copies[v] = to
	return to
}

// Matrix returns the matrix whose elements, one row after the other, the first operand has, if it is one
// that no stride goes through and that is not copied yet, as it is by Compute.
func (c *Call) Matrix() (v Value, ok bool) {
	v, ok = c.b.apart[c.Instr.Args[0]]
	return v, ok && v.View.Rank == 2 && c.Args.In[0].Rank() == 1
}
