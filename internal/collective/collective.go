// Package collective is what backends and package dist know of each other: the uses of collectives in a
// Program, and who runs them.
package collective

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// Use is one use of a collective in a Program. Fields that its op does not have are zero.
type Use struct {
	Op        string
	Group     string
	Reduction string
	// Dim is the dimension that is cut or joined, and Size the number of ranks that this was recorded for.
	Dim, Size int
	// Peer is the rank that is the root, or with which elements are exchanged under Tag.
	Peer, Tag int
	In, Out   ir.Shape
	Line      string // file:line of the user's call
	// Text says what it is, in words that are the same on all ranks that agree about it.
	Text string
	// Unagreed says that Agree is not asked about it before: it is of a program that does not tell its
	// collectives in advance. The ranks compare it as it begins.
	Unagreed bool
	// Meter is the Communicator's own, from its first run or Agree on: one Use is not run twice at a time.
	Meter any
}

// Group is a group of ranks, seen from one of them.
type Group interface {
	Rank() int
	Size() int
	// Communicator returns who runs the group's collectives, and the name that Uses have for the group.
	Communicator() (c Communicator, name string)
}

// Request is a collective under way.
type Request interface {
	// Wait returns once the collective reads and writes no memory any more, and its error. Where ctx ends
	// first the group has failed, and Wait returns soon.
	Wait(ctx context.Context) error
}

// Communicator runs the collectives of one rank.
type Communicator interface {
	// Agree compares the uses of a run with those of the other ranks, before the run. There is one at least;
	// they are not those that are run.
	Agree(ctx context.Context, uses []Use) error
	// Run is Start and Wait, for a collective beside which this rank has nothing to do: it is run by the
	// caller's goroutine if it can.
	Run(ctx context.Context, u *Use, out, in []byte) error
	// Start begins a collective. in holds the elements of the operand and out is to hold those of the
	// result, both dense and little endian, aligned for their dtypes; they are left alone until Wait. For
	// all_reduce and broadcast they may be the same memory.
	Start(u *Use, out, in []byte) Request
	// Fail tells the other ranks that a run of this one has failed and will start no more collectives.
	Fail(err error)
	// Report says what collectives have cost so far, those that were waited for longest first, and
	// agreements.
	Report() ([]report.Collective, report.Agreements)
	// Observe makes fn get each collective as it ends, on any goroutine; nil ends that.
	Observe(fn func(Event))
}

// Event is a collective that has ended, or the agreement about those of a run.
type Event struct {
	Group, Text, Line string
	Start             time.Time
	Duration          time.Duration
}

type key struct{}

// With returns a context for a run whose collectives c runs.
func With(ctx context.Context, c Communicator) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// errNone says that a session has no group.
var errNone = fmt.Errorf("%w: the session belongs to no group of processes: make it with dist.Group.Session", ir.ErrArg)

// From returns the Communicator of a run's context.
func From(ctx context.Context) (Communicator, error) {
	if c, _ := ctx.Value(key{}).(Communicator); c != nil {
		return c, nil
	}
	return nil, errNone
}

// Of returns the collectives of a Program in their order.
func Of(p *graph.Program) []Use {
	var out []Use
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if sp := in.Op.Spec(); sp != nil && sp.Category == ir.Collective { // backends refuse ops that there are not
			out = append(out, UseOf(p, in))
		}
	}
	return out
}

// UseOf returns the use that an instruction is.
func UseOf(p *graph.Program, in *graph.Instr) Use {
	a := p.Args(in)
	u := Use{Op: in.Op.String(), Group: a.Str("group"), In: a.In[0].Shape(), Out: p.Outs(in)[0], Line: ir.FormatLine(in.Line)}
	has := func(name string) bool { return a.Spec.Schema.Param(name) >= 0 }
	if has("reduction") {
		u.Reduction = a.Str("reduction")
	}
	if has("dim") {
		u.Dim, u.Size = a.Dim("dim", u.In.Rank()), a.Int("size")
	}
	for _, name := range []string{"root", "peer"} {
		if has(name) {
			u.Peer = a.Int(name)
		}
	}
	if has("tag") {
		u.Tag = a.Int("tag")
	}
	u.Text = u.describe()
	return u
}

func (u *Use) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%v", u.Op, u.In)
	if u.Reduction != "" {
		fmt.Fprintf(&b, ", %s", u.Reduction)
	}
	switch u.Op {
	case "all_gather", "reduce_scatter", "all_to_all":
		fmt.Fprintf(&b, ", dim %d, %d ranks", u.Dim, u.Size)
	case "broadcast", "reduce":
		fmt.Fprintf(&b, ", root %d", u.Peer)
	case "send", "recv":
		fmt.Fprintf(&b, ", peer %d, tag %d", u.Peer, u.Tag)
	}
	return b.String() + ")"
}
