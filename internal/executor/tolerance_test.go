package executor_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/randprog"
)

// Device cpu finishes products, convolutions and attention while results are in
// the cache: it scales by one number instead of several, and computes activations
// in one go. The order of their sums may depend on how an operand lies in memory.
// So their last bits, and those of all that is computed from them, depend on what
// is compiled together. Whatever else cpu computes is the same alone and fused,
// bit by bit, but for the sign of a NaN. On ref everything is the same.

// rough returns the registers that products may have gone into.
func rough(p *randprog.Program) []bool {
	out := make([]bool, len(p.Shapes))
	products := make([]bool, len(p.Stmts))
	for i := range p.Stmts {
		// The gradients of some poolings are convolutions.
		st := &p.Stmts[i]
		products[i] = st.Kind == randprog.Grad || st.Kind == randprog.Op && multiplies(p, st)
	}
	vars := make([]bool, len(p.Vars))
	for range p.Steps {
		for i := range p.Stmts {
			st := &p.Stmts[i]
			is := products[i] || st.Kind == randprog.Load && vars[st.Var]
			for _, r := range st.Regs() {
				is = is || out[r]
			}
			if st.Kind == randprog.Assign {
				vars[st.Var] = vars[st.Var] || is
			}
			for _, r := range st.Out {
				out[r] = out[r] || is
			}
		}
	}
	return out
}

// multiplies reports whether a product, convolution or attention is among what
// cpu makes of a statement.
func multiplies(p *randprog.Program, st *randprog.Stmt) bool {
	params := make([]graph.Param, len(p.Shapes))
	for i, s := range p.Shapes {
		params[i] = graph.Param{Name: fmt.Sprintf("r%d", i), Shape: s}
	}
	regs := graph.NewParams(params)
	args := randprog.Bind(st.Args, 0, func(r randprog.Reg) any { return regs[r] }, func(rs []randprog.Reg) any {
		vs := make([]ir.Value, len(rs))
		for i, r := range rs {
			vs[i] = regs[r]
		}
		return vs
	})
	var b ir.Builder
	one := graph.FromValues("one", regs, b.Call(st.Op, args))
	supports := cpu.New().Supports
	lowered, _ := graph.Optimize(one, graph.Options{Supports: supports})
	for i := range lowered.Instrs {
		op := lowered.Instrs[i].Op
		if op == aten.MatMul || op == aten.Convolution || op.Spec().Composite() {
			return true
		}
	}
	return false
}

// roughlyDifferent describes the first observation that differs by more than it
// may: not at all, but for what comes of products. That may be as far apart as
// the backends' results may be (tolerances), and where want itself moves that far
// when the inputs do by a little, nothing can be told.
func roughlyDifferent(p *randprog.Program, got, want, moved map[place][]byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d observations, want %d", len(got), len(want))
	}
	loose, tol := rough(p), tolerances(p)
	for at, w := range want {
		r := at.register(p)
		g, ok := got[at]
		if ok && sameBits(p.Shapes[r].DType(), g, w) {
			continue
		}
		isLoose := loose[r]
		if at.step == p.Steps {
			isLoose = loose[r] || assigned(p, at.what, loose)
		}
		d := p.Shapes[r].DType()
		switch {
		case !ok || !isLoose:
			return fmt.Sprintf("at %s: got %x, want %x", at.in(p), g, w)
		case !d.IsFloat() && !bytes.Equal(moved[at], w):
			continue
		}
		if msg, _ := apart(d, g, w, moved[at], tol[r]); msg != "" {
			return fmt.Sprintf("at %s: %s", at.in(p), msg)
		}
	}
	return ""
}

// sameBits reports whether two values have the same elements, bit by bit, where
// all NaNs are one.
func sameBits(d ir.DType, x, y []byte) bool {
	if !d.IsFloat() || bytes.Equal(x, y) {
		return bytes.Equal(x, y)
	}
	return slices.EqualFunc(elements.DecodeFloats(d, x), elements.DecodeFloats(d, y), func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
	})
}

// assigned reports whether one of some registers is assigned to a variable.
func assigned(p *randprog.Program, v int, regs []bool) bool {
	for i := range p.Stmts {
		if st := &p.Stmts[i]; st.Kind == randprog.Assign && st.Var == v && regs[st.Regs()[0]] {
			return true
		}
	}
	return false
}
