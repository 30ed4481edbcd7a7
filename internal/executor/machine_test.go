package executor_test

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/randprog"
)

// form is how a machine runs the steps of a program.
type form int

const (
	marked form = iota // record, MarkStep, read
	eager              // sync and wait after each statement
	scoped             // Session.Step, which donates
	traced             // Session.Trace and Call
)

// place says where something was observed: a statement's read in a step, an
// output (-1, -2, …) at the end of one, a variable after the last.
type place struct{ step, what int }

// machine runs one random program on a session.
type machine struct {
	p          *randprog.Program
	s          *executor.Session
	form       form
	vars       []*executor.Variable
	inputs     []*executor.Tensor
	regs, prev []*executor.Tensor // nil: no value in this step
	seen       map[place][]byte
	reads      []place // of the step being traced
	step       int
}

// runProgram runs a program with the given seed of random numbers and returns
// what it observes.
func runProgram(s *executor.Session, p *randprog.Program, f form) (seen map[place][]byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			oe, ok := r.(*ir.OpError)
			if !ok {
				panic(r)
			}
			err = oe
		}
	}()
	m := &machine{p: p, s: s, form: f, seen: map[place][]byte{}}
	s.SetRngSeed(s.Device(), p.Seed)
	upload := func(in randprog.Input) *executor.Tensor {
		x := newTensor()
		if e := s.Upload(ctx, x, in.Shape, s.Device(), in.Data); e != nil && err == nil {
			err = e
		}
		return x
	}
	for _, in := range p.Inputs {
		m.inputs = append(m.inputs, upload(in))
	}
	for _, r := range p.Vars {
		// Its own data: to gradients, an input and a variable are two things.
		m.vars = append(m.vars, s.NewVariable(upload(p.Inputs[r])))
	}
	if err != nil {
		return nil, err
	}
	for ; m.step < p.Steps; m.step++ {
		if err := m.runStep(); err != nil {
			return nil, fmt.Errorf("step %d: %w", m.step, err)
		}
		m.prev = m.regs
	}
	for i, v := range m.vars {
		x := newTensor()
		v.Value(s, x)
		if err := m.observe(place{p.Steps, i}, x); err != nil {
			return nil, err
		}
	}
	return m.seen, nil
}

func (m *machine) observe(at place, x *executor.Tensor) error {
	err := x.Read(ctx, func(b []byte) error {
		m.seen[at] = slices.Clone(b)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read at %v: %w", at, err)
	}
	return nil
}

// release releases most of the values that statement i is the last to use.
func (m *machine) release(i int) {
	if m.form == traced || (i+m.step)%4 == 0 {
		return
	}
	for _, r := range m.p.Stmts[i].Regs() {
		last := int(r) >= len(m.p.Inputs) && m.regs[r] != nil && !slices.Contains(m.p.Outputs, r)
		for k := range m.p.Stmts {
			st := &m.p.Stmts[k]
			last = last && !(k > i || st.Kind == randprog.Carry) || last && !slices.Contains(st.Regs(), r)
		}
		// A value of the step before can be in two registers.
		if last && !slices.Contains(m.prev, m.regs[r]) {
			m.s.Release(m.regs[r])
		}
	}
}

func (m *machine) runStep() error {
	switch m.form {
	case scoped:
		if err := m.s.Step(ctx, func() error { return m.statements(m.inputs, true) }); err != nil {
			return err
		}
	case traced:
		return m.traceStep()
	default:
		if err := m.statements(m.inputs, false); err != nil {
			return err
		}
		if err := m.s.MarkStep(ctx); err != nil {
			return err
		}
	}
	for i, r := range m.p.Outputs {
		if x := m.regs[r]; x != nil {
			if err := m.observe(place{m.step, -1 - i}, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// statements records the step; keep marks what is used after it.
func (m *machine) statements(inputs []*executor.Tensor, keep bool) error {
	m.regs = make([]*executor.Tensor, len(m.p.Shapes))
	copy(m.regs, inputs)
	for i := range m.p.Stmts {
		st := &m.p.Stmts[i]
		if !st.Runs(m.step) || slices.ContainsFunc(st.Regs(), func(r randprog.Reg) bool { return m.regs[r] == nil }) && st.Kind != randprog.Carry {
			continue
		}
		if err := m.exec(i, st); err != nil {
			return fmt.Errorf("statement %d: %w", i, err)
		}
		m.release(i)
	}
	if !keep {
		return nil
	}
	for _, r := range m.p.Outputs {
		if m.regs[r] != nil {
			m.s.Keep(m.regs[r])
		}
	}
	for i := range m.p.Stmts {
		if st := &m.p.Stmts[i]; st.Kind == randprog.Carry && m.regs[st.Regs()[0]] != nil {
			m.s.Keep(m.regs[st.Regs()[0]])
		}
	}
	return nil
}

func (m *machine) exec(i int, st *randprog.Stmt) error {
	var outs []*executor.Tensor
	arg := func(k int) *executor.Tensor { return m.regs[st.Args[k].(randprog.Reg)] }
	switch st.Kind {
	case randprog.Op:
		outs = m.op(st)
	case randprog.Random:
		x := newTensor()
		m.s.Random(ir.Device{}, st.Op, x, m.args(st))
		outs = []*executor.Tensor{x}
	case randprog.Load:
		x := newTensor()
		m.vars[st.Var].Value(m.s, x)
		outs = []*executor.Tensor{x}
	case randprog.Assign:
		m.vars[st.Var].Assign(arg(0))
	case randprog.Grad:
		wrt := make([]*executor.Tensor, len(st.Args)-1)
		for k := range wrt {
			wrt[k] = arg(k + 1)
		}
		outs = m.s.Grad(newTensor, []*executor.Tensor{arg(0)}, nil, wrt)
	case randprog.Read:
		if m.form == traced {
			m.reads = append(m.reads, place{m.step, i})
			return nil
		}
		return m.observe(place{m.step, i}, arg(0))
	case randprog.Keep:
		m.s.Keep(arg(0))
	case randprog.Discard:
		m.s.Discard(arg(0))
	case randprog.Carry:
		if m.prev == nil || m.prev[st.Args[0].(randprog.Reg)] == nil {
			return nil
		}
		outs = []*executor.Tensor{m.prev[st.Args[0].(randprog.Reg)]}
	}
	for k, r := range st.Out {
		m.regs[r] = outs[k]
		if got := outs[k].Shape(); got != m.p.Shapes[r] {
			return fmt.Errorf("r%d is %v, want %v", r, got, m.p.Shapes[r])
		}
	}
	if m.form == eager && len(outs) > 0 {
		if _, err := m.s.SyncTensors(ctx, outs, executor.SyncTensorsConfig{ForceData: true, SyncData: true}); err != nil {
			return err
		}
		return m.s.WaitDeviceOps(ctx)
	}
	return nil
}

func (m *machine) args(st *randprog.Stmt) []any {
	return randprog.Bind(st.Args, m.step, func(r randprog.Reg) any { return m.regs[r] }, func(rs []randprog.Reg) any {
		ts := make([]*executor.Tensor, len(rs))
		for i, r := range rs {
			ts[i] = m.regs[r]
		}
		return ts
	})
}

// op records an op by the fast paths where there is one.
func (m *machine) op(st *randprog.Stmt) []*executor.Tensor {
	args := m.args(st)
	if len(args) <= 2 && len(st.Out) == 1 && !slices.ContainsFunc(st.Op.Spec().Schema.Params, func(p ir.Param) bool { return p.Kind != ir.KindTensor && p.Kind != ir.KindScalar }) {
		out := newTensor()
		x, isX := args[0].(*executor.Tensor)
		if len(args) == 1 {
			m.s.Unary(st.Op, out, x)
			return []*executor.Tensor{out}
		}
		y, isY := args[1].(*executor.Tensor)
		switch {
		case isX && isY:
			m.s.Binary(st.Op, out, x, y)
		case isX:
			m.s.BinaryNumber(st.Op, out, x, args[1], false)
		default:
			m.s.BinaryNumber(st.Op, out, y, args[0], true)
		}
		return []*executor.Tensor{out}
	}
	return m.s.Call(st.Op, newTensor, args, nil)
}

// traceStep compiles the step as a function of the inputs and calls it.
func (m *machine) traceStep() error {
	m.reads = nil
	var outputs []place
	tr, err := m.s.Trace(ctx, m.inputs, newTensor, func(in []*executor.Tensor) ([]*executor.Tensor, error) {
		if err := m.statements(in, false); err != nil {
			return nil, err
		}
		var outs []*executor.Tensor
		for i, r := range m.p.Outputs {
			if m.regs[r] != nil {
				outs, outputs = append(outs, m.regs[r]), append(outputs, place{m.step, -1 - i})
			}
		}
		for _, at := range m.reads {
			outs, outputs = append(outs, m.regs[m.p.Stmts[at.what].Args[0].(randprog.Reg)]), append(outputs, at)
		}
		return outs, nil
	}, false)
	if err != nil {
		return err
	}
	outs, err := tr.Call(ctx, m.inputs, newTensor)
	if err != nil {
		return err
	}
	for i, at := range outputs {
		if err := m.observe(at, outs[i]); err != nil {
			return err
		}
	}
	return nil
}
