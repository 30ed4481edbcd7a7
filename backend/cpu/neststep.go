package cpu

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// nestStep is a kernel that is being made a step.
type nestStep struct {
	l     *lowering
	instr *graph.Instr
	k     *loop.Kernel
	args  []fuse.Arg
	dims  []int
	mask  [ir.MaxRank]bool
	parts int
	lines int
	cost  float64 // nanoseconds for an element
	grid  fuse.Grid
	code  executable
	// divisions has the instructions that may divide integers by 0.
	divisions map[loop.Value]*graph.Instr
}

// compile lays the grid out and compiles; false if there is no code for it.
func (n *nestStep) compile() bool {
	if len(n.args) > loop.MaxArgs {
		return false
	}
	n.grid = fuse.Lay(n.k.Axis, n.dims, n.mask, n.args)
	for _, o := range n.grid.Outer {
		if o.Folded {
			return false // operands keep what is reduced from being one run
		}
	}
	for i, step := range n.grid.Cols.Steps {
		if bytes := step * n.args[i].DType.Size(); bytes >= loop.MaxStride || bytes <= -loop.MaxStride {
			return false
		}
	}
	n.k.Args = n.kernelArgs(&n.grid)
	var ok bool
	n.code, ok = n.l.engine.compile(n.k)
	return ok
}

// closeNest emits a group as one kernel, or as two if lines are cut into parts.
// It reports whether there is code for it; if not, nothing has changed.
func (l *lowering) closeNest(g *group) bool {
	b := newNestBuilder(l, g)
	b.build()
	first := &l.p.Instrs[g.members[0]]
	n := &nestStep{
		l: l, instr: first, k: &b.K, args: b.args, dims: g.key.shape.Dims(), mask: g.mask, parts: g.parts, lines: g.lines, cost: b.Cost,
		divisions: b.divisions,
	}
	if !n.compile() {
		return false
	}
	var last *nestStep
	if g.parts > 1 {
		if last = b.combine(); !last.compile() {
			return false
		}
	}
	n.emit()
	l.steps[len(l.steps)-1].ops = l.instrs(g)
	if last != nil {
		for id, k := range b.partOf {
			last.args[k].Buf = n.args[b.argOf[argKey{id, fuse.Part}]].Buf
		}
		last.emit()
	}
	l.views(g)
	for _, i := range g.members {
		l.pending[l.p.Instrs[i].Out] = nil
	}
	return true
}

// instrs returns the instructions of a group.
func (l *lowering) instrs(g *group) []*graph.Instr {
	ops := make([]*graph.Instr, len(g.members))
	for k, i := range g.members {
		ops[k] = &l.p.Instrs[i]
	}
	return ops
}

// allocate makes the buffers of the results.
func (n *nestStep) allocate() {
	l := n.l
	for i := range n.args {
		a := &n.args[i]
		if a.Buf >= 0 {
			continue
		}
		switch a.Role {
		case fuse.Output, fuse.Result:
			part, ok := l.places[a.ID]
			if !ok {
				part = l.newValue(l.p.Shape(a.ID))
			}
			l.vals[a.ID] = part
			a.Buf = l.vals[a.ID].buf
		case fuse.Part:
			a.Buf = l.newBuffer(workBuffer, n.parts*n.lines*a.DType.Size())
		}
	}
}

// movers stand for all dtypes of their size where elements are only moved.
var movers = map[int]ir.DType{1: ir.U8, 2: ir.I16, 4: ir.I32, 8: ir.I64}

// move emits the copy of v into the elements of a buffer that view names as one
// kernel. It reports whether there is code for it.
func (l *lowering) move(in *graph.Instr, dst int, view kernels.View, v value) bool {
	d, ok := movers[v.dtype().Size()]
	if !ok || l.engine == nil {
		return false
	}
	w := &fuse.Writer{}
	w.Begin()
	w.Store(1, w.Load(0, d))
	n := &nestStep{l: l, instr: in, k: &w.K, dims: v.shape.Dims(), cost: w.Cost, args: []fuse.Arg{
		{DType: d, Buf: v.buf, View: v.view, Role: fuse.Input, ID: -1}, {DType: d, Buf: dst, View: view, Role: fuse.Output, ID: -1},
	}}
	if !n.compile() {
		return false
	}
	n.emit()
	return true
}

// views gives the views of line values that leave a group their places.
func (l *lowering) views(g *group) {
	for _, i := range g.members {
		in := &l.p.Instrs[i]
		root, ok := g.alias[in.Out]
		if !ok || !l.leaves(in.Out, g) {
			continue
		}
		s := l.p.Shape(in.Out)
		v := l.vals[root]
		if g.spread[in.Out] {
			// Along the reduced dimensions it does not move.
			view, _ := reshapeView(v, v.shape.WithDims(g.lineDims()...))
			l.vals[in.Out] = value{s, v.buf, g.lineStrides(view)}
			continue
		}
		view, _ := reshapeView(v, s)
		l.vals[in.Out] = value{s, v.buf, view}
	}
}

// emit adds the step.
func (n *nestStep) emit() {
	l := n.l
	n.allocate()
	u := cut(&n.grid, n.k.Axis, n.parts, l.tune.piece)
	r := &nestRun{
		mem: l.mem, code: n.code, flush: l.flush, rows: n.grid.Rows.N, cols: n.grid.Cols.N, units: u, spill: (n.code.SpillBytes() + lineBytes - 1) &^ (lineBytes - 1),
	}
	r.scratch = r.spill
	s := step{instr: n.instr, run: r.run}
	if len(n.divisions) > 0 {
		s.run = named(r.run, n.divisions)
	}
	for i := range n.args {
		a := &n.args[i]
		size := a.DType.Size()
		ra := runArg{buf: a.Buf, off: a.View.Offset * size, row: n.grid.Rows.Steps[i] * size, col: n.grid.Cols.Steps[i] * size}
		switch {
		case a.Role == fuse.Scratch:
			ra.buf, ra.off, ra.col = -1, r.scratch, size
			r.scratch += (size*r.cols + lineBytes - 1) &^ (lineBytes - 1)
		case a.Role.Writes():
			s.writes = append(s.writes, a.Buf)
		default:
			s.reads = append(s.reads, a.Buf)
		}
		if n.k.Args[i].Cols == loop.Unit {
			ra.col = size
		}
		if a.Role == fuse.Part {
			ra.part = n.lines * size
		}
		for _, o := range n.grid.Outer {
			ra.outer = append(ra.outer, o.Steps[i]*size)
		}
		r.args = append(r.args, ra)
	}
	s.n = u.rows * u.cols
	for _, o := range n.grid.Outer {
		r.outer = append(r.outer, o.N)
		s.n *= o.N
	}
	elements := r.rows * r.cols / (u.rows * u.cols)
	if r.rows*r.cols == 0 || s.n == 0 {
		s.n = 0
	}
	s.inPlace = n.pairs()
	s.grain = l.grain(n.cost*float64(elements) + callCost)
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

// combine returns the kernel that makes results of what reductions found in the
// parts of lines. It also computes the ops on line values.
func (b *nestBuilder) combine() *nestStep {
	g := b.g
	c := &nestBuilder{l: b.l, g: &group{key: g.key, members: g.members, nest: &nest{}}, members: b.members, stage: b.stage, stored: b.stored,
		argOf: map[argKey]int{}, line: map[graph.ID]loop.Value{}}
	*c.g.nest = *g.nest
	c.g.parts = 0
	c.K.Axis = loop.Rows
	c.Begin()
	b.partOf = map[graph.ID]int{}
	c.cut = true
	folds := map[graph.ID]loop.Value{}
	for _, i := range g.members {
		in := &b.l.p.Instrs[i]
		if !g.line[in.Out] || !b.reduces(in) {
			continue
		}
		d := computeDType(b.dtype(in.Out))
		k := c.arg(argKey{in.Out, fuse.Input}, func() fuse.Arg {
			return fuse.Arg{DType: d, Buf: -1, View: kernels.Dense([]int{g.parts, g.lines})}
		})
		b.partOf[in.Out] = k
		v := c.Load(k, d)
		folds[in.Out] = c.Add(loop.Instr{Code: loop.Reduce, Op: in.Op, DType: d, In: [3]loop.Value{v}, N: 1})
	}
	c.Final = true
	c.finals(0, folds)
	return &nestStep{
		l: b.l, instr: &b.l.p.Instrs[g.members[0]], k: &c.K, args: c.args, dims: []int{g.parts, g.lines},
		mask: [ir.MaxRank]bool{true}, lines: g.lines, cost: c.Cost, divisions: c.divisions,
	}
}
