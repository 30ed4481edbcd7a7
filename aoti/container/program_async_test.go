package container_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

var lateType = ir.RegisterDeviceType("late")

// lateBackend is the reference backend with models that say only when they are
// waited for what went wrong: the run or the folding, by the Program's name.
type lateBackend struct {
	*ref.Backend
	fails string
}

var errLate = errors.New("a kernel failed")

func (*lateBackend) DeviceType() ir.DeviceType { return lateType }

func (b *lateBackend) Compile(ctx context.Context, p *graph.Program, _ ir.Device, o backend.CompileOptions) (backend.Model, error) {
	m, err := b.Backend.Compile(ctx, p, ref.Device, o)
	late := &lateModel{Model: m}
	if p.Name == b.fails {
		late.err = errLate
	}
	return late, err
}

func (b *lateBackend) Upload(ctx context.Context, s ir.Shape, _ ir.Device, data []byte) (backend.Buffer, error) {
	return b.Backend.Upload(ctx, s, ref.Device, data)
}

type lateModel struct {
	backend.Model
	err error
}

func (m *lateModel) Finished() (bool, error)    { return true, m.err }
func (m *lateModel) Wait(context.Context) error { return m.err }

// TestProgramAsync checks that errors of work that goes on after Run come to those
// who wait for it.
func TestProgramAsync(t *testing.T) {
	for _, fails := range []string{"", "run", "fold"} {
		b := &lateBackend{ref.New(), fails}
		backend.Register(b)
		p := affine(t, ref.Device)
		p.Device = ir.Device{Type: lateType}
		c, err := container.New(ctx, p.Compile, container.Config{Instances: 1})
		if err == nil {
			in := floats(t, ref.Device, same(10)...)
			_, err = c.Run(ctx, []backend.Buffer{in}, nil)
			in.Release()
			if closeErr := c.Close(); closeErr != nil {
				t.Error(closeErr)
			}
		}
		if (fails != "") != errors.Is(err, errLate) || fails == "" && err != nil {
			t.Errorf("%q fails: %v", fails, err)
		}
	}
}
