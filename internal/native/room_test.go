package native

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// Compilations leave memory to those that follow, also where a kernel turns out to be unsupported. The
// code of a kernel does not depend on what was compiled before or beside it.
func TestCodeDoesNotDependOnEarlierKernels(t *testing.T) {
	fixed := looptest.New(loop.None)
	y := fixed.Op(aten.Tanh, fixed.Load(fixed.Arg(ir.F32, loop.Unit, false)))
	fixed.Store(fixed.Arg(ir.F32, loop.Fixed, true), y)
	kernels := []*loop.Kernel{addition(), workload(), unaryF32(aten.Exp), softmax(), sumOf(loop.Rows), sumOf(loop.Both), &fixed.Kernel}
	type result struct {
		text []byte
		err  error
	}
	assembled := func(k *loop.Kernel, isa ISA) result {
		text, _, err := Assemble(k, isa)
		return result{text, err}
	}
	for _, isa := range []ISA{AVX2, AVX512} {
		first := make([]result, len(kernels))
		for i, k := range kernels {
			rooms = sync.Pool{New: rooms.New} // as the first of a process
			first[i] = assembled(k, isa)
		}
		if !errors.Is(first[len(kernels)-1].err, ErrUnsupported) {
			t.Fatalf("%v: the last kernel should be unsupported: %v", isa, first[len(kernels)-1].err)
		}
		var wg sync.WaitGroup
		for from := range 4 {
			wg.Go(func() {
				for n := range 5 * len(kernels) {
					i := (from + n*(from+2)) % len(kernels)
					if got := assembled(kernels[i], isa); !bytes.Equal(got.text, first[i].text) || (got.err == nil) != (first[i].err == nil) {
						t.Errorf("%v: kernel %d has other code than alone", isa, i)
					}
				}
			})
		}
		wg.Wait()
	}
}
