package attention

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
)

// worker is the scratch memory of one goroutine.
type worker[A Float] struct {
	args    tile.Args[A]
	segment int // the only segment of every tile begins at 0

	queries []A // panels of columns: for each dimension the queries of the panel
	scores  []A // keys by columns
	sums    []A // columns by padded value dimensions
	keys    []A // wide copies of keys and values
	values  []A
	line    []A
	// For each column: greatest score, sum of exponentials, last rescaling.
	most, total, shrink []A

	// Of gradients: panels and rows of columns, gradients of scores, and sums of keys and values.
	grads, queryRows, gradRows []A
	slopes, keySums, valueSums []A
	base, mean                 []A // for each column, see vec.SoftmaxGradientColumns
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
	pool[A]().Put(w)
}

// grow returns s with n elements of any values.
func grow[A Float](s []A, n int) []A {
	if cap(s) < n {
		return make([]A, n)
	}
	return s[:n]
}

func start[A Float](s []A) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
