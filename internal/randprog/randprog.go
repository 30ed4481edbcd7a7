// Package randprog makes random tensor programs, each a function of its seed,
// for tests that run one program in many ways which must agree.
//
// A Program is data: statements over registers, run once a step. It has no
// loops and no tests. A statement whose operand has no value in a step (because
// the statement that makes it was left out, in this step or by Shrink) is
// skipped, so any subset of the statements is a program, too.
package randprog

import (
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// Reg names a value of a Program. The inputs come first.
type Reg int

// Num is a plain number given to an op: it changes from step to step.
type Num struct {
	Base, Slope float64
	// Int makes it an int64 at each step, otherwise it is a float64.
	Int bool
}

// At returns the number of a step, an int64 or a float64.
func (n Num) At(step int) any {
	v := n.Base + float64(step)*n.Slope
	if n.Int {
		return int64(v)
	}
	return v
}

// Kind says what a statement does.
type Kind uint8

// The kinds.
const (
	// Op records an op: Args are its arguments by position, with Reg, []Reg and
	// Num for operands.
	Op Kind = iota
	// Random records a random op: Args leave out the seed and the offset.
	Random
	// Load makes Out[0] the value of variable Var.
	Load
	// Assign gives variable Var the value of Args[0].
	Assign
	// Grad makes Out the gradients of Args[0] with respect to Args[1:].
	Grad
	// Read reads Args[0] in the middle of the step: the value is an observation.
	Read
	// Keep marks Args[0] to be computed at the end of the step.
	Keep
	// Discard marks Args[0] not to be.
	Discard
	// Carry makes Out[0] the value that Args[0] had in the step before; it has
	// none in the first.
	Carry
)

var kindNames = [...]string{"", "random", "load", "assign", "grad", "read", "keep", "discard", "carry"}

// Stmt is one statement.
type Stmt struct {
	Kind Kind
	Op   ir.Op
	Args []any
	Out  []Reg
	Var  int
	// Every, when above 1, runs the statement in every so manyth step only.
	Every int
}

// Runs reports whether the statement belongs to a step, counted from 0.
func (s *Stmt) Runs(step int) bool { return s.Every < 2 || step%s.Every == 0 }

// Regs returns the registers that the statement uses.
func (s *Stmt) Regs() []Reg {
	var out []Reg
	for _, a := range s.Args {
		switch a := a.(type) {
		case Reg:
			out = append(out, a)
		case []Reg:
			out = append(out, a...)
		}
	}
	return out
}

// Input is host data: the register of its position has it in every step.
type Input struct {
	Shape ir.Shape
	Data  []byte
}

// Program is a random program.
type Program struct {
	Seed   uint64
	Steps  int
	Inputs []Input
	// Vars are the variables, each with the input that it begins with.
	Vars []Reg
	// Shapes are the shapes of the registers.
	Shapes  []ir.Shape
	Stmts   []Stmt
	Outputs []Reg // observed at the end of each step
}

// Has reports whether the program has a statement of a kind.
func (p *Program) Has(k Kind) bool {
	for i := range p.Stmts {
		if p.Stmts[i].Kind == k {
			return true
		}
	}
	return false
}

// String lists the program, one statement a line.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# seed %d, %d steps\n", p.Seed, p.Steps)
	for i, in := range p.Inputs {
		fmt.Fprintf(&b, "r%d = input : %v  # %x\n", i, in.Shape, in.Data)
	}
	for i, r := range p.Vars {
		fmt.Fprintf(&b, "var v%d = r%d\n", i, r)
	}
	for i := range p.Stmts {
		b.WriteString(p.line(&p.Stmts[i]))
	}
	b.WriteString("observe")
	for _, r := range p.Outputs {
		fmt.Fprintf(&b, " r%d", r)
	}
	return b.String() + "\n"
}

func (p *Program) line(s *Stmt) string {
	var b strings.Builder
	for i, r := range s.Out {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "r%d", r)
	}
	if len(s.Out) > 0 {
		b.WriteString(" = ")
	}
	if s.Kind != Op {
		b.WriteString(kindNames[s.Kind] + " ")
	}
	if s.Kind == Load || s.Kind == Assign {
		fmt.Fprintf(&b, "v%d", s.Var)
	}
	if s.Op != 0 {
		b.WriteString(s.Op.String())
	}
	b.WriteString("(")
	for i, a := range s.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(argString(a))
	}
	b.WriteString(")")
	for i, r := range s.Out {
		sep := ", "
		if i == 0 {
			sep = " : "
		}
		b.WriteString(sep + p.Shapes[r].String())
	}
	if s.Every > 1 {
		fmt.Fprintf(&b, "  # every %d steps", s.Every)
	}
	return b.String() + "\n"
}

func argString(a any) string {
	switch a := a.(type) {
	case Reg:
		return fmt.Sprintf("r%d", a)
	case []Reg:
		s := make([]string, len(a))
		for i, r := range a {
			s[i] = argString(r)
		}
		return "[" + strings.Join(s, ", ") + "]"
	case Num:
		if a.Slope == 0 {
			return fmt.Sprint(a.At(0))
		}
		return fmt.Sprintf("%v+%v*step", a.At(0), a.Slope)
	case string:
		return fmt.Sprintf("%q", a)
	case nil:
		return "none"
	}
	return fmt.Sprint(a)
}
