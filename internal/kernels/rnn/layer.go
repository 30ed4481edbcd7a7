package rnn

import (
	"math"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// Sequence is the input or output of a layer: element (time, row, feature) is
// Data[time·Time + row·Batch + feature].
type Sequence[T Element] struct {
	Data        []T
	Time, Batch int
}

// Call is one run of a layer over Time steps of Batch rows. X has Input
// features and Y gets the hidden states, both in the order of time also when
// Reverse has the layer run from the last time to the first. H0 and C0 are the
// states before, [Batch, Hidden] (nil for zeros; a GRU has no C0), and HN and CN
// get those after all steps, or are nil. HN may be H0, and CN be C0. Only an LSTM
// has cells.
type Call[T Element, A Float] struct {
	Weights        *Weights[A]
	Time, Batch    int
	X, Y           Sequence[T]
	H0, C0, HN, CN []T
	Reverse        bool

	Limiter *parallel.Limiter // bounds the goroutines of Run; nil stands for any
	Scratch []A               // Weights.Scratch elements for the run; nil has it keep its own
}

const (
	// rowsPerUnit is how many rows of inputs are multiplied in one unit of work.
	rowsPerUnit = 64
	// rowsAtOnce is for how many rows the products of the inputs are kept, if a
	// time has no more.
	rowsAtOnce = 512
	// parallelWork is how many multiplications are worth a goroutine.
	parallelWork = 1 << 19
)

// Run computes the layer on as many processors as its work is worth.
func (c *Call[T, A]) Run() {
	if c.Batch == 0 {
		return
	}
	l := borrow[A]()
	defer l.release()
	l.begin(c.Weights, c.Limiter, c.Time, c.Batch, c.Scratch)
	loadState(l, l.h, c.H0)
	loadState(l, l.c, c.C0)
	for i := range c.Time {
		if l.time = i % l.times; l.time == 0 {
			c.inputs(l, i, min(l.times, c.Time-i))
		}
		l.step()
		to := c.Y.Data[c.at(i)*c.Y.Time:]
		for row := range c.Batch {
			vec.Store(to[row*c.Y.Batch:], l.h[row*l.hidden:][:l.w.Hidden])
		}
	}
	storeState(l, c.HN, l.h)
	storeState(l, c.CN, l.c)
}

// at returns the time of the i-th step.
func (c *Call[T, A]) at(i int) int {
	if c.Reverse {
		return c.Time - 1 - i
	}
	return i
}

// inputs multiplies the inputs of n steps from the i-th on.
func (c *Call[T, A]) inputs(l *layer[A], i, n int) {
	l.rows = n * c.Batch
	for k := range n {
		from := c.X.Data[c.at(i+k)*c.X.Time:]
		for row := range c.Batch {
			vec.Load(l.xs[(k*c.Batch+row)*l.w.Input:], from[row*c.X.Batch:][:l.w.Input])
		}
	}
	l.inputs()
}

func loadState[A Float, T Element](l *layer[A], dst []A, src []T) {
	clear(dst)
	if src == nil {
		return
	}
	n := l.w.Hidden
	for row := range l.batch {
		vec.Load(dst[row*l.hidden:], src[row*n:][:n])
	}
}

func storeState[A Float, T Element](l *layer[A], dst []T, src []A) {
	if dst == nil {
		return
	}
	n := l.w.Hidden
	for row := range l.batch {
		vec.Store(dst[row*n:], src[row*l.hidden:][:n])
	}
}

// layer is a run in progress and its scratch memory.
type layer[A Float] struct {
	w       *Weights[A]
	limiter *parallel.Limiter
	batch   int // rows of a step
	times   int // steps whose inputs are multiplied at once
	rows    int // rows of those at hand
	hidden  int // hidden units in whole blocks
	row     int // slots of these
	time    int // of the step among those at hand
	own     []A // scratch memory of runs that are given none
	xs      []A // the inputs of the steps at hand
	sums    []A // what they contribute: for each row, for each block its slots
	gates   []A // the same of one step, with the state's part
	h, c    []A // the state of each row
	// The bodies of parallel loops, made once.
	inputBody, stateBody func(lo, hi int)
}

// product is the operands of a tile, kept off the stack because assembly gets
// their address.
type product[A Float] struct {
	args    tile.Args[A]
	segment int // the only segment of every tile begins at 0
}

var (
	layers32, layers64     sync.Pool
	products32, products64 sync.Pool
)

func borrow[A Float]() *layer[A] {
	if l, ok := pool[A](&layers32, &layers64).Get().(*layer[A]); ok {
		return l
	}
	l := new(layer[A])
	l.inputBody, l.stateBody = l.input, l.state
	return l
}

func (l *layer[A]) release() {
	l.w, l.limiter, l.xs, l.sums, l.gates, l.h, l.c = nil, nil, nil, nil, nil, nil, nil
	pool[A](&layers32, &layers64).Put(l)
}

func pool[A Float](p32, p64 *sync.Pool) *sync.Pool {
	if unsafe.Sizeof(*new(A)) == 4 {
		return p32
	}
	return p64
}

func start[A Float](s []A) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func ceil(n, d int) int { return (n + d - 1) / d }

// times returns for how many steps the inputs are multiplied at once.
func times(time, batch int) int { return max(1, min(time, rowsAtOnce/max(batch, 1))) }

// Scratch returns the number of elements of the memory that a run takes.
func (w *Weights[A]) Scratch(time, batch int) int {
	rows := times(time, batch) * batch
	return rows*w.Input + rows*w.row() + batch*w.row() + 2*batch*w.blocks*w.units()
}

func (l *layer[A]) begin(w *Weights[A], limiter *parallel.Limiter, time, batch int, mem []A) {
	l.w, l.limiter, l.batch, l.times = w, limiter, batch, times(time, batch)
	l.hidden, l.row = w.blocks*w.units(), w.row()
	if mem == nil {
		if n := w.Scratch(time, batch); cap(l.own) < n {
			l.own = make([]A, n)
		}
		mem = l.own[:cap(l.own)]
	}
	take := func(n int) []A {
		part := mem[:n:n]
		mem = mem[n:]
		return part
	}
	rows := l.times * batch
	l.xs, l.sums, l.gates = take(rows*w.Input), take(rows*l.row), take(batch*l.row)
	l.h, l.c = take(batch*l.hidden), take(batch*l.hidden)
}

// inputs multiplies the inputs at hand.
func (l *layer[A]) inputs() {
	work := rowsPerUnit * l.w.set.Width * 2 * max(l.w.Input, 1)
	l.limiter.For(ceil(l.rows, rowsPerUnit)*l.w.blocks, 1+parallelWork/work, l.inputBody)
}

// input computes units lo..hi-1: each a block of hidden units of some rows.
func (l *layer[A]) input(lo, hi int) {
	for u := lo; u < hi; u++ {
		block, from := u%l.w.blocks, u/l.w.blocks*rowsPerUnit
		n := min(rowsPerUnit, l.rows-from)
		bias := l.w.bias[block*2*l.w.set.Width:]
		l.multiply(l.xs[from*l.w.Input:], l.w.Input, l.w.Input, l.w.input, block, n, bias, 0, l.sums[from*l.row:])
	}
}

// step advances the state by one time.
func (l *layer[A]) step() {
	work := l.batch * l.w.set.Width * 2 * max(l.w.Hidden, 1)
	l.limiter.For(l.w.blocks, 1+parallelWork/work, l.stateBody)
	units := l.w.units()
	for row := range l.batch {
		gates, h := l.gates[row*l.row:][:l.row], l.h[row*l.hidden:][:l.hidden]
		switch l.w.Mode {
		case LSTM:
			vec.LSTM(gates, h, l.c[row*l.hidden:][:l.hidden], units)
		case GRU:
			vec.GRU(gates, h, units)
		case Tanh:
			copy(h, gates)
			vec.Apply(vec.Activation{Kind: vec.Tanh}, h)
		case ReLU:
			copy(h, gates)
			vec.Apply(vec.Activation{Kind: vec.ReLU}, h)
		}
	}
}

// state adds what the state contributes to blocks lo..hi-1 of this time.
func (l *layer[A]) state(lo, hi int) {
	for block := lo; block < hi; block++ {
		sums := l.sums[l.time*l.batch*l.row+block*2*l.w.set.Width:]
		l.multiply(l.h, l.hidden, l.w.Hidden, l.w.state, block, l.batch, sums, l.row, l.gates)
	}
}

// multiply adds n rows of x, each stride long, times a block of weights of the
// given depth to rows of init, and stores them in the block's columns of dst.
func (l *layer[A]) multiply(x []A, stride, depth int, weights []A, block, n int, init []A, initStride int, dst []A) {
	p, ok := pool[A](&products32, &products64).Get().(*product[A])
	if !ok {
		p = new(product[A])
	}
	set, size := l.w.set, int(unsafe.Sizeof(*new(A)))
	a := &p.args
	a.Segs, a.NSegs, a.Run = unsafe.Pointer(&p.segment), 1, depth
	a.Add, a.AddStep = tile.Zeros, 0
	a.Lo, a.Hi = A(math.Inf(-1)), A(math.Inf(1))
	a.XStep, a.KStep, a.WStep = stride*size, size, set.Width*size
	a.InitStep, a.CStep = initStride*size, l.row*size
	a.W = unsafe.Add(start(weights), block*2*set.Width*depth*size)
	a.W2 = unsafe.Add(a.W, set.Width*depth*size)
	tiles := ceil(n, set.Rows(tile.Two))
	for t, at := 0, 0; t < tiles; t++ {
		end := (t + 1) * n / tiles
		a.X = unsafe.Add(start(x), at*a.XStep)
		a.Init = unsafe.Add(start(init), at*a.InitStep)
		a.C = unsafe.Add(start(dst), at*a.CStep+block*2*set.Width*size)
		set.Run(a, end-at, tile.Two)
		at = end
	}
	p.args = tile.Args[A]{}
	pool[A](&products32, &products64).Put(p)
}
