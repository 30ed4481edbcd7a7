// Package native turns fused loops (package loop) into machine code of this
// process, for x86-64 processors with AVX2 and FMA or with AVX-512, and for arm64 with NEON.
//
// A kernel is lowered to operations on virtual registers, region by region: the part that is
// computed once a row, copies of the body for the loop, the tail, and the end of a pass. Regions
// have no jumps, so one walk that knows all next uses allocates their registers. Between regions
// values live in homes, which are slots of the frame's spill memory or registers that are pinned
// for the length of a pass.
//
// Vectors lie along columns. Their lanes are as many as fit the widest dtype of
// the kernel; narrower values use the same lanes in shorter vectors, and integers
// narrower than 32 bits are computed in 32. Nothing outside the operands is
// touched: tails use masked accesses, or go element by element through the spill
// memory.
package native

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/code"
	"github.com/loris-ml/loris/internal/native/x64"
)

// ErrUnsupported says that there is no native code for a kernel, because of the platform, the
// processor, an op, a dtype or a stride. The caller computes it in another way.
var ErrUnsupported = errors.New("the kernel has no native code")

// ISA is a level of instructions.
type ISA uint8

// The levels.
const (
	// AVX2 is AVX2 with FMA, F16C and BMI2: x86-64-v3.
	AVX2 ISA = iota + 1
	// AVX512 adds AVX-512 F, DQ, BW and VL: x86-64-v4.
	AVX512
	// NEON is what every arm64 processor has: A64 and its vectors.
	NEON
)

// String returns the level in lower case.
func (i ISA) String() string { return [...]string{"none", "avx2", "avx512", "neon"}[i] }

// Available returns the levels that this processor and platform can run, best
// first; none where there is no native code, or where the system refuses memory
// to execute it from.
func Available() (all []ISA) {
	if code.Usable() != nil {
		return nil
	}
	if isa.AVX512() {
		all = append(all, AVX512)
	}
	if isa.AVX2() {
		all = append(all, AVX2)
	}
	if isa.NEON() {
		all = append(all, NEON)
	}
	return all
}

// Code is a compiled kernel. Its methods may be called by many goroutines at once.
type Code struct {
	spill int
	isa   ISA
	fn    *code.Func
}

// Check reports why Compile has no code for a kernel, without making any that
// could run. The error wraps what that of Compile does.
func Check(k *loop.Kernel, isa ISA) error {
	_, err := compile(k, isa, func([]byte) error { return nil })
	return err
}

// FaultOffset is where in the spill memory code notes an integer division by 0, for those that call
// it without Run: 1 more than the number of the instruction, or 0. It is for kernels without indices.
const FaultOffset = atFault

// Assemble returns the machine code of a kernel as bytes, and the spill memory that it needs, on any
// platform and for any level: for another process. It gets the address of a loop.Frame in RDI and
// keeps RSP, RBP and R14, or in X7 and keeps X18 to X30 and SP; see Run for what else holds. Errors are those of Compile.
func Assemble(k *loop.Kernel, isa ISA) (text []byte, spill int, err error) {
	spill, err = compile(k, isa, func(b []byte) error {
		text = bytes.Clone(b)
		return nil
	})
	return text, spill, err
}

// Compile returns a kernel's machine code for a level that the processor has. The
// error wraps ErrUnsupported, or loop.ErrKernel for a kernel that is malformed.
func Compile(k *loop.Kernel, isa ISA) (*Code, error) {
	c := &Code{isa: isa}
	var err error
	c.spill, err = compile(k, isa, c.install)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// install makes text what c runs. It keeps a copy.
func (c *Code) install(text []byte) (err error) {
	if c.fn, err = code.New(text); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}

// SpillBytes returns how much memory Frame.Spill must point to.
func (c *Code) SpillBytes() int { return c.spill }

// Size returns the bytes of code and constants.
func (c *Code) Size() int { return c.fn.Size() }

// ISA returns the level that the code needs.
func (c *Code) ISA() ISA { return c.isa }

// Run runs the kernel on a frame; it does nothing for one without elements. Spill
// must be 64-byte aligned memory of SpillBytes that no other call uses at the
// time and that holds no Go pointers. What the operands' pointers lead to must
// stay alive through the frame. The runtime can't stop the goroutine in
// a call: give it about a millisecond of work at most.
//
// It panics with a loop.ZeroDivision after a call that divided an integer by 0, and with a loop.IndexFault after one
// that met an index out of range.
func (c *Code) Run(f *loop.Frame) {
	if f.Rows <= 0 || f.Cols <= 0 {
		return
	}
	if f.Flush {
		c.fn.CallFlushing(unsafe.Pointer(f))
	} else {
		c.fn.Call(unsafe.Pointer(f))
	}
	fault := *(*int64)(unsafe.Add(f.Spill, atFault))
	wrong := int64(0)
	if fault < 0 {
		wrong = *(*int64)(unsafe.Add(f.Spill, atWrong))
	}
	runtime.KeepAlive(f)
	switch {
	case fault < 0:
		panic(loop.IndexFault{Arg: int(-1 - fault), Index: wrong})
	case fault > 0:
		panic(loop.ZeroDivision(fault - 1))
	}
}

// compile assembles a kernel that is well formed. use gets the code, in memory that the next
// compilation has.
func compile(k *loop.Kernel, isa ISA, use func(text []byte) error) (spill int, err error) {
	if err := k.Validate(); err != nil {
		return 0, err
	}
	return assemble(k, isa, use)
}

// assemble lowers and encodes.
func assemble(k *loop.Kernel, isa ISA, use func(text []byte) error) (spill int, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unsupported:
			err = fmt.Errorf("%w: %s", ErrUnsupported, r.why)
		default:
			panic(r)
		}
	}()
	g := newGen(k, isa)
	defer g.leave()
	passes := make([]*pass, len(k.Passes))
	for i := range k.Passes {
		passes[i] = g.split(&k.Passes[i])
		passes[i].last = i == len(k.Passes)-1
		for _, v := range passes[i].varying {
			if k.Instrs[v].Code == loop.Reduce {
				passes[i].reds = append(passes[i].reds, g.newReduction(v))
			}
		}
	}
	if k.Axis == loop.Columns && len(passes) > 1 {
		// The first pass has no time to spare: it waits for memory itself.
		for i, a := range k.Args {
			if a.Ahead && a.Cols == loop.Unit {
				passes[1].ahead = append(passes[1].ahead, i)
			}
		}
	}
	g.asm.MovLoad(spillBase, inFrame(frameSpill))
	g.asm.MovImm(x64.RAX, 0)
	g.asm.MovStore(inSpill(atFault), x64.RAX)
	if g.lines {
		g.alongTall(passes)
	} else {
		g.planeLoop(func() { g.along(passes) })
	}
	if g.fenced {
		g.asm.Sfence()
	}
	g.asm.VZeroUpper()
	g.asm.Ret()
	g.noteWrong()
	g.writePool()
	g.room.code = finish(g.asm)
	return int(g.slots), use(g.room.code)
}

// along emits one grid of a kernel.
func (g *gen) along(passes []*pass) {
	switch {
	case g.short:
		g.alongShort(passes[0])
	case g.k.Width > 0 && Whole(g.k, g.isa):
		g.alongWhole(passes[0])
	case g.k.Width > 0 && Grouped(g.k, g.isa):
		g.alongGroups(passes)
	case g.k.Axis == loop.Rows:
		g.alongRows(passes)
	case g.k.Axis == loop.Both:
		g.overAll(passes)
	default:
		g.alongColumns(passes)
	}
}

// room is memory for what a kernel is lowered to, which one compilation leaves to the next: a graph of
// a thousand ops would make a hundred megabytes of garbage otherwise.
type room struct {
	ops    []vop   // empty
	vals   []vinfo // empty
	places []place
	code   []byte
}

// rooms are what compilations have left.
var rooms = sync.Pool{New: func() any { return new(room) }}

const (
	// mostKept bounds the operations for which memory is kept.
	mostKept = 1 << 15
	// perInstr is how many operations an instruction of a kernel becomes, about, in all copies of a body.
	// What they take is allocated at once: pages that are not touched cost nothing, but each growth of
	// a slice touches new ones, and in a process's first compilation these took as long as the rest.
	perInstr = 28
	// perOp is how many bytes of code an operation becomes, about.
	perOp = 7
)

// use takes the memory of a room, and makes some where it is too little for a kernel of n instructions.
func (g *gen) use(r *room, n int) {
	n = min(max(perInstr*n, 512), mostKept)
	g.room = r
	if g.ops = r.ops; cap(g.ops) < n {
		g.ops = make([]vop, 0, n)
	}
	if g.vals = r.vals; cap(g.vals) < n {
		g.vals = make([]vinfo, 0, n)
	}
	if r.code == nil || cap(r.code) < n {
		r.code = make([]byte, 0, perOp*n)
	}
	r.ops = g.ops
	g.places = append(r.places[:0], place{}, place{arg: -1, mem: inSpill(atBounce)}) // none and bounce
	g.asm.Use(r.code)
}

// leave gives the memory back, or makes more for the next.
func (g *gen) leave() {
	r := g.room
	if g.lowered > mostKept {
		return
	}
	if g.lowered > cap(r.ops) {
		r.ops = make([]vop, 0, g.lowered+g.lowered/2)
	}
	r.vals, r.places = g.vals[:0], g.places
	rooms.Put(r)
}

func newGen(k *loop.Kernel, isa ISA) *gen {
	g := &gen{
		isa: isa, k: k, asm: newAssembler(isa), slots: atSlots, at: map[poolKey]val{}, homes: map[homeKey]val{},
		uniform: make([]bool, len(k.Instrs)), loose: looseValues(k), late: lateRounds(k), ofBF16: numbersOf(k, ir.BF16), quotients: narrowQuotients(k), values: make([]val, len(k.Instrs)),
	}
	g.use(rooms.Get().(*room), len(k.Instrs))
	g.newVal(vinfo{}) // none
	g.initRegs()
	g.lanes = lanesOf(k, isa)
	g.packed = packedSize(k, isa)
	if isa == AVX512 {
		g.tails[0] = g.newVal(vinfo{kind: home, mask: true, len: 2})
		g.vals[g.tails[0]].pin = tailMask
	}
	g.wide, g.short, g.lines = wideIn(k, isa), k.Width > 0 && Short(k, isa), k.Height > 0 && Tall(k, isa)
	if !g.wide {
		g.doubled = doubledLoads(k, isa)
	}
	g.factors = factorLoads(k, isa, g.wide)
	for i := range k.Instrs {
		in := &k.Instrs[i]
		g.indexed = g.indexed || in.Code == loop.Index || in.Op == aten.Argmax || in.Op == aten.Argmin
		g.uniform[i] = in.Code == loop.Const
	}
	g.indexed = g.indexed && (k.Axis == loop.Rows || k.Axis == loop.Both)
	g.pointers()
	return g
}

// pointers gives registers to the first operands, and one that is left to the rows.
func (g *gen) pointers() {
	own := []x64.Reg{x64.R9, x64.R10, x64.R11, x64.R12, x64.R13, x64.R15}
	g.args = make([]x64.Reg, len(g.k.Args))
	for i := range g.args {
		g.args[i] = x64.NoReg
		if i < len(own) {
			g.args[i] = own[i]
		}
	}
	g.rows = x64.NoReg
	if len(g.args) < len(own) {
		g.rows = own[len(g.args)]
	}
}
