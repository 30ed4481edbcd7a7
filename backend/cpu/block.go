package cpu

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// blockFunc computes one op on a block: dst and its operands as bytes. Operands
// that the op does not have are nil.
type blockFunc func(dst, a, b, c []byte)

// slot is an operand of block ops: a register in the scratch memory of the
// worker, or a dense run of elements in a buffer, of which a block is the part
// with the same numbers.
type slot struct {
	dtype ir.DType
	reg   bool
	// scalar marks a register that is the same for all blocks, early one that is
	// filled before the ops.
	scalar bool
	early  bool
	at     operand // not reg
	off    int     // reg: byte offset in the scratch memory
	first  int     // reg: the first and
	last   int     // the last op that uses it
}

// blockLoad fills a register from a strided view, before the ops.
type blockLoad struct {
	slot int
	buf  int
	view strided.View
	read readFunc
}

// blockOp is one op on slots; -1 is none.
type blockOp struct {
	fn         blockFunc
	d, a, b, c int
	cost       float64 // nanoseconds for an element
	instr      *graph.Instr
}

// blockBuilder collects pointwise ops over the same output dimensions into one
// step. The step applies all ops to one block of elements before the next block,
// so that the result of an op is in the first-level cache for the next op.
type blockBuilder struct {
	l       *lowering
	shape   ir.Shape // the output dimensions
	n       int
	slots   []slot
	once    []blockLoad // scalars: done once by each worker
	onceOps []blockOp   // their conversions
	loads   []blockLoad
	ops     []blockOp
	reads   []int
	writes  []int
	writeOp []int // by position in writes: the op that writes
	strided map[int]bool
	cur     *graph.Instr
}

func newBlockBuilder(l *lowering, s ir.Shape) *blockBuilder {
	return &blockBuilder{l: l, shape: s, n: s.Numel(), strided: map[int]bool{}}
}

func (b *blockBuilder) addSlot(s slot) int {
	s.first, s.last = len(b.ops), len(b.ops)
	b.slots = append(b.slots, s)
	return len(b.slots) - 1
}

func (b *blockBuilder) register(d ir.DType) int { return b.addSlot(slot{dtype: d, reg: true}) }

// load returns a slot with the elements of v, broadcast to the output
// dimensions, in their compute dtype.
func (b *blockBuilder) load(v plan.Value) int {
	b.reads = append(b.reads, v.Buf)
	e := v.Expand(b.shape.Dims())
	if o, ok := contiguous(e); ok && o.n > 1 || ok && b.n == 1 {
		return b.widen(b.addSlot(slot{dtype: v.DType(), at: o}))
	}
	b.strided[v.Buf] = true
	view := e.View.Merge()
	s := b.register(v.DType())
	load := blockLoad{s, v.Buf, view, readers.of(v.DType())}
	if allZero(&view) {
		b.slots[s].scalar, b.slots[s].early = true, true
		b.once = append(b.once, load)
		return b.widen(s)
	}
	b.loads = append(b.loads, load)
	b.slots[s].early = true
	return b.widen(s)
}

func allZero(v *strided.View) bool {
	for _, s := range v.Strides[:v.Rank] {
		if s != 0 {
			return false
		}
	}
	return true
}

// widen converts a slot to its compute dtype.
func (b *blockBuilder) widen(s int) int {
	d := b.slots[s].dtype
	f, ok := wideners[d]
	if !ok {
		return s
	}
	w := b.register(ir.F32)
	op := blockOp{fn: f, d: w, a: s, b: -1, c: -1, cost: 1.5, instr: b.cur}
	if b.slots[s].scalar {
		b.slots[w].scalar, b.slots[w].early = true, true
		b.onceOps = append(b.onceOps, op)
		return w
	}
	b.add(op)
	return w
}

// add appends an op and notes which slots it uses.
func (b *blockBuilder) add(op blockOp) {
	at := len(b.ops)
	for _, s := range [...]int{op.d, op.a, op.b, op.c} {
		if s >= 0 {
			b.slots[s].last = at
		}
	}
	b.ops = append(b.ops, op)
}

// apply adds an op whose result has dtype d, and rounds it to a narrow float
// unless exact. out is where the result is stored, if it leaves the step.
func (b *blockBuilder) apply(fn blockFunc, cost float64, d ir.DType, exact bool, src []int, out *plan.Value) int {
	op := blockOp{fn: fn, a: -1, b: -1, c: -1, cost: cost, instr: b.cur}
	for i, p := range [...]*int{&op.a, &op.b, &op.c} {
		if i < len(src) {
			*p = src[i]
		}
	}
	wide := loop.ComputeDType(d)
	if out != nil && wide == d {
		op.d = b.addSlot(slot{dtype: d, at: operand{out.Buf, 0, b.n}})
		b.write(out.Buf)
		b.add(op)
		return op.d
	}
	op.d = b.register(wide)
	b.add(op)
	if wide == d {
		return op.d
	}
	if !exact {
		b.add(blockOp{fn: rounders[d], d: op.d, a: op.d, b: -1, c: -1, cost: 3, instr: b.cur})
	}
	if out != nil {
		s := b.addSlot(slot{dtype: d, at: operand{out.Buf, 0, b.n}})
		b.write(out.Buf)
		b.add(blockOp{fn: narrowers[d], d: s, a: op.d, b: -1, c: -1, cost: 2, instr: b.cur})
	}
	return op.d
}

// write notes that the next op writes a buffer.
func (b *blockBuilder) write(buf int) {
	b.writes = append(b.writes, buf)
	b.writeOp = append(b.writeOp, len(b.ops))
}

const (
	minBlock = 128
	// blockBytes is what the registers of a step may take: a part of the
	// second-level cache.
	blockBytes = 96 << 10
)

// finish emits the step.
func (b *blockBuilder) finish(instr *graph.Instr) {
	r := &blockRun{mem: b.l.mem, slots: b.slots, once: b.once, onceOps: b.onceOps, loads: b.loads, ops: b.ops, n: b.n}
	block := b.l.tune.block
	for block > minBlock && b.allocate(block) > blockBytes {
		block /= 2
	}
	block = min(block, max(b.n, 1))
	r.block, r.scratch = block, b.allocate(block)
	cost := 0.0
	for _, op := range b.ops {
		cost += op.cost
	}
	cost += float64(len(b.loads)) * copyCost
	b.l.emit(step{
		Instr: instr, Reads: b.reads, Writes: b.writes, InPlace: b.pairs(),
		Payload: work{n: (b.n + block - 1) / block, grain: b.l.grain(cost * float64(block)), run: r.run},
	})
}

// allocate lays the registers out in the scratch memory for blocks of the given
// length and returns its size. Registers whose lives do not meet share a place;
// an op may write over an operand of the same element size.
func (b *blockBuilder) allocate(block int) int {
	type place struct{ off, bytes, size, until int }
	var places []place
	total := 0
	for i := range b.slots {
		s := &b.slots[i]
		if !s.reg {
			continue
		}
		size, until := s.dtype.Size(), s.last
		if s.scalar {
			until = len(b.ops)
		}
		bytes := (size*block + lineBytes - 1) &^ (lineBytes - 1)
		found := -1
		for k, p := range places {
			// What is loaded or computed once is there before all ops.
			if !s.early && p.bytes == bytes && (p.until < s.first || (p.until == s.first && p.size == size)) {
				found = k
				break
			}
		}
		if found < 0 {
			found = len(places)
			places = append(places, place{off: total, bytes: bytes})
			total += bytes
		}
		places[found].size, places[found].until = size, until
		s.off = places[found].off
	}
	return total
}

// pairs returns which results may be written over which operands: those read
// element by element in the same place, and for the last time before or by the
// op that writes.
func (b *blockBuilder) pairs() []plan.Pair {
	lastRead := map[int]int{}
	direct := map[int]bool{}
	for i := range b.slots {
		s := &b.slots[i]
		if s.reg {
			continue
		}
		if _, seen := direct[s.at.buf]; !seen {
			direct[s.at.buf] = true
		}
		if s.at.off != 0 || s.at.n*s.dtype.Size() != b.l.Buffers[s.at.buf].Bytes {
			direct[s.at.buf] = false
		}
		lastRead[s.at.buf] = max(lastRead[s.at.buf], s.last)
	}
	var out []plan.Pair
	for i, w := range b.writes {
		for _, r := range b.reads {
			if direct[r] && !b.strided[r] && lastRead[r] <= b.writeOp[i] && b.l.Buffers[r].Bytes == b.l.Buffers[w].Bytes {
				out = append(out, plan.Pair{Write: w, Read: r})
			}
		}
	}
	return out
}

// blockRun runs the ops of a step. It is shared by the workers and not changed
// by them.
type blockRun struct {
	mem     *memory
	slots   []slot
	once    []blockLoad
	onceOps []blockOp
	loads   []blockLoad
	ops     []blockOp
	n       int
	block   int
	scratch int
}

// worker is the state of one goroutine in a blockRun.
type worker struct {
	ptrs    [][]byte
	scratch scratch
}

var workers = sync.Pool{New: func() any { return new(worker) }}

// scratchOf returns n elements of a worker's scratch memory, with any contents.
func scratchOf[T any](w *worker, n int) []T { return as[T](w.scratch.bytes(n * sizeOf[T]())) }

// run computes blocks lo..hi-1. A panic of an op is passed on with the op.
func (r *blockRun) run(lo, hi int) {
	w := workers.Get().(*worker)
	if cap(w.ptrs) < len(r.slots) {
		w.ptrs = make([][]byte, len(r.slots))
	}
	ptrs := w.ptrs[:len(r.slots)]
	mem := w.scratch.bytes(r.scratch)
	var cur *graph.Instr
	defer func() {
		if v := recover(); v != nil {
			panic(fault{cur, v})
		}
		clear(ptrs)
		workers.Put(w)
	}()
	r.bind(ptrs, mem, 0, min(r.block, r.n))
	for i := range r.once {
		r.load(&r.once[i], ptrs, 0)
	}
	for i := range r.onceOps {
		op := &r.onceOps[i]
		op.fn(ptrs[op.d], ptrs[op.a], nil, nil)
	}
	for blk := lo; blk < hi; blk++ {
		start := blk * r.block
		r.bind(ptrs, mem, start, min(r.block, r.n-start))
		for i := range r.loads {
			r.load(&r.loads[i], ptrs, start)
		}
		for i := range r.ops {
			op := &r.ops[i]
			cur = op.instr
			var b, c []byte
			if op.b >= 0 {
				b = ptrs[op.b]
				if op.c >= 0 {
					c = ptrs[op.c]
				}
			}
			op.fn(ptrs[op.d], ptrs[op.a], b, c)
		}
	}
}

// bind points the slots at elements start..start+n-1.
func (r *blockRun) bind(ptrs [][]byte, mem []byte, start, n int) {
	for i := range r.slots {
		s := &r.slots[i]
		size := s.dtype.Size()
		if s.reg {
			ptrs[i] = mem[s.off : s.off+n*size]
			continue
		}
		from := (s.at.off + start) * size
		ptrs[i] = r.mem.bufs[s.at.buf][from : from+n*size]
	}
}

func (r *blockRun) load(l *blockLoad, ptrs [][]byte, start int) {
	l.read(ptrs[l.slot], r.mem.bufs[l.buf], &l.view, start)
}

// fault is a panic of an op among several in one step.
type fault struct {
	instr *graph.Instr
	value any
}

// scratch is memory that a goroutine keeps from one step to the next.
type scratch struct{ mem []uint64 }

func (s *scratch) bytes(n int) []byte {
	if words := (n + 7) / 8; len(s.mem) < words {
		s.mem = make([]uint64, words)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.mem))), 8*len(s.mem))[:n]
}
