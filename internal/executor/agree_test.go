package executor_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/randprog"
)

var agreeTime = flag.Duration("agree.time", 0, "how long TestBackendsAgree makes random programs beyond its usual ones")

// TestBackendsAgree runs random programs on ref and on cpu. Values without a
// rounding must be equal, others as near as the ops between the inputs and them
// allow: each may add some roundings of its dtypes, and carry on those of its
// operands as far as ref itself does when the inputs move by one.
func TestBackendsAgree(t *testing.T) {
	n := uint64(150)
	if !longtest.Enabled() {
		n = 40
	}
	exact, cpu := newSession(t, executor.Config{}), newSession(t, executor.Config{Device: device(t, "cpu")})
	compared, programs := 0, uint64(0)
	for seed, start := uint64(0), time.Now(); seed < n || time.Since(start) < *agreeTime; seed++ {
		programs++
		p := randprog.New(seed, randprog.Options{Stmts: 4 + int(seed%30), Tame: true, NoRandom: true, NoCarry: true})
		p.Steps = 1 // only the first is known to be tame
		want, err := runProgram(exact, p, marked)
		if err != nil {
			t.Fatalf("seed %d on ref: %v", seed, err)
		}
		moved, err := runProgram(exact, nudged(p, func(ir.DType) float64 { return 0x1p-22 }), marked)
		if err != nil {
			t.Fatalf("seed %d on ref, with other inputs: %v", seed, err)
		}
		got, err := runProgram(cpu, p, marked)
		if err != nil {
			t.Errorf("seed %d on cpu: %v\n%s", seed, err, p)
			continue
		}
		tol := tolerances(p)
		for at, w := range want {
			r := at.register(p)
			msg, ok := apart(p.Shapes[r].DType(), got[at], w, moved[at], tol[r])
			if msg != "" {
				t.Errorf("seed %d at %s: %s\n%s", seed, at.in(p), msg, p)
			}
			if ok {
				compared++
			}
		}
		if len(got) != len(want) {
			t.Errorf("seed %d: %d observations, want %d", seed, len(got), len(want))
		}
	}
	t.Logf("%d programs, %d observations compared", programs, compared)
	if compared < 3*int(n) {
		t.Errorf("only %d observations were compared", compared)
	}
}

func device(t *testing.T, name string) ir.Device {
	t.Helper()
	d, err := ir.ParseDevice(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// register returns what was observed.
func (at place) register(p *randprog.Program) randprog.Reg {
	switch {
	case at.step == p.Steps:
		return p.Vars[at.what]
	case at.what < 0:
		return p.Outputs[-1-at.what]
	}
	return p.Stmts[at.what].Args[0].(randprog.Reg)
}

// nudged returns the program with inputs of a dtype moved by a part of them.
func nudged(p *randprog.Program, by func(ir.DType) float64) *randprog.Program {
	q := *p
	q.Inputs = nil
	for i, in := range p.Inputs {
		if d := in.Shape.DType(); d.IsFloat() {
			v := elements.DecodeFloats(d, in.Data)
			for k := range v {
				v[k] *= 1 + by(d)*float64(1-2*((i+k)%2))
			}
			in.Data = elements.EncodeFloats(d, v)
		}
		q.Inputs = append(q.Inputs, in)
	}
	return &q
}

// unit returns the relative rounding error of a floating dtype.
func unit(d ir.DType) float64 {
	switch d {
	case ir.F16:
		return 0x1p-11
	case ir.BF16:
		return 0x1p-8
	case ir.F8E4M3FN:
		return 0x1p-4
	case ir.F8E5M2:
		return 0x1p-3
	}
	return 0x1p-24 // numbers and intermediate results are f32 at times
}

// tolerances returns the relative error that the ops allow each register: an op
// adds some roundings of its result and its operands to the greatest of its
// operands' errors.
func tolerances(p *randprog.Program) []float64 {
	tol := make([]float64, len(p.Shapes))
	for range p.Steps {
		addTolerances(p, tol)
	}
	return tol
}

// addTolerances goes through one step. The tolerance of a variable is that of the
// input that it begins with, which has no error of its own.
func addTolerances(p *randprog.Program, tol []float64) {
	for i := range p.Stmts {
		st := &p.Stmts[i]
		if st.Kind == randprog.Assign {
			at := p.Vars[st.Var]
			tol[at] = max(tol[at], tol[st.Regs()[0]])
			continue
		}
		most, step := 0.0, 0.0
		if st.Kind == randprog.Load {
			most = tol[p.Vars[st.Var]]
		}
		for _, r := range st.Regs() {
			most, step = max(most, tol[r]), max(step, unit(p.Shapes[r].DType()))
		}
		for _, r := range st.Out {
			tol[r] = most + 16*max(step, unit(p.Shapes[r].DType()))
		}
	}
}

// apart describes how two values differ by more than they may; false says that
// ref itself moves too much to tell.
func apart(d ir.DType, got, want, moved []byte, tol float64) (string, bool) {
	if !d.IsFloat() {
		if !bytes.Equal(got, want) {
			return fmt.Sprintf("got %x, want %x", got, want), true
		}
		return "", true
	}
	g, w, m := elements.DecodeFloats(d, got), elements.DecodeFloats(d, want), elements.DecodeFloats(d, moved)
	for i := range w {
		scale := math.Max(1, math.Abs(w[i]))
		if !(math.Abs(m[i]-w[i]) <= 0x1p-14*scale+tol) {
			return "", false
		}
		if !(math.Abs(g[i]-w[i]) <= tol*scale+64*math.Abs(m[i]-w[i])) {
			return fmt.Sprintf("element %d is %v, want %v within %.2g", i, g[i], w[i], tol*scale), true
		}
	}
	return "", true
}
