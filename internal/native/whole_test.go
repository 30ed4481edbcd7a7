package native

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestWholeRows runs random kernels of every width that goes without a loop over columns against Eval, of one grid
// and of several.
func TestWholeRows(t *testing.T) {
	for _, isa := range Available() {
		tried := 0
		for seed := range uint64(400) {
			k := looptest.Random(rand.New(rand.NewPCG(seed, 1)))
			k.Planes = seed%3 == 0
			for _, k.Width = range []int{17, 24, 31, 32, 33, 48, 63, 64} {
				if k.Axis == loop.None && Whole(k, isa) {
					tried++
					checkPlanes(t, k, isa, seed, 1+int(seed%4), k.Width)
				}
			}
		}
		if tried < 10 {
			t.Errorf("%v: only %d kernels take rows whole", isa, tried)
		}
	}
}
