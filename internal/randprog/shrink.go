package randprog

import "slices"

// Shrink returns a smaller program that still fails: it drops statements, steps
// and outputs as long as fails says so, and calls fails at most tries times.
func Shrink(p *Program, tries int, fails func(*Program) bool) *Program {
	try := func(q Program) bool {
		if tries--; tries < 0 || !fails(&q) {
			return false
		}
		p = &q
		return true
	}
	for before := -1; before != size(p) && tries > 0; {
		before = size(p)
		for p.Steps > 1 {
			q := *p
			q.Steps--
			if !try(q) {
				break
			}
		}
		for n := len(p.Stmts); n > 0; n /= 2 {
			for at := 0; at < len(p.Stmts); {
				q := *p
				q.Stmts = slices.Delete(slices.Clone(p.Stmts), at, min(at+n, len(p.Stmts)))
				if !try(q) {
					at += n
				}
			}
		}
		for at := 0; at < len(p.Outputs); {
			q := *p
			q.Outputs = slices.Delete(slices.Clone(p.Outputs), at, at+1)
			if !try(q) {
				at++
			}
		}
	}
	return prune(p)
}

func size(p *Program) int { return p.Steps + len(p.Stmts) + len(p.Outputs) }

// prune drops the statements that can never run, because nothing makes what
// they use.
func prune(p *Program) *Program {
	q := *p
	for before := -1; before != len(q.Stmts); {
		before = len(q.Stmts)
		made := make([]bool, len(p.Shapes))
		for i := range p.Inputs {
			made[i] = true
		}
		for i := range q.Stmts {
			for _, r := range q.Stmts[i].Out {
				made[r] = true
			}
		}
		q.Stmts = slices.DeleteFunc(slices.Clone(q.Stmts), func(s Stmt) bool {
			return slices.ContainsFunc(s.Regs(), func(r Reg) bool { return !made[r] })
		})
	}
	return &q
}
