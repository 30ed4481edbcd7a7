package cpu

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native"
)

// engineFor returns the engine that compiles for a level of instructions.
func engineFor(isa native.ISA) *engine {
	e := newEngine(
		func(k *loop.Kernel) (executable, error) { return native.Compile(k, isa) },
		func(k *loop.Kernel) error { return native.Check(k, isa) },
	)
	e.name = isa.String()
	e.byLanes = isa == native.AVX2
	e.together = func(k *loop.Kernel) bool { return native.Short(k, isa) }
	e.tall = func(k *loop.Kernel) bool { return native.Tall(k, isa) }
	e.grouped = func(k *loop.Kernel) bool { return native.Grouped(k, isa) }
	e.whole = func(k *loop.Kernel) bool { return native.Whole(k, isa) }
	e.load = func(data []byte) (executable, error) { return native.Load(data) }
	return e
}
