//go:build linux && cgo

package host

import (
	"strings"
	"testing"
)

// byRecipe is the function of a recipe, computed on the CPU; nil for an op without
// one. What the recipe leaves to the host is the host's.
func byRecipe(name string) opFunc {
	plain := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "cpu_"), "cuda_"), "aten_")
	for _, op := range opsOf("aoti_torch_cuda_" + plain) {
		fn := recipes[op]
		if fn == nil {
			continue
		}
		return func(c call) error {
			v, err := c.values()
			if err != nil {
				return err
			}
			r, err := fn(v)
			if err != nil {
				return err
			}
			outs, err := r.onHost()
			if err != nil {
				return err
			}
			if first := c.handles(0); len(first) == 1 && writesFirst("aoti_torch_"+plain) {
				err = copyTensor(first[0], outs[0])
				_ = discard(outs)
				return err
			}
			return c.deliverAll(r, outs)
		}
	}
	return nil
}

// What devices compute by Programs is what PyTorch's own functions give.
func TestRecipeGoldens(t *testing.T) {
	checkGoldens(t, "testdata/goldens.json", byRecipe)
}
