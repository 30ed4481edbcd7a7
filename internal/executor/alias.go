package executor

import "github.com/loris-ml/loris/internal/ir"

// donor is a parameter whose memory the computation may take for an output.
type donor struct{ param, output int }

// buildInputOutputAliases pairs the old data of variables with the outputs that replace it. The
// pairs are part of the cache key, because the compiled plan depends on them. Whether the data
// of a pair may really be overwritten, since nothing else can reach it any more, may change from
// step to step and must not compile the graph again; assign decides it.
//
// The session is locked.
func (s *Session) buildInputOutputAliases(j *syncJob, variables []*Variable) {
	defer s.core.reading(stripesOf(variables)).release()
	at, built := s.paramAt, false
	defer clear(at)
	for _, v := range variables {
		d, x := v.committed.data, v.due(s)
		if v.s != s || d == nil || x == nil || x.pend == nil || x.pend.data != nil {
			continue
		}
		next := x.pend.node()
		if !built {
			built = true
			for i, p := range j.params {
				if _, twice := at[p]; twice {
					i = -1 // it is two leaves: overwriting one would change the other
				}
				at[p] = i
			}
		}
		param, used := at[d]
		if !used || param < 0 || next.Shape() != d.shape {
			continue
		}
		for out, r := range j.roots {
			if r == next {
				if j.donors == nil {
					j.donors = make([]donor, 0, min(len(variables), len(j.roots)))
				}
				j.donors = append(j.donors, donor{param, out})
				delete(at, d)
				break
			}
		}
	}
	j.coll.Hash = aliasedHash(j.coll.Hash, j.donors)
}

// aliasedHash is the cache key of a graph's computation that may write outputs over
// parameters.
func aliasedHash(graph ir.Hash, donors []donor) ir.Hash {
	if len(donors) == 0 {
		return graph
	}
	b := graph.Append(make([]byte, 0, 16+8*len(donors)))
	for _, d := range donors {
		b = append(b, byte(d.param), byte(d.param>>8), byte(d.param>>16), byte(d.param>>24))
		b = append(b, byte(d.output), byte(d.output>>8), byte(d.output>>16), byte(d.output>>24))
	}
	return ir.HashBytes(b)
}

// donate lets the computation overwrite a parameter, if nothing else can reach its data;
// core.mu is held.
func (a *Async) donate(param int) {
	p := a.params[param]
	if p.donated || !p.mayDie() {
		return
	}
	if a.donated == nil {
		a.donated = make([]bool, len(a.params))
	}
	a.donated[param], p.donated = true, true
}
