package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// affine has two constants that belong together: x·w + b.
const affine = `program @affine {
  %x = parameter "x" : f32[16]
  %w = parameter "w" : f32[16]
  %b = parameter "b" : f32[16]
  %0 = mul(%x, %w)
  %1 = add(%0, %b)
  return %1
}`

// storm swaps the constants of a container, both k for the k-th version, while others run it, some
// on a version that is saved.
func (r *run) storm(ctx context.Context, rng *rand.Rand) (err error) {
	p, err := graph.Parse(affine)
	if err != nil {
		return err
	}
	zero, err := buffer(ctx, 0)
	if err != nil {
		return err
	}
	program := &container.Program{Run: p, Device: cpu.Device,
		Constants: []container.ProgramConstant{{Name: "w", Value: zero}, {Name: "b", Value: zero}}}
	c, err := container.New(ctx, program.Compile, container.Config{Instances: 3})
	zero.Release()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Save(ctx, "0", container.Active); err != nil {
		return err
	}
	group, stop := errgroup.WithContext(ctx)
	for i := range r.Goroutines {
		mine := rand.New(rand.NewPCG(r.Seed, 7<<32|uint64(i)))
		group.Go(func() error { return guard(func() error { return r.runContainer(stop, c, mine) }) })
	}
	group.Go(func() error { return guard(func() error { return r.swap(stop, c, rng) }) })
	return group.Wait()
}

// swap updates the inactive constants and swaps. Now and then it fails to, which changes nothing.
func (r *run) swap(ctx context.Context, c *container.Container, rng *rand.Rand) error {
	for k := 1; !over(ctx); k++ {
		v, err := buffer(ctx, float32(k%(1<<20)))
		if err != nil {
			return err
		}
		values := map[string]backend.Buffer{"w": v, "b": v}
		if rng.IntN(8) == 0 {
			values["none"] = v
			if err := c.Update(ctx, values, container.Inactive); err == nil {
				return errors.New("an update of a constant that is not there returned nil")
			}
			delete(values, "none")
		}
		err = c.Update(ctx, values, container.Inactive)
		if err == nil {
			err = c.Swap(ctx)
		}
		v.Release()
		if over(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("swap: %w", err)
		}
		r.c.Swaps.Add(1)
	}
	return nil
}

func (r *run) runContainer(ctx context.Context, c *container.Container, rng *rand.Rand) error {
	for !over(ctx) {
		x := float32(rng.IntN(7))
		in, err := buffer(ctx, x)
		if err != nil {
			return err
		}
		saved := rng.IntN(4) == 0
		var out []backend.Buffer
		if saved {
			out, err = c.RunVersion(ctx, "0", []backend.Buffer{in}, nil)
		} else {
			out, err = c.Run(ctx, []backend.Buffer{in}, nil)
		}
		in.Release()
		if err != nil {
			if over(ctx) {
				return nil
			}
			return fmt.Errorf("run: %w", err)
		}
		b, err := out[0].Bytes(ctx)
		if err != nil {
			return err
		}
		got := floats(b)
		for _, y := range got {
			k := y / (x + 1)
			if y != got[0] || k != float32(math.Trunc(float64(k))) || saved && y != 0 {
				return fmt.Errorf("run: x = %v gives %v, which is no version of the constants", x, got)
			}
		}
		out[0].Release()
		if saved {
			r.c.SavedRuns.Add(1)
		} else {
			r.c.Runs.Add(1)
		}
	}
	return nil
}

// buffer returns 16 elements of one number.
func buffer(ctx context.Context, x float32) (backend.Buffer, error) {
	be, err := backend.For(cpu.Device)
	if err != nil {
		return nil, err
	}
	var b []byte
	for range 16 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return be.Upload(context.WithoutCancel(ctx), ir.MakeShape(ir.F32, 16), cpu.Device, b)
}
