package cpu

import (
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native"
)

// Split makes a backend cut work into tiny pieces, so that small tensors take the
// paths of large ones: several blocks, parts and goroutines.
func Split(b *Backend) *Backend {
	b.tune = tuning{block: 5, unit: 7, piece: 7, together: 1, cut: nest.Cut{Part: 16, Tall: 100, Strip: 2}, nanos: 1}
	return b
}

// definition runs kernels by what they mean.
type definition struct{ k *loop.Kernel }

func (d definition) Run(f *loop.Frame) { loop.Eval(d.k, f) }
func (definition) SpillBytes() int     { return 0 }

// NewDefined returns a backend whose kernels run by what they mean, on any
// machine.
func NewDefined() *Backend {
	b := New()
	valid := func(k *loop.Kernel) error {
		if err := k.Validate(); err != nil {
			panic(err)
		}
		return nil
	}
	b.engine = newEngine(func(k *loop.Kernel) (executable, error) { return definition{k}, valid(k) }, valid)
	return b
}

// Levels returns a backend for each level of instructions that the machine has.
func Levels() map[string]*Backend {
	all := map[string]*Backend{}
	for _, isa := range native.Available() {
		b := New()
		b.engine = engineFor(isa)
		all[isa.String()] = b
	}
	return all
}

// Compiles returns how many kernels a backend has compiled.
func Compiles(b *Backend) int { return b.engine.compiled() }
