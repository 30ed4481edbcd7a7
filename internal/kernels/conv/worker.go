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

var workers32, workers64 sync.Pool

func pool[A Float]() *sync.Pool {
	if unsafe.Sizeof(*new(A)) == 4 {
		return &workers32
	}
	return &workers64
}

func borrow[A Float]() *worker[A] {
	if w, ok := pool[A]().Get().(*worker[A]); ok {
		return w
	}
	return new(worker[A])
}

// release drops the worker's pointers and gives it back.
func (w *worker[A]) release() {
	w.args = tile.Args[A]{}
	w.held = region{}
	pool[A]().Put(w)
}

// grow returns s with n elements of any values.
func grow[A Float](s []A, n int) []A {
	if cap(s) < n {
		return aligned[A](n)
	}
	return s[:n]
}
