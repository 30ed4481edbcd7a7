//go:build cuda && linux && cgo

package cuda

import (
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// foldedModel is y = x@w·s + b of x [4,8], where w and b are constants and s folds to the sum
// of w's first column.
const foldedModel = `program @run {
	%x = parameter "x" : f32[4,8]
	%w = parameter "w" : f32[8,4]
	%b = parameter "b" : f32[4]
	%s = parameter "s" : f32[]
	return add(mul(matmul(%x, %w), %s), %b)
}`

// foldedOf is what the model returns for x of ones and constants that are all v.
func foldedOf(v float32) float32 { return 8*v*8*v + v }

// fold returns a container of the model on a device.
func fold(t *testing.T, b *Backend, d ir.Device) *container.Container {
	t.Helper()
	p := container.Program{
		Run: parse(t, foldedModel), Device: d, Folded: []string{"s"},
		Fold:      parse(t, "program @fold {\n %w = parameter \"w\" : f32[8,4]\n return sum(select(%w, dim=1, index=0))\n}"),
		Constants: []container.ProgramConstant{{Name: "w", Value: filled(t, b, d, 1, 8, 4)}, {Name: "b", Value: filled(t, b, d, 1, 4)}},
	}
	c, err := container.New(t.Context(), p.Compile, container.Config{Instances: 2})
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// TestConstants updates, folds and swaps the constants of models on two devices, from
// values on the host and on either device, while others run them: each run sees one
// complete set.
func TestConstants(t *testing.T) {
	f, b := newFake(t, 2)
	backend.Register(b)
	t.Cleanup(func() { backend.Register(New(Libraries{})) })
	cpu := ir.Device{Type: ir.RegisterDeviceType("cpu")}
	models := []*container.Container{fold(t, b, gpu(0)), fold(t, b, gpu(1))}
	legal := map[float32]bool{}
	const sets = 4
	for v := range sets {
		legal[foldedOf(float32(v+1))] = true
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range models {
		x := filled(t, b, gpu(i), 1, 4, 8)
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					out, err := c.Run(t.Context(), []backend.Buffer{x}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					v, err := same(t.Context(), out[0])
					if out[0].Release(); err != nil || !legal[v] {
						t.Errorf("on cuda:%d: got %v, %v", i, v, err)
						return
					}
				}
			})
		}
	}
	f.Set("shuffle", 3)
	for round := range 3 * sets {
		v := float32(round%sets + 1)
		from := []ir.Device{cpu, gpu(0), gpu(1)}[round%3]
		for i, c := range models {
			check(t, c.Update(t.Context(), map[string]backend.Buffer{
				"w": filled(t, b, from, v, 8, 4), "b": filled(t, b, from, v, 4),
			}, container.Inactive))
			if round%2 == 0 {
				check(t, c.Fold(t.Context(), container.Inactive))
			}
			check(t, c.Swap(t.Context()))
			out, err := c.Run(t.Context(), []backend.Buffer{filled(t, b, gpu(i), 1, 4, 8)}, nil)
			check(t, err)
			got, err := same(t.Context(), out[0])
			if out[0].Release(); err != nil || got != foldedOf(v) {
				t.Errorf("round %d, from %v on cuda:%d: got %v, %v, want %v", round, from, i, got, err, foldedOf(v))
			}
		}
	}
	close(done)
	wg.Wait()
}

// TestConstantsStayOnTheDevice checks that a value that is on a GPU comes to a model
// there, or on another, without the host.
func TestConstantsStayOnTheDevice(t *testing.T) {
	f, b := newFake(t, 2)
	backend.Register(b)
	t.Cleanup(func() { backend.Register(New(Libraries{})) })
	c := fold(t, b, gpu(0))
	for i := range 2 {
		values := map[string]backend.Buffer{"w": filled(t, b, gpu(i), 2, 8, 4), "b": filled(t, b, gpu(i), 2, 4)}
		f.Calls()
		check(t, c.Update(t.Context(), values, container.Inactive))
		for _, call := range f.Calls() {
			if strings.HasPrefix(call, "cuMemcpyDtoH") || strings.HasPrefix(call, "cuMemcpyHtoD") {
				t.Errorf("from cuda:%d: %s", i, call)
			}
		}
	}
}
