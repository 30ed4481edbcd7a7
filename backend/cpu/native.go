package cpu

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native"
)

// nativeEngine returns the engine that compiles for the best instructions that
// this machine has, or nil if there is no compiler for it.
func nativeEngine() *engine {
	if levels := native.Available(); len(levels) > 0 {
		return engineFor(levels[0])
	}
	return nil
}

func engineFor(isa native.ISA) *engine {
	return newEngine(func(k *loop.Kernel) (executable, error) { return native.Compile(k, isa) })
}
