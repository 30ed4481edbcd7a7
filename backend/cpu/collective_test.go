package cpu

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// bucketed is two collectives in a chain, of which the second is computed while the first is under way.
const bucketed = `program @step {
  %x = parameter "x" : f32[64,64]
  %y = parameter "y" : f32[64,32]
  %a = all_reduce(matmul(%x, %x), reduction="sum", group="g")
  %b = all_reduce(matmul(%x, %y), reduction="sum", group="g", after=%a)
  return sub(%x, %a), sub(%y, %b)
}`

// TestCollectivesOverlap checks that each is begun as soon as its operand is there and awaited right
// before the result is used, in the order of the Program.
func TestCollectivesOverlap(t *testing.T) {
	p, err := graph.Parse(bucketed)
	if err != nil {
		t.Fatal(err)
	}
	m, err := compile(NewDefined(), p, backend.CompileOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range m.plan.Steps {
		s := &m.plan.Steps[i]
		switch {
		case s.Payload.begin != nil:
			got = append(got, "begin")
		case s.Payload.wait != nil:
			got = append(got, "wait")
		case s.Instr != nil:
			got = append(got, s.Instr.Op.String())
		}
	}
	if want := []string{"matmul", "begin", "matmul", "begin", "wait", "sub", "wait", "sub"}; !slices.Equal(got, want) {
		t.Errorf("the steps are %v, want %v\n%v", got, want, m.plan)
	}
}

// slow is a Communicator whose collectives end when they are awaited, and copy then.
type slow struct {
	t       *testing.T
	fail    error
	pending int
	alone   int // runs beside which nothing is computed
}

func (c *slow) Agree(context.Context, []collective.Use) error { return nil }

func (c *slow) Fail(error) {}

func (c *slow) Report() ([]report.Collective, report.Agreements) { return nil, report.Agreements{} }

func (c *slow) Observe(func(collective.Event)) {}

func (c *slow) Start(u *collective.Use, out, in []byte) collective.Request {
	c.pending++
	return &slowRequest{c, out, in, slices.Clone(in)}
}

func (c *slow) Run(ctx context.Context, u *collective.Use, out, in []byte) error {
	c.alone++
	return c.Start(u, out, in).Wait(ctx)
}

type slowRequest struct {
	c            *slow
	out, in, was []byte
}

func (r *slowRequest) Wait(context.Context) error {
	r.c.pending--
	if !slices.Equal(r.in, r.was) {
		r.c.t.Error("the operand was overwritten before the collective was awaited")
	}
	copy(r.out, r.in)
	return r.c.fail
}

// TestCollectivesKeepMemory runs collectives that read and write when they are awaited.
func TestCollectivesKeepMemory(t *testing.T) {
	p, err := graph.Parse(bucketed)
	if err != nil {
		t.Fatal(err)
	}
	b := New()
	for _, fail := range []error{nil, errors.New("rank 1 is gone")} {
		m, err := b.Compile(t.Context(), p, Device, backend.CompileOptions{Aliases: []backend.Alias{{Input: 0, Output: 0}, {Input: 1, Output: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		var in []backend.Buffer
		for _, q := range p.Params {
			buf, err := b.Upload(t.Context(), q.Shape, Device, make([]byte, q.Shape.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, buf)
		}
		c := &slow{t: t, fail: fail}
		outs, err := m.Run(collective.With(t.Context(), c), in, []bool{true, true})
		if !errors.Is(err, fail) || err == nil && len(outs) != 2 {
			t.Errorf("the run returned %v, %v", outs, err)
		}
		if c.pending != 0 {
			t.Errorf("%d collectives are under way after the run", c.pending)
		}
	}
}

// TestCollectivesNeedAGroup runs one where the context has no Communicator.
func TestCollectivesNeedAGroup(t *testing.T) {
	p, err := graph.Parse(`program @step {
  return all_reduce(full(size=[2], fill_value=1.0, dtype=f32), reduction="sum", group="g")
}`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New().Compile(t.Context(), p, Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(t.Context(), nil, nil); !errors.Is(err, ir.ErrArg) {
		t.Errorf("without a group: %v", err)
	}
}

// TestCollectivesAlone runs two of which the second needs the first: nothing is computed beside them, and
// no goroutine is woken for them.
func TestCollectivesAlone(t *testing.T) {
	p, err := graph.Parse(`program @step {
  %a = all_reduce(full(size=[2], fill_value=1.0, dtype=f32), reduction="sum", group="g")
  return all_reduce(%a, reduction="sum", group="g")
}`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New().Compile(t.Context(), p, Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &slow{t: t}
	if _, err := m.Run(collective.With(t.Context(), c), nil, nil); err != nil || c.alone != 2 || c.pending != 0 {
		t.Errorf("%d collectives were run alone and %d are under way, %v", c.alone, c.pending, err)
	}
}
