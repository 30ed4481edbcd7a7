package conv

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
)

// worker is the scratch memory of one goroutine.
type worker[A Float] struct {
	args   tile.Args[A]
	change tile.TransformArgs[A]
	bias   []A
	region []A // the part of the image that a unit meets
	held   region
	sums   []A // positions by columns
	line   []A
	// Of Winograd's convolution: the coefficients of the unit's tiles, their products
	// with a panel of filters, a tile of outputs, and what tells that one is not finite.
	coefIn, coefOut, edge, bad []A
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

// scratchWeights are filters packed for one run, or a panel of them.
type scratchWeights[A Float] struct {
	Weights[A]
	memory []A
}

// packGrain is how many elements are worth a goroutine that packs them.
const packGrain = 1 << 16

// borrowWeights returns memory for filters of the given form.
func borrowWeights[A Float](form *Weights[A]) *scratchWeights[A] {
	w, ok := pool[A](&packed32, &packed64).Get().(*scratchWeights[A])
	if !ok {
		w = new(scratchWeights[A])
	}
	w.Weights = *form
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
	w.args, w.change = tile.Args[A]{}, tile.TransformArgs[A]{}
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
