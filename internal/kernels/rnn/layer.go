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
	loadState(l, c.H0)
	loadCells(l, c.C0)
	y, direct := any(c.Y.Data).([]A)
	direct = direct && l.hidden == l.w.Hidden // else blocks write beyond the rows
	for i := range c.Time {
		if l.time = i % l.times; l.time == 0 {
			c.inputs(l, i, min(l.times, c.Time-i))
		}
		at := c.at(i) * c.Y.Time
		if direct {
			l.next = rows[A]{y[at:], c.Y.Batch}
		}
		l.step()
		if l.h, l.next = l.next, l.h; direct {
			continue
		}
		to := c.Y.Data[at:]
		for row := range c.Batch {
			vec.Store(to[row*c.Y.Batch:], l.h.of(row, l.w.Hidden))
		}
	}
	storeState(l, c.HN)
	storeCells(l, c.CN)
}

// at returns the time of the i-th step.
func (c *Call[T, A]) at(i int) int {
	if c.Reverse {
		return c.Time - 1 - i
	}
	return i
}

// inputs multiplies the inputs of n steps from the i-th on, where they are if their rows are equally far
// apart.
func (c *Call[T, A]) inputs(l *layer[A], i, n int) {
	l.rows = n * c.Batch
	if x, ok := any(c.X.Data).([]A); ok && !c.Reverse && c.X.Time == c.Batch*c.X.Batch {
		l.x = rows[A]{x[i*c.X.Time:], c.X.Batch}
		l.inputs()
		return
	}
	l.x = rows[A]{l.xs, l.w.Input}
	for k := range n {
		from := c.X.Data[c.at(i+k)*c.X.Time:]
		for row := range c.Batch {
			vec.Load(l.xs[(k*c.Batch+row)*l.w.Input:], from[row*c.X.Batch:][:l.w.Input])
		}
	}
	l.inputs()
}

func loadState[A Float, T Element](l *layer[A], src []T) {
	if src == nil {
		clear(l.h.data)
		return
	}
	n := l.w.Hidden
	for row := range l.batch {
		to := l.h.of(row, l.hidden)
		vec.Load(to, src[row*n:][:n])
		clear(to[n:])
	}
}

func storeState[A Float, T Element](l *layer[A], dst []T) {
	if dst == nil {
		return
	}
	n := l.w.Hidden
	for row := range l.batch {
		vec.Store(dst[row*n:], l.h.of(row, n))
	}
}

func loadCells[A Float, T Element](l *layer[A], src []T) {
	clear(l.c)
	if src == nil {
		return
	}
	for block := range l.w.blocks {
		for row := range l.batch {
			cells, at := l.cells(block, row)
			vec.Load(cells, src[at:][:len(cells)])
		}
	}
}

func storeCells[A Float, T Element](l *layer[A], dst []T) {
	if dst == nil {
		return
	}
	for block := range l.w.blocks {
		for row := range l.batch {
			cells, at := l.cells(block, row)
			vec.Store(dst[at:], cells)
		}
	}
}

// cells returns the cells of a block in a row, without what fills up the block, and where they begin in
// [Batch, Hidden].
func (l *layer[A]) cells(block, row int) (c []A, at int) {
	units := l.w.units()
	n := min(units, l.w.Hidden-block*units)
	return l.c[(block*l.batch+row)*units:][:n], row*l.w.Hidden + block*units
}

// layer is a run in progress and its scratch memory.
type layer[A Float] struct {
	w       *Weights[A]
	limiter *parallel.Limiter
	batch   int     // rows of a step
	times   int     // steps whose inputs are multiplied at once
	rows    int     // rows of those at hand
	hidden  int     // hidden units in whole blocks
	time    int     // of the step among those at hand
	own     []A     // scratch memory of runs that are given none
	xs      []A     // for the inputs of the steps at hand
	x       rows[A] // these
	sums    []A     // for each block, for each of their rows, its slots: what the input contributes, then all
	h, next rows[A] // the hidden state of each row, and that after the step
	c       []A     // the cells: for each block, for each row
	// The bodies of parallel loops, made once.
	inputBody, stateBody func(lo, hi int)
}

// rows is a matrix whose rows are stride apart.
type rows[A Float] struct {
	data   []A
	stride int
}

// of returns the first n elements of a row.
func (r *rows[A]) of(row, n int) []A { return r.data[row*r.stride:][:n] }

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
	l.w, l.limiter, l.xs, l.sums, l.c = nil, nil, nil, nil, nil
	l.x, l.h, l.next = rows[A]{}, rows[A]{}, rows[A]{}
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
	return rows*w.Input + rows*w.row() + 3*batch*w.blocks*w.units()
}

func (l *layer[A]) begin(w *Weights[A], limiter *parallel.Limiter, time, batch int, mem []A) {
	l.w, l.limiter, l.batch, l.times = w, limiter, batch, times(time, batch)
	l.hidden = w.blocks * w.units()
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
	n := l.times * batch
	l.xs, l.sums = take(n*w.Input), take(n*w.row())
	l.h, l.next = rows[A]{take(batch * l.hidden), l.hidden}, rows[A]{take(batch * l.hidden), l.hidden}
	l.c = take(batch * l.hidden)
}

// inputs multiplies the inputs at hand.
func (l *layer[A]) inputs() {
	work := rowsPerUnit * l.w.set.Width * 2 * max(l.w.Input, 1)
	l.limiter.For(ceil(l.rows, rowsPerUnit)*l.w.blocks, 1+parallelWork/work, l.inputBody)
}

// input computes units lo..hi-1: each a block of hidden units of some rows.
func (l *layer[A]) input(lo, hi int) {
	slots := 2 * l.w.set.Width
	for u := lo; u < hi; u++ {
		block, from := u%l.w.blocks, u/l.w.blocks*rowsPerUnit
		n := min(rowsPerUnit, l.rows-from)
		to := l.sums[(block*l.rows+from)*slots:]
		l.multiply(rows[A]{l.x.data[from*l.x.stride:], l.x.stride}, l.w.Input, l.w.input, block, n, l.w.bias[block*slots:], 0, to)
	}
}

// step computes the state after one time.
func (l *layer[A]) step() {
	work := l.batch * l.w.set.Width * 2 * max(l.w.Hidden, 1)
	l.limiter.For(l.w.blocks, 1+parallelWork/work, l.stateBody)
}

// state computes blocks lo..hi-1 of the state after this time.
func (l *layer[A]) state(lo, hi int) {
	units, slots := l.w.units(), 2*l.w.set.Width
	for block := lo; block < hi; block++ {
		sums := l.sums[(block*l.rows+l.time*l.batch)*slots:][:l.batch*slots]
		l.multiply(l.h, l.w.Hidden, l.w.state, block, l.batch, sums, slots, sums)
		to := l.next.data[block*units:]
		switch l.w.Mode {
		case LSTM:
			vec.LSTM(sums, to, l.c[block*l.batch*units:][:l.batch*units], units, l.next.stride)
			continue
		case GRU:
			vec.GRU(sums, l.h.data[block*units:], to, units, l.batch, l.h.stride, l.next.stride)
			continue
		case Tanh:
			vec.Apply(vec.Activation{Kind: vec.Tanh}, sums)
		case ReLU:
			vec.Apply(vec.Activation{Kind: vec.ReLU}, sums)
		}
		for row := range l.batch {
			copy(to[row*l.next.stride:][:units], sums[row*units:])
		}
	}
}

// multiply adds n rows of x times a block of weights of the given depth to rows of init, and stores them
// in dst one after the other. init may be dst.
func (l *layer[A]) multiply(x rows[A], depth int, weights []A, block, n int, init []A, initStride int, dst []A) {
	p, ok := pool[A](&products32, &products64).Get().(*product[A])
	if !ok {
		p = new(product[A])
	}
	set, size := l.w.set, int(unsafe.Sizeof(*new(A)))
	a := &p.args
	a.Segs, a.NSegs, a.Run = unsafe.Pointer(&p.segment), 1, depth
	a.Add, a.AddStep = tile.Zeros, 0
	a.Lo, a.Hi = A(math.Inf(-1)), A(math.Inf(1))
	a.XStep, a.KStep, a.WStep = x.stride*size, size, set.Width*size
	a.InitStep, a.CStep = initStride*size, 2*set.Width*size
	a.W = unsafe.Add(start(weights), block*2*set.Width*depth*size)
	a.W2 = unsafe.Add(a.W, set.Width*depth*size)
	tiles := ceil(n, set.Rows(tile.Two))
	for t, at := 0, 0; t < tiles; t++ {
		end := (t + 1) * n / tiles
		a.X = unsafe.Add(start(x.data), at*a.XStep)
		a.Init = unsafe.Add(start(init), at*a.InitStep)
		a.C = unsafe.Add(start(dst), at*a.CStep)
		set.Run(a, end-at, tile.Two)
		at = end
	}
	p.args = tile.Args[A]{}
	pool[A](&products32, &products64).Put(p)
}
