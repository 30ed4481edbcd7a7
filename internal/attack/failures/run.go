package failures

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/attack/held"
)

// Row is what became of one program with failures of one kind.
type Row struct {
	Program string
	Kind    Kind
	// Failures is how many calls there were to fail, Kept how many of the steps that failed left all
	// variables as they were, and Lost how many said that a value was overwritten, as a Step may.
	Failures, Kept, Lost int
}

// Run has every call of every kind fail in every program, and returns a row for each. The error is
// of the first failure that was not handled as it is promised.
func Run(ctx context.Context, in *Injector) (rows []Row, err error) {
	for _, p := range programs {
		values, err := undisturbed(ctx, p)
		if err != nil {
			return rows, fmt.Errorf("%s, undisturbed: %w", p.name, err)
		}
		for k := range kinds {
			row := Row{Program: p.name, Kind: k}
			for n := 0; ; n++ {
				fired, err := disturbed(ctx, in, p, values, k, n, &row)
				if err != nil {
					return rows, fmt.Errorf("%s, %v, call %d: %w", p.name, k, n, err)
				}
				if !fired {
					break
				}
				row.Failures++
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// undisturbed returns the values of the variables before the first step and after each.
func undisturbed(ctx context.Context, p program) (values [][][]byte, err error) {
	s, err := loris.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	vars, steps := p.make(s)
	for i := 0; ; i++ {
		now, errs := read(ctx, s, vars)
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		values = append(values, now)
		if i == len(steps) {
			return values, nil
		}
		if open, err := attempt(ctx, s, steps[i]); open || err != nil {
			return nil, err
		}
	}
}

// attempt takes a step and waits for its work. open says that the end of the step has failed, so
// that it is still open.
func attempt(ctx context.Context, s *loris.Session, st step) (open bool, err error) {
	if err := try(func() error { return st.do(ctx) }); err != nil {
		return false, errors.Join(err, s.WaitDeviceOps(ctx))
	}
	return finish(ctx, s, st)
}

func finish(ctx context.Context, s *loris.Session, st step) (open bool, err error) {
	if st.end != nil {
		if err := try(func() error { return st.end(ctx) }); err != nil {
			return true, err
		}
	}
	return false, s.WaitDeviceOps(ctx)
}

// try makes an *OpError that is a panic the error that it is.
func try(fn func() error) error {
	var err error
	if thrown := loris.Try(func() { err = fn() }); thrown != nil {
		return thrown
	}
	return err
}

// read returns the values of variables as a new fork sees them, or their errors.
func read(ctx context.Context, s *loris.Session, vars []*loris.Variable) (values [][]byte, errs []error) {
	fork := s.Fork()
	for _, v := range vars {
		var b []byte
		err := try(func() (err error) {
			b, err = v.ValueIn(fork).Bytes(ctx)
			return err
		})
		values, errs = append(values, b), append(errs, err)
	}
	return values, errs
}

// disturbed runs a program with one failure, and reports whether that call was reached.
func disturbed(ctx context.Context, in *Injector, p program, values [][][]byte, k Kind, n int, row *Row) (fired bool, err error) {
	before := held.Now()
	if fired, err = oneFailure(ctx, in, p, values, k, n, row); err != nil {
		return false, err
	}
	return fired, held.Back(before)
}

func oneFailure(ctx context.Context, in *Injector, p program, values [][][]byte, k Kind, n int, row *Row) (fired bool, err error) {
	s, err := loris.New()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	vars, steps := p.make(s)
	in.arm(k, n)
	for i, st := range steps {
		open, err := attempt(ctx, s, st)
		if err == nil {
			if err := reread(ctx, st, k); err != nil {
				return in.disarm(), fmt.Errorf("reading after step %d: %w", i, err)
			}
			continue
		}
		if fired = in.disarm(); !fired || !injected(err, k) {
			return fired, fmt.Errorf("step %d: %w", i, err)
		}
		if err := restored(ctx, s, vars, values[i], k, row); err != nil {
			return fired, fmt.Errorf("after step %d failed with %q: %w", i, err, err)
		}
		if open {
			_, err = finish(ctx, s, st)
		} else {
			_, err = attempt(ctx, s, st)
		}
		if err != nil {
			return fired, fmt.Errorf("step %d, tried again: %w", i, err)
		}
	}
	fired = in.disarm() || fired
	got, errs := read(ctx, s, vars)
	for i := range vars {
		if errs[i] != nil || !bytes.Equal(got[i], values[len(steps)][i]) {
			return fired, fmt.Errorf("variable %d ends with %x, %w, want %x", i, got[i], errs[i], values[len(steps)][i])
		}
	}
	return fired, nil
}

// reread reads what a step has made, again if the failure is that of the reading.
func reread(ctx context.Context, st step, k Kind) error {
	if st.read == nil {
		return nil
	}
	err := try(func() error { return st.read(ctx) })
	if err == nil || !injected(err, k) {
		return err
	}
	return try(func() error { return st.read(ctx) })
}

// injected reports whether an error is that of a failure of a kind.
func injected(err error, k Kind) bool {
	if k == AllocationError {
		return errors.As(err, new(*loris.OutOfMemory))
	}
	return errors.Is(err, errInjected)
}

// restored holds the variables against what they were before the step. A value that the step may
// have overwritten is its error, and is put back here.
func restored(ctx context.Context, s *loris.Session, vars []*loris.Variable, want [][]byte, k Kind, row *Row) error {
	got, errs := read(ctx, s, vars)
	var lost []*loris.Variable
	var back []*loris.Tensor
	for i, v := range vars {
		switch {
		case errs[i] == nil && bytes.Equal(got[i], want[i]):
		case errs[i] == nil:
			return fmt.Errorf("variable %d is %x, was %x", i, got[i], want[i])
		case !injected(errs[i], k):
			return fmt.Errorf("variable %d: %w", i, errs[i])
		case k < RunError:
			return fmt.Errorf("variable %d is lost though nothing ran: %w", i, errs[i])
		default:
			lost, back = append(lost, v), append(back, s.With().FromBytes(want[i], v.Shape()))
		}
	}
	if lost == nil {
		row.Kept++
		return nil
	}
	row.Lost++
	return loris.Publish(ctx, lost, back)
}
