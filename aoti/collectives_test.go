package aoti_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
	"github.com/loris-ml/loris/internal/ir"
)

// rankTest is a package on one of two ranks, with what PyTorch computes there.
type rankTest struct {
	*aoti.Runner
	g *dist.Group
	f *fixture
}

// inputs returns the rank's inputs.
func (r *rankTest) inputs(t *testing.T) []aoti.Buffer { return r.f.list(t, "in") }

// onTwoRanks runs fn on two ranks of this process with a package.
func onTwoRanks(t *testing.T, name string, fn func(ctx context.Context, r *rankTest) error) error {
	t.Helper()
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var files [2]*fixture
	var weights [2]map[string]aoti.Buffer
	for r := range files {
		files[r] = open(t, fmt.Sprintf("%s.%d", name, r))
		weights[r] = map[string]aoti.Buffer{}
		if name == "tensor_parallel" {
			w := open(t, fmt.Sprintf("%s.weights.%d", name, r))
			for _, info := range w.file.Tensors() {
				weights[r][info.Name] = w.tensor(t, info.Name)
			}
		}
	}
	return local.Run(ctx, 2, func(ctx context.Context, g *dist.Group) error {
		r, err := aoti.Load(ctx, path(name), aoti.Groups(map[string]aoti.Group{"0": g}))
		if err != nil {
			return err
		}
		if err := r.Update(ctx, weights[g.Rank()], aoti.Active); err != nil {
			return errors.Join(err, r.Close())
		}
		return errors.Join(fn(ctx, &rankTest{r, g, files[g.Rank()]}), r.Close())
	})
}

// Packages with collectives compute on two ranks what PyTorch computes with them on two processes.
func TestCollectives(t *testing.T) {
	before := host.Handles()
	for _, name := range []string{"collectives", "tensor_parallel"} {
		err := onTwoRanks(t, name, func(ctx context.Context, r *rankTest) error {
			for range 3 {
				outs, err := r.Run(ctx, r.inputs(t)...)
				if err != nil {
					return err
				}
				for i, want := range r.f.list(t, "out") {
					if o := compare(t, outs[i], want, r.f.tensor(t, fmt.Sprintf("ref%d", i))); o.problem != "" {
						t.Errorf("%s, rank %d, output %d: %s", name, r.g.Rank(), i, o.problem)
					}
					outs[i].Release()
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := host.Handles(); now != before {
		t.Errorf("%d handles are left", now-before)
	}
}

// Without groups a package with collectives is not loaded, nor with several instances or on a group of
// another name than the package has.
func TestCollectivesNeedGroups(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	ctx := context.Background()
	alone, err := dist.New(ctx, local.Engines(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[string][]aoti.Option{
		"aoti.Groups": nil,
		"instances":   {aoti.Groups(map[string]aoti.Group{"0": alone}), aoti.Instances(2)},
	} {
		r, err := aoti.Load(ctx, path("tensor_parallel"), opts...)
		if err == nil {
			r.Close()
		}
		if !errors.Is(err, ir.ErrArg) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, g := range map[string]map[string]aoti.Group{
		`the groups that were given are ["tp"]`: {"tp": alone},
		"exported for 2 ranks":                  {"0": alone},
	} {
		r, err := aoti.Load(ctx, path("collectives"), aoti.Groups(g))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Run(ctx, open(t, "collectives.0").list(t, "in")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		r.Close()
	}
}

// A rank whose inputs have another size makes the run of all ranks fail, with an error that shows what
// both were about to do.
func TestCollectivesMismatch(t *testing.T) {
	err := onTwoRanks(t, "tensor_parallel", func(ctx context.Context, r *rankTest) error {
		n := 2 + r.g.Rank()
		_, err := r.Run(ctx, aoti.FromSlice(make([]float32, n*5*32), n, 5, 32))
		var m *dist.MismatchError
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "all_reduce(f32[2,5,32], sum) (at model \"model\")") {
			t.Errorf("rank %d: %v", r.g.Rank(), err)
		}
		outs, err := r.Run(ctx, r.inputs(t)...) // the group is of use
		if err == nil {
			outs[0].Release()
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A run whose other rank does not come ends with its context, and tells that rank.
func TestCollectivesOfOneRank(t *testing.T) {
	gone := make(chan struct{})
	err := onTwoRanks(t, "tensor_parallel", func(ctx context.Context, r *rankTest) error {
		if r.g.Rank() == 0 {
			defer close(gone)
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
		} else {
			<-gone
		}
		_, err := r.Run(ctx, r.inputs(t)...)
		var e *dist.RankError
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all_reduce") {
			t.Errorf("rank %d: %v", r.g.Rank(), err)
		}
		return nil
	})
	if want := "gave up close"; err == nil || !strings.Contains(err.Error(), want) { // the group is of no more use
		t.Errorf("%v, want %q", err, want)
	}
}
