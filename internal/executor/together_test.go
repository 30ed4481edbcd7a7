package executor_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
)

// Steps of forks change variables of several sessions beside each other. Whoever looks sees each step
// whole, and none whose steps before he does not see.
func TestStepsBesideEachOtherAreSeenWhole(t *testing.T) {
	const trainers, steps = 3, 60
	s := newSession(t, executor.Config{})
	type group struct {
		f *executor.Session
		// pair is changed in one step, and always equal. after is changed in the next one, so it is
		// never ahead of the pair.
		pair  [2]*executor.Variable
		after *executor.Variable
	}
	groups := make([]group, trainers)
	for i := range groups {
		f := s.Fork()
		groups[i] = group{f, [2]*executor.Variable{s.NewVariable(floats(t, s, []float32{0}, 1)), f.NewVariable(floats(t, f, []float32{0}, 1))},
			f.NewVariable(floats(t, f, []float32{0}, 1))}
	}
	check := func(i int, a, b, after float32) error {
		if a != b || after > a {
			return fmt.Errorf("group %d: the pair is %v and %v, what follows it %v", i, a, b, after)
		}
		return nil
	}
	var training, looking sync.WaitGroup
	errs := make([]error, trainers+2)
	done := make(chan struct{})
	for i, g := range groups {
		training.Go(func() {
			for range steps {
				add := func(vs ...*executor.Variable) error {
					return g.f.Step(ctx, func() error {
						for _, v := range vs {
							y := newTensor()
							g.f.BinaryNumber(aten.Add, y, value(g.f, v), 1.0, false)
							v.Assign(y)
						}
						return nil
					})
				}
				if errs[i] = errors.Join(add(g.pair[:]...), add(g.after)); errs[i] != nil {
					return
				}
			}
		})
	}
	look := func(err *error, values func() ([3]float32, int, error)) {
		looking.Go(func() {
			for {
				x, i, e := values()
				if *err = errors.Join(e, check(i, x[0], x[1], x[2])); *err != nil {
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	reader, turn := s.Fork(), 0
	look(&errs[trainers], func() (x [3]float32, i int, err error) {
		i = turn % trainers
		turn++
		g := groups[i]
		var vs [3]*executor.Variable // in the order that would show a mix
		vs[0], vs[1], vs[2] = g.pair[turn&1], g.pair[1-turn&1], g.after
		return numbers(reader, vs, func(v *executor.Variable) *executor.Tensor { return value(reader, v) }, i)
	})
	other := s.Fork()
	look(&errs[trainers+1], func() ([3]float32, int, error) {
		var all []*executor.Variable
		for _, g := range groups {
			all = append(all, g.pair[0], g.pair[1], g.after)
		}
		sn := other.Snapshot(all...)
		defer sn.Release()
		for i, g := range groups {
			x, _, err := numbers(other, [3]*executor.Variable{g.pair[0], g.pair[1], g.after}, func(v *executor.Variable) *executor.Tensor {
				y := newTensor()
				sn.Value(other, v, y)
				return y
			}, i)
			if err = errors.Join(err, check(i, x[0], x[1], x[2])); err != nil || i == len(groups)-1 {
				return x, i, err
			}
		}
		panic("there are groups")
	})
	training.Wait()
	close(done)
	looking.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		want(t, value(s, g.pair[0]), steps)
		want(t, value(s, g.pair[1]), steps)
		want(t, value(s, g.after), steps)
	}
}

// numbers records with the values of three variables and reads them.
func numbers(s *executor.Session, vs [3]*executor.Variable, value func(*executor.Variable) *executor.Tensor, i int) (x [3]float32, _ int, _ error) {
	var ts [3]*executor.Tensor
	for k, v := range vs {
		ts[k] = newTensor()
		s.BinaryNumber(aten.Mul, ts[k], value(v), 1.0, false)
	}
	bufs, err := s.FetchTensors(ctx, ts[:]...)
	if err != nil {
		return x, i, err
	}
	for k, b := range bufs {
		bytes, err := b.Bytes(ctx)
		if err != nil {
			return x, i, err
		}
		x[k] = math.Float32frombits(binary.LittleEndian.Uint32(bytes))
	}
	return x, i, nil
}
