package cpu

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
)

// nestStep is a kernel that is being made a step.
type nestStep struct {
	*fuse.Kernel
	l    *lowering
	code executable
}

// emit adds the step.
func (n *nestStep) emit() {
	l := n.l
	s := plan.KernelStep[work](l.Builder, n.Kernel)
	u := cut(&n.Grid, n.Loop.Axis, n.Parts, l.tune.piece)
	r := &nestRun{
		mem: l.mem, code: n.code, flush: l.flush, rows: n.Grid.Rows.N, cols: n.Grid.Cols.N, units: u, spill: (n.code.SpillBytes() + lineBytes - 1) &^ (lineBytes - 1),
	}
	r.scratch, r.args = r.spill, make([]runArg, 0, len(n.Args))
	s.Payload = work{n: u.rows * u.cols, run: r.run}
	if len(n.Divisions) > 0 {
		s.Payload.run = named(r.run, n.Divisions)
	}
	for i := range n.Args {
		a := &n.Args[i]
		size := a.DType.Size()
		ra := runArg{buf: a.Buf, off: a.View.Offset * size, row: n.Grid.Rows.Steps[i] * size, col: n.Grid.Cols.Steps[i] * size}
		if a.Role == fuse.Scratch {
			ra.buf, ra.off, ra.col = -1, r.scratch, size
			r.scratch += (size*r.cols + lineBytes - 1) &^ (lineBytes - 1)
		}
		if n.Loop.Args[i].Cols == loop.Unit {
			ra.col = size
		}
		if a.Role == fuse.Part {
			ra.part = n.Lines * size
		}
		for _, o := range n.Grid.Outer {
			ra.outer = append(ra.outer, o.Steps[i]*size)
		}
		r.args = append(r.args, ra)
	}
	for _, o := range n.Grid.Outer {
		r.outer = append(r.outer, o.N)
		s.Payload.n *= o.N
	}
	elements := r.rows * r.cols / (u.rows * u.cols)
	if r.rows*r.cols == 0 || s.Payload.n == 0 {
		s.Payload.n = 0
	}
	s.Payload.grain = l.grain(n.Cost*float64(elements) + callCost)
	l.emit(s)
}

// callCost is what a call of a kernel takes beside its elements, in nanoseconds.
const callCost = 60

// runArg is an operand of a running kernel; offsets and strides are in bytes.
type runArg struct {
	buf      int // -1 is the worker's memory
	off      int
	row, col int
	part     int // from one part of the results to the next
	outer    []int
}

// nestRun runs a kernel. It is shared by the workers and not changed by them.
type nestRun struct {
	mem            *memory
	code           executable
	args           []runArg
	flush          bool // subnormal numbers
	rows, cols     int
	outer          []int
	units          units
	spill, scratch int // bytes of the worker's memory: for the code, and in all
}

// nestWorker is what a goroutine needs in a nestRun.
type nestWorker struct {
	frame loop.Frame
	mem   scratch
}

var nestWorkers = sync.Pool{New: func() any { return new(nestWorker) }}

// run computes units lo..hi-1.
func (r *nestRun) run(lo, hi int) {
	w := nestWorkers.Get().(*nestWorker)
	defer nestWorkers.Put(w)
	f := &w.frame
	f.Flush = r.flush
	var mem unsafe.Pointer
	if r.scratch > 0 {
		mem = w.mem.aligned(r.scratch)
		f.Spill = mem
	}
	for i := range r.args {
		f.Row[i], f.Col[i] = r.args[i].row, r.args[i].col
	}
	for unit := lo; unit < hi; unit++ {
		r.place(f, mem, unit)
		r.code.Run(f)
	}
	clear(f.Ptr[:len(r.args)])
}

// named is run with the instruction in a panic that a division by 0 is.
func named(run func(lo, hi int), divisions map[loop.Value]*graph.Instr) func(lo, hi int) {
	return func(lo, hi int) {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case loop.ZeroDivision:
				panic(fault{divisions[loop.Value(v)], v})
			default:
				panic(v)
			}
		}()
		run(lo, hi)
	}
}

// place points a frame at a unit.
func (r *nestRun) place(f *loop.Frame, mem unsafe.Pointer, unit int) {
	u := &r.units
	c, rest := unit%u.cols, unit/u.cols
	row, at := rest%u.rows, rest/u.rows
	r0, r1 := piece(row, r.rows, u.rows, u.rowSize)
	c0, c1 := piece(c, r.cols, u.cols, u.colSize)
	part := 0
	switch {
	case u.rowParts:
		part = row
	case u.colParts:
		part = c
	}
	f.Rows, f.Cols = r1-r0, c1-c0
	for i := range r.args {
		a := &r.args[i]
		if a.buf < 0 {
			f.Ptr[i] = unsafe.Add(mem, a.off)
			continue
		}
		off := a.off + r0*a.row + c0*a.col + part*a.part
		if a.part != 0 {
			off = a.off + part*a.part
		}
		for d, rest := len(r.outer)-1, at; d >= 0; d-- {
			off += rest % r.outer[d] * a.outer[d]
			rest /= r.outer[d]
		}
		f.Ptr[i] = unsafe.Pointer(&r.mem.bufs[a.buf][off])
	}
}

// piece returns the bounds of a unit along an axis of n.
func piece(i, n, count, size int) (lo, hi int) {
	if size == 0 {
		return i * n / count, (i + 1) * n / count
	}
	return i * size, min((i+1)*size, n)
}

// aligned returns n bytes that begin at a cache line.
func (s *scratch) aligned(n int) unsafe.Pointer {
	b := s.bytes(n + lineBytes)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Add(p, -uintptr(p)&(lineBytes-1))
}
