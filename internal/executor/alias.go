package executor

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

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
	defer clear(s.paramAt)
	for _, v := range variables {
		d, x := v.committed.data, v.due(s)
		if v.s != s || d == nil || x == nil || x.pend == nil || x.pend.data != nil {
			continue
		}
		next := x.pend.node()
		param := s.paramOf(j.params, d)
		if param < 0 || next.Shape() != d.shape || slices.ContainsFunc(j.donors, func(o donor) bool { return o.param == param }) {
			continue
		}
		for out, r := range j.roots {
			if r == next {
				if j.donors == nil {
					j.donors = make([]donor, 0, min(len(variables), len(j.roots)))
				}
				j.donors = append(j.donors, donor{param, out})
				break
			}
		}
	}
	j.coll.Hash = aliasedHash(j.coll.Hash, j.donors)
}

// fewParams are searched one by one in less time than a map of them takes to make.
const fewParams = 48

// paramOf returns the parameter that is data; -1 if there is none, or if there are two: overwriting one would
// change the other. The session is locked.
func (s *Session) paramOf(params []*Data, d *Data) int {
	if len(params) <= fewParams {
		at := slices.Index(params, d)
		if at >= 0 && slices.Contains(params[at+1:], d) {
			return -1
		}
		return at
	}
	if len(s.paramAt) == 0 {
		for i, p := range params {
			if _, twice := s.paramAt[p]; twice {
				i = -1
			}
			s.paramAt[p] = i
		}
	}
	if at, ok := s.paramAt[d]; ok {
		return at
	}
	return -1
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
