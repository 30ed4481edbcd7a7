// Package flat does the same thing very many times, and compares what the process holds when a part of
// it is done with what it holds at the end: objects of the heap, goroutines, bytes of tensors, open
// files and mappings.
package flat

import (
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/attack/held"
	"github.com/loris-ml/loris/internal/attack/libraries"
	"github.com/loris-ml/loris/internal/pt2"
)

// Options say how often each thing is done.
type Options struct {
	Graphs, Steps, Loads int
	// Package is the path of a file that Loads load.
	Package string
}

// Row is what the process held.
type Row struct {
	What          string
	Times         int
	Before, After held.Counts
}

// Run does all, and returns a row for each. The error is of the first of which something grew.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	for _, p := range []struct {
		what  string
		times int
		begin func(ctx context.Context, o Options) (once func(i int) error, end func() error, err error)
	}{
		{"graphs compiled in a session", o.Graphs, graphs},
		{"steps that update a variable", o.Steps, steps},
		{"models loaded and closed", o.Loads, loads},
	} {
		row := Row{What: p.what, Times: p.times}
		once, end, err := p.begin(ctx, o)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", p.what, err)
		}
		for i := range p.times {
			if i == p.times/4 { // caches are full
				row.Before = held.Least()
			}
			if err := once(i); err != nil {
				return rows, errors.Join(fmt.Errorf("%s, number %d: %w", p.what, i, err), end())
			}
		}
		row.After = held.Least()
		rows = append(rows, row)
		if err := errors.Join(end(), row.grown()); err != nil {
			return rows, fmt.Errorf("%s: %w", p.what, err)
		}
	}
	return rows, nil
}

// grown returns an error if the process holds more at the end than it may: nothing more, but for what
// the runtime and caches of other layers keep.
func (r *Row) grown() error {
	b, a := r.Before, r.After
	for _, c := range []struct {
		what                 string
		before, after, slack int64
	}{
		{"objects of the heap", b.Objects, a.Objects, b.Objects/20 + 2000},
		{"goroutines", b.Goroutines, a.Goroutines, 2},
		{"bytes of tensors", b.Tensors, a.Tensors, 0},
		{"open files", b.Files, a.Files, 0},
		{"mappings", b.Mappings, a.Mappings, 64},
	} {
		if c.after > c.before+c.slack {
			return fmt.Errorf("%s: %d after %d times, %d after %d", c.what, c.before, r.Times/4, c.after, r.Times)
		}
	}
	return nil
}

// cached is how many computations a session keeps here, and kinds at most how many it is asked for:
// each has left the cache before it comes again. What else is kept of them, such as decompositions, is
// bounded by much more.
const cached, kinds = 64, 1000

// graphs compiles a graph that is not in the cache each time, and checks its number.
func graphs(ctx context.Context, o Options) (once func(int) error, end func() error, err error) {
	s, err := loris.New(loris.WithCacheEntries(cached))
	if err != nil {
		return nil, nil, err
	}
	n := min(kinds, max(cached+1, o.Graphs/4))
	return func(i int) error {
		rows, columns := 1+i%n%50, 1+i%n/50
		got, err := loris.Read[float32](ctx, s.With().Ones(rows, columns).Mul(2).Sum())
		if want := float32(2 * rows * columns); err == nil && got[0] != want {
			err = fmt.Errorf("got %v, want %v", got, want)
		}
		return err
	}, func() error { return s.Close(ctx) }, nil
}

// steps adds 1 to a variable, and checks it now and then.
func steps(ctx context.Context, _ Options) (once func(int) error, end func() error, err error) {
	s, err := loris.New()
	if err != nil {
		return nil, nil, err
	}
	v := loris.NewVariable(s.With().Full(0.0, 8))
	return func(i int) error {
		err := s.Step(ctx, func() error {
			v.Assign(v.Value().Add(1))
			return nil
		})
		if err != nil || i%1000 != 0 {
			return err
		}
		got, err := loris.Read[float32](ctx, v.Value())
		if err == nil && got[0] != float32(i+1) {
			err = fmt.Errorf("the variable is %v", got)
		}
		return err
	}, func() error { return s.Close(ctx) }, nil
}

// loads opens a compiled package and closes it, which unloads its library.
func loads(ctx context.Context, o Options) (once func(int) error, end func() error, err error) {
	return func(int) error {
		if !libraries.Supported {
			p, err := pt2.Open(o.Package)
			if err != nil {
				return err
			}
			return p.Close()
		}
		r, err := aoti.Load(ctx, o.Package)
		if err != nil {
			return err
		}
		return r.Close()
	}, func() error { return nil }, nil
}
