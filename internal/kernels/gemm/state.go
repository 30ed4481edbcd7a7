package gemm

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/parallel"
)

// state is one product while it is computed. It is pooled with its bodies of
// parallel loops, so that a call allocates nothing.
type state[A Float] struct {
	kernel  *kernel[A]
	m, n, k int // k counts words where the kernel is one for pairs
	deep    int // then, elements
	a, b    anyOperand
	c       anyOperand
	alpha   A
	post    epilogue[A]
	plan    plan

	aBuf, bBuf []A // packed before the product: rows plan.row0.., all columns
	// 16-bit biases and factors in the type that products are summed in.
	colBias, rowBias, rowScale []A

	limiter *parallel.Limiter

	packBody, workBody func(lo, hi int)
}

// scratch is what a goroutine needs beside: a block of packed columns, results
// on their way to a strided or 16-bit matrix, the edge of a tile, 16-bit
// elements on their way into a panel, and the columns' bias of several rows.
type scratch[A Float] struct {
	panels, block, row, edge, wide, bias []A
}

// pools are of states and scratch by type.
type pools[A Float] struct{ states, scratches sync.Pool }

var (
	pools32 = newPools[float32]()
	pools64 = newPools[float64]()
)

func newPools[A Float]() *pools[A] {
	p := &pools[A]{}
	p.states.New = func() any {
		s := &state[A]{}
		s.packBody, s.workBody = s.packUnits, s.work
		return s
	}
	p.scratches.New = func() any { return &scratch[A]{} }
	return p
}

func poolsOf[A Float]() *pools[A] {
	if p, ok := any(pools32).(*pools[A]); ok {
		return p
	}
	return any(pools64).(*pools[A])
}

// alignment of scratch memory in bytes: a cache line, and a vector register.
const alignment = 64

// grown returns n elements of aligned memory, those of buf if they suffice.
func grown[A Float](buf []A, n int) []A {
	if cap(buf) >= n {
		return buf[:n]
	}
	var zero A
	size := int(unsafe.Sizeof(zero))
	raw := make([]A, n+alignment/size)
	skip := (alignment - int(uintptr(dataOf(raw))%alignment)) % alignment / size
	return raw[skip : skip+n : skip+n]
}

// compute fills a state in and runs it.
func compute[T Element, A Float](c Matrix[T], a, b anyOperand, o *Options[T]) {
	p := poolsOf[A]()
	s := p.states.Get().(*state[A])
	s.kernel = kernelsFor[A]()[0]
	threads := set(s, c, a, b, o)
	s.inPairs()
	s.readsNarrow()
	s.run(threads)
	s.release()
	p.states.Put(s)
}

// set fills a state in and returns the bound on its goroutines.
func set[T Element, A Float](s *state[A], c Matrix[T], a, b anyOperand, o *Options[T]) (threads int) {
	s.m, s.n, s.k = c.Rows, c.Cols, a.cols
	s.a, s.b, s.c = a, b, operandOf(c)
	s.alpha, s.deep = 1, s.k
	s.post, s.limiter = epilogue[A]{}, nil
	if o == nil {
		s.orient()
		return 0
	}
	if o.Alpha != 0 || o.Scaled {
		s.alpha = A(o.Alpha)
	}
	s.post.beta, s.post.act = A(o.Beta), o.Act
	s.limiter = o.Limiter
	if o.ColBias != nil {
		s.post.colBias = s.widened(&s.colBias, s.c.format, dataOf(o.ColBias[:c.Cols]), c.Cols)
	}
	if o.RowBias != nil {
		s.post.rowBias = s.widened(&s.rowBias, s.c.format, dataOf(o.RowBias[:c.Rows]), c.Rows)
	}
	if o.RowScale != nil {
		s.post.rowScale = s.widened(&s.rowScale, s.c.format, dataOf(o.RowScale[:c.Rows]), c.Rows)
	}
	if r := &o.Residual; r.Data != nil {
		r.check("residual")
		if r.Rows != c.Rows || r.Cols != c.Cols {
			panic("gemm: a residual of another size than the result")
		}
		s.post.residual = operandOf(*r)
	}
	if o.Finish != nil {
		s.post.finish = o.Finish
	}
	s.orient()
	return o.Threads
}

// orient turns the product around if the result has adjacent rows instead of
// columns, or is one column: cᵀ = bᵀ·aᵀ.
func (s *state[A]) orient() {
	if s.c.rs != 1 || (s.c.cs == 1 && s.n != 1) || !s.b.strided() || s.post.finish != nil || s.post.rowScale != nil {
		return
	}
	s.m, s.n = s.n, s.m
	s.a, s.b = s.b.transposed(), s.a.transposed()
	s.c = s.c.transposed()
	s.post.colBias, s.post.rowBias = s.post.rowBias, s.post.colBias
	if s.post.residual.data != nil {
		s.post.residual = s.post.residual.transposed()
	}
}

// widened returns a vector in the type that products are summed in, in buf
// unless it is so already.
func (s *state[A]) widened(buf *[]A, f format, data unsafe.Pointer, n int) []A {
	if f == wide {
		return unsafe.Slice((*A)(data), n)
	}
	*buf = grown(*buf, n)
	widen(f, *buf, data, 1)
	return *buf
}

// release drops what belongs to the caller.
func (s *state[A]) release() {
	s.a, s.b, s.c, s.post, s.limiter = anyOperand{}, anyOperand{}, anyOperand{}, epilogue[A]{}, nil
}

// run computes the product by chunks of rows: what is packed before is packed,
// then the tiles of the result are shared out.
func (s *state[A]) run(threads int) {
	if threads <= 0 || threads > s.limiter.Threads() {
		threads = s.limiter.Threads()
	}
	s.makePlan(threads)
	p := &s.plan
	if p.packB {
		s.bBuf = grown(s.bBuf, roundUp(s.n, s.kernel.nr)*s.k)
	}
	for p.row0 = 0; p.row0 < s.m; p.row0 += p.chunk {
		p.rows = min(p.chunk, s.m-p.row0)
		if p.packA {
			s.aBuf = grown(s.aBuf, p.rows*s.k)
		}
		p.units = 0
		if p.packA {
			p.units = ceil(p.rows, p.mr)
		}
		if p.dot {
			s.widenShort()
		}
		n := p.units
		if p.packB && p.row0 == 0 {
			n += ceil(s.n, s.kernel.nr*panelGroup)
		}
		unit := s.k * p.mr
		if p.units == 0 {
			unit = s.k * s.kernel.nr * panelGroup
		}
		s.loop(threads, n, max(1, packGrain/(unit+1)), s.packBody)
		s.loop(p.threads, p.rowTiles*p.colTiles, 1, s.workBody)
	}
}

func (s *state[A]) loop(threads, n, grain int, body func(lo, hi int)) {
	if threads == 1 || n <= grain {
		if n > 0 {
			body(0, n)
		}
		return
	}
	s.limiter.ForThreads(threads, n, grain, body)
}

// panelGroup is how many panels of a right operand are packed at once: rows of
// it are read in longer runs.
const panelGroup = 8

// packUnits packs the left operand by panels, then the right one by groups of
// them.
func (s *state[A]) packUnits(lo, hi int) {
	pool := &poolsOf[A]().scratches
	w := pool.Get().(*scratch[A])
	p, kn := &s.plan, s.kernel
	for u := lo; u < hi; u++ {
		if u < p.units {
			r0 := p.row0 + u*p.mr
			r1 := min(r0+p.mr, p.row0+p.rows)
			s.packLeft(w, s.aBuf[(r0-p.row0)*s.k:], r0, r1, 0, s.k)
			continue
		}
		j0 := (u - p.units) * panelGroup * kn.nr
		s.packPanels(w, s.bBuf[j0*s.k:], j0, min(j0+panelGroup*kn.nr, s.n), 0, s.k)
	}
	pool.Put(w)
}

// packPanels packs columns j0..j1-1 of the right operand into panels of the
// given depth; j0 is where a panel begins.
func (s *state[A]) packPanels(w *scratch[A], dst []A, j0, j1, k0, depth int) {
	kn, b := s.kernel, &s.b
	nr := kn.nr
	if b.packed != nil {
		s.widenPanels(dst, j0, j1, k0, depth)
		return
	}
	if kn.loops != nil && b.cs == 1 {
		if depth > 0 {
			s.pairPanels(dst, j0, j1, k0, depth)
		}
		return
	}
	if b.format == wide && b.cs == 1 && kn.copyPanels != nil && depth > 0 {
		dst = dst[:roundUp(j1-j0, nr)*depth]
		var zero A
		for k := 0; k < depth; k += packDepth {
			src := (*A)(b.at(k0+k, j0, unsafe.Sizeof(zero)))
			kn.copyPanels(&dst[k*nr], depth*nr, src, b.rs, j1-j0, min(packDepth, depth-k))
		}
		return
	}
	if s.plan.wideRows > 0 {
		for k := range depth {
			row := dst[k*s.plan.wideRows:][:roundUp(j1-j0, nr)]
			widen(b.format, row[:j1-j0], b.at(k0+k, j0, 2), 1)
			clear(row[j1-j0:])
		}
		return
	}
	if b.format != wide && b.cs == 1 && kn.copyPanels != nil {
		w.wide = grown(w.wide, j1-j0)
		for k := range depth {
			widen(b.format, w.wide, b.at(k0+k, j0, 2), 1)
			kn.copyPanels(&dst[k*nr], depth*nr, &w.wide[0], 0, j1-j0, 1)
		}
		return
	}
	for j := j0; j < j1; j += nr {
		to := dst[(j-j0)*depth:][:nr*depth]
		end := min(j+nr, j1)
		if end-j < nr {
			clear(to)
		}
		s.pack(w, to, nr, b, b.cs, b.rs, j, end, k0, k0+depth)
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceil(a, b) * b }
