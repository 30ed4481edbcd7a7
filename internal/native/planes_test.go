package native

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestPlanes runs random kernels and those that take rows together over several grids in one call, against
// Eval and so that nothing beyond the last grid is touched.
func TestPlanes(t *testing.T) {
	for _, isa := range Available() {
		for seed := range uint64(60) {
			k := looptest.Random(rand.New(rand.NewPCG(seed, 1)))
			k.Planes = true
			checkPlanes(t, k, isa, seed, 1+int(seed%4), 1+int(seed*7%45))
		}
		for width := 1; width <= 16; width++ {
			k := shortKernel(looptest.Stored[width%len(looptest.Stored)], width, [3][2]int{{width, 1}, {1, 0}, {width, 1}})
			k.Planes = true
			if Short(k, isa) {
				checkPlanes(t, k, isa, uint64(width), 11, width)
			}
		}
	}
}

func checkPlanes(t *testing.T, k *loop.Kernel, isa ISA, seed uint64, rows, cols int) {
	t.Helper()
	c, err := Compile(k, isa)
	if errors.Is(err, ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatalf("seed %d: %v\n%v", seed, err, k)
	}
	for _, planes := range []int{0, 1, 2, 5} {
		r := rand.New(rand.NewPCG(seed, 2))
		g := looptest.NewGrid(r, k, rows*max(planes, 1), cols, c.SpillBytes(), looptest.Elements)
		for side := range g.Frame {
			f := &g.Frame[side]
			f.Rows, f.Planes = rows, planes
			for i, a := range k.Args {
				if k.Width > 0 && Short(k, isa) {
					f.Row[i], f.Col[i] = int(a.RowStep)*a.DType.Size(), int(a.ColStep)*a.DType.Size()
				}
				f.Plane[i] = rows * f.Row[i]
				if i%3 == 2 { // from the last grid to the first
					f.Ptr[i], f.Plane[i] = unsafe.Add(f.Ptr[i], max(planes-1, 0)*f.Plane[i]), -f.Plane[i]
				}
			}
		}
		compareRun(t, k, c, g, 0)
	}
}
