package randprog

import (
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestProgramsAreFunctionsOfTheSeed(t *testing.T) {
	for _, o := range []Options{{Stmts: 30}, {Stmts: 30, Tame: true}} {
		for seed := range uint64(10) {
			a, b := New(seed, o).String(), New(seed, o).String()
			if a != b {
				t.Fatalf("seed %d gives two programs:\n%s\n%s", seed, a, b)
			}
			if next := New(seed+1, o).String(); next == a {
				t.Fatalf("seeds %d and %d give one program", seed, seed+1)
			}
		}
	}
}

// A program uses what was made before, and its listing has every statement.
func TestProgramsAreWellFormed(t *testing.T) {
	for seed := range uint64(60) {
		p := New(seed, Options{Stmts: 25, Tame: seed%2 == 0})
		if len(p.Stmts) < 15 {
			t.Errorf("seed %d: only %d statements", seed, len(p.Stmts))
		}
		made := len(p.Inputs)
		for i := range p.Stmts {
			for _, r := range p.Stmts[i].Regs() {
				if int(r) >= made {
					t.Errorf("seed %d: statement %d uses r%d, which comes later", seed, i, r)
				}
			}
			made += len(p.Stmts[i].Out)
		}
		if made != len(p.Shapes) {
			t.Errorf("seed %d: %d registers are made, %d have a shape", seed, made, len(p.Shapes))
		}
		if n := strings.Count(p.String(), "\n"); n != 2+len(p.Inputs)+len(p.Vars)+len(p.Stmts) {
			t.Errorf("seed %d: the listing has %d lines", seed, n)
		}
	}
}

// Over many programs nearly all of the op table is used but for what is excluded, and every kind of
// statement.
func TestProgramsCoverTheOps(t *testing.T) {
	used, kinds := map[string]bool{}, map[Kind]bool{}
	for seed := range uint64(400) {
		p := New(seed, Options{Stmts: 30})
		for i := range p.Stmts {
			kinds[p.Stmts[i].Kind] = true
			if p.Stmts[i].Op != 0 {
				used[p.Stmts[i].Op.String()] = true
			}
		}
	}
	var missing []string
	count := 0
	for _, sp := range ir.Ops() {
		if excluded(sp) && !used[sp.Name] {
			continue
		}
		count++
		if !used[sp.Name] {
			missing = append(missing, sp.Name)
		}
	}
	if len(missing)*5 > count {
		t.Errorf("%d of %d ops are never used: %v", len(missing), count, missing)
	}
	if len(kinds) != len(kindNames) {
		t.Errorf("only %d of %d kinds of statements are used", len(kinds), len(kindNames))
	}
}

func TestShrinkKeepsWhatFails(t *testing.T) {
	p := New(3, Options{Stmts: 40})
	var culprit Reg = -1
	for i := range p.Stmts {
		if s := &p.Stmts[i]; s.Kind == Op && len(s.Regs()) > 0 && int(s.Regs()[0]) >= len(p.Inputs) {
			culprit = s.Out[0]
		}
	}
	fails := func(q *Program) bool {
		return slices.ContainsFunc(q.Stmts, func(s Stmt) bool { return slices.Contains(s.Out, culprit) })
	}
	if culprit < 0 || !fails(p) {
		t.Fatal("the program has no statement to look for")
	}
	q := Shrink(p, 500, fails)
	if q.Steps != 1 || len(q.Outputs) != 0 || len(q.Stmts) > 1 {
		t.Errorf("%d steps, %d outputs and %d statements are left of\n%s", q.Steps, len(q.Outputs), len(q.Stmts), p)
	}
	if len(p.Stmts) < 30 {
		t.Error("the program that was given has changed")
	}
}
