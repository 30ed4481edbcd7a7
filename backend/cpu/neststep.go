package cpu

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
)

// nestStep is a kernel that is being made a step.
type nestStep struct {
	*fuse.Kernel
	l     *lowering
	code  *kernelCode
	apart []apart
	laid  *laid
}

// laid is what is kept of a kernel for others of its Layout.
type laid struct {
	code      *kernelCode
	apart     []apart
	nest      *loop.Nest
	cost      float64
	planes    bool  // a call may have several grids
	piece     int   // what the nest was cut by
	evictions int64 // of the engine when it had the code: what it has forgotten is not held
}

// emit adds the step.
func (n *nestStep) emit() {
	l := n.l
	s := plan.KernelStep[work](l.Builder, n.Kernel)
	piece := l.tune.piece
	if len(n.apart) > 0 {
		piece = min(piece, apartPiece)
	}
	over := nest.Of(n.Kernel, piece)
	if n.Ordered {
		nest.CutColumns(over, l.limiter.Threads())
	}
	placeApart(n.apart, over)
	k := &laid{n.code, n.apart, over, nest.Cost(n.Kernel, over), n.Loop.Planes, l.tune.piece, l.engine.evictions.Load()}
	if nest.Steady(n.Kernel) {
		n.Layout.Keep(k)
	}
	n.add(s, k, *over)
}

// emitLaid is emit by what is kept.
func (n *nestStep) emitLaid() {
	s := plan.KernelStep[work](n.l.Builder, n.Kernel)
	n.add(s, n.laid, nest.Like(n.laid.nest, n.Kernel))
}

// add adds the step of a kernel that is as k over a grid.
func (n *nestStep) add(s step, k *laid, over loop.Nest) {
	l := n.l
	r := &nestRun{Nest: over, mem: l.mem, code: k.code, apart: k.apart, flush: l.flush}
	if k.planes {
		r.planes = max(1, k.piece/max(1, over.Rows*over.Cols))
	}
	s.Payload = work{n: r.Count(), run: r.run}
	if list := choosers(n.Kernel); len(n.Divisions)+len(list) > 0 {
		s.Payload.run = named(r.run, n.Divisions, list)
	}
	s.Payload.grain = l.grain(k.cost)
	if n.Ordered {
		run, rows := s.Payload.run, r.Count()/over.Units.Cols
		s.Payload.n, s.Payload.grain, s.Payload.run = over.Units.Cols, 1, func(lo, hi int) { inOrder(run, rows, over.Units.Cols, lo, hi) }
	}
	l.emit(s)
}

// inOrder runs the units of columns lo..hi-1, of each one row after the other.
func inOrder(run func(lo, hi int), rows, cols, lo, hi int) {
	if cols == 1 {
		run(0, rows)
		return
	}
	for c := lo; c < hi; c++ {
		for row := range rows {
			run(row*cols+c, row*cols+c+1)
		}
	}
}

// nestRun runs a kernel. It is shared by the workers and not changed by them.
type nestRun struct {
	loop.Nest
	mem   *memory
	code  *kernelCode // made when the compilation has ended
	apart []apart
	// planes is how many grids a call has at most, of kernels that have Planes.
	planes int
	flush  bool // subnormal numbers
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
	spill := r.code.spill()
	if size := spill + r.Scratch; size > 0 {
		f.Spill = w.mem.aligned(size)
		mem = unsafe.Add(f.Spill, spill)
	}
	r.SetStrides(f)
	for unit := lo; unit < hi; {
		r.Place(f, unit, r.mem.bufs, mem)
		if len(r.apart) > 0 {
			r.runApart(f, mem)
			unit++
			continue
		}
		planes := 1
		if r.planes > 0 {
			planes = r.Planes(f, unit, hi, r.planes)
		}
		r.code.code.Run(f)
		unit += planes
	}
	clear(f.Ptr[:len(r.Args)])
}

// chooser is what has an operand chosen by an index.
type chooser struct {
	instr *graph.Instr
	size  int
}

// choosers returns those of a kernel by operand.
func choosers(k *fuse.Kernel) (list map[int]chooser) {
	for i := range k.Args {
		if a := &k.Args[i]; a.By > 0 {
			if list == nil {
				list = map[int]chooser{}
			}
			list[i] = chooser{a.Chooser, a.Size}
		}
	}
	return list
}

// named is run with the instruction in a panic that a division by 0 or an index out of range is.
func named(run func(lo, hi int), divisions map[loop.Value]*graph.Instr, choosers map[int]chooser) func(lo, hi int) {
	return func(lo, hi int) {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case loop.ZeroDivision:
				panic(fault{divisions[loop.Value(v)], v})
			case loop.IndexFault:
				by := choosers[v.Arg]
				panic(fault{by.instr, kernels.IndexError{Index: v.Index, Size: by.size}})
			default:
				panic(v)
			}
		}()
		run(lo, hi)
	}
}

// aligned returns n bytes that begin at a cache line.
func (s *scratch) aligned(n int) unsafe.Pointer {
	b := s.bytes(n + lineBytes)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Add(p, -uintptr(p)&(lineBytes-1))
}
