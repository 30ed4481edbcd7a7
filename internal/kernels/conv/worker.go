package conv

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
)

// worker is the scratch memory of one goroutine.
type worker[A Float] struct {
	args   tile.Args[A]
	bias   []A
	region []A // the part of the image that a unit meets
	held   region
	sums   []A // positions by columns
	line   []A
}

var (
	workers32, workers64 sync.Pool
	packed32, packed64   sync.Pool
)

// pool returns one of two pools by the type computed in.
func pool[A Float](p32, p64 *sync.Pool) *sync.Pool {
	if unsafe.Sizeof(*new(A)) == 4 {
		return p32
	}
	return p64
}

// scratchWeights are filters packed for one run.
type scratchWeights[A Float] struct {
	Weights[A]
	memory []A
}

// packGrain is how many elements are worth a goroutine that packs them.
const packGrain = 1 << 16

func borrowWeights[A Float](p *Plan[A]) *scratchWeights[A] {
	w, ok := pool[A](&packed32, &packed64).Get().(*scratchWeights[A])
	if !ok {
		w = new(scratchWeights[A])
	}
	w.Weights = p.filters
	w.memory = grow(w.memory, w.Len())
	w.Use(w.memory)
	return w
}

func (w *scratchWeights[A]) release() { pool[A](&packed32, &packed64).Put(w) }

func borrow[A Float]() *worker[A] {
	if w, ok := pool[A](&workers32, &workers64).Get().(*worker[A]); ok {
		return w
	}
	return new(worker[A])
}

// release drops the worker's pointers and gives it back.
func (w *worker[A]) release() {
	w.args = tile.Args[A]{}
	w.held = region{}
	pool[A](&workers32, &workers64).Put(w)
}

// grow returns s with n elements of any values.
func grow[A Float](s []A, n int) []A {
	if cap(s) < n {
		return aligned[A](n)
	}
	return s[:n]
}
