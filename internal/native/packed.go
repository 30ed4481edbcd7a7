package native

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// With AVX2, kernels of nothing but elements of a byte, or of nothing but words of 16 bits, are computed in lanes of that
// size where all their ops have a form in such lanes (bytes.go, words.go): others have lanes of 32 bits, to which their
// elements are widened.

// vectorBytes is the size of a vector of packed lanes.
const vectorBytes = 32

// packedSize returns the bytes of the lanes of a kernel that is computed in packed ones, and 0 for others.
func packedSize(k *loop.Kernel, isa ISA) int {
	if isa != AVX2 || k.Axis != loop.None || k.Width > 0 || k.Height > 0 || len(k.Args) == 0 {
		return 0
	}
	for i := range k.Args {
		if a := &k.Args[i]; a.By > 0 || a.Cols == loop.Free || a.Write && a.Cols != loop.Unit {
			return 0
		}
	}
	switch size := k.Args[0].DType.Size(); {
	case size == 1 && bytewise(k), size == 2 && wordwise(k):
		return size
	}
	return 0
}

// applyPacked is apply in packed lanes.
func (g *gen) applyPacked(in *loop.Instr, d ir.DType, x []val) val {
	if g.packed == 2 {
		return g.applyWords(in, d, x)
	}
	return g.applyBytes(in, d, x)
}

// packedConstant is constant in packed lanes.
func (g *gen) packedConstant(in *loop.Instr) val {
	if g.packed == 2 {
		bits, _ := wordOf(in, g.k.Args[0].DType)
		return g.konst(2, bits)
	}
	return g.byteConstant(in)
}

// readPacked is read in packed lanes.
func (g *gen) readPacked(arg int) val {
	a := &g.k.Args[arg]
	op, from := x64.MOVUPS, g.element(arg)
	switch {
	case a.Cols == loop.Fixed:
		op, from = broadcasts[g.packed], g.addr(place{arg: arg})
	case g.tail:
		slot := g.newSlot()
		g.moveTail(arg, slot, false)
		from = g.slot(slot)
	}
	v := g.add(vop{op: op, len: vectorBytes, dst: g.temp(vectorBytes), mem: from})
	if a.DType == ir.Bool {
		return g.setBytes(ir.U8, v)
	}
	return v
}

// writePacked is write in packed lanes.
func (g *gen) writePacked(arg int, v val) {
	if g.k.Args[arg].DType == ir.Bool {
		v = g.onBytes(x64.PANDD, v, g.konst(1, 1))
	}
	op, to := x64.MOVUPSst, g.element(arg)
	switch {
	case g.tail:
		slot := g.newSlot()
		g.add(vop{op: op, len: vectorBytes, b: v, mem: g.slot(slot), store: true})
		g.moveTail(arg, slot, true)
		return
	case g.stream && g.streams(arg):
		op = x64.MOVNTPS
	}
	g.add(vop{op: op, len: vectorBytes, b: v, mem: to, store: true})
}

// moveTail copies the bytes of a tail between an operand and a slot, at most eight at a time.
func (g *gen) moveTail(arg int, slot int32, store bool) {
	size := g.packed
	g.scalar(func() {
		a := g.asm
		a.Lea(x64.RAX, x64.Mem{Base: g.pointer(arg, x64.RAX), Index: column, Scale: uint8(size)})
		a.MovImm(x64.RDX, 0)
		a.MovLoad(x64.R8, inSpill(atTail))
		if size == 2 {
			a.Arith(x64.Add, x64.R8, x64.R8)
		}
		from, to := x64.Mem{Base: x64.RAX, Index: x64.RDX, Scale: 1}, x64.Mem{Base: spillBase, Index: x64.RDX, Scale: 1, Disp: slot}
		if store {
			from, to = to, from
		}
		for _, part := range []int{8, 4, 2, 1} {
			if part < size {
				break
			}
			again, next := a.Label(), a.Label()
			a.Bind(again)
			a.ArithImm(x64.Cmp, x64.R8, int32(part))
			a.JumpIf(x64.Less, next)
			a.LoadSize(x64.RBX, from, part)
			a.StoreSize(to, x64.RBX, part)
			a.ArithImm(x64.Add, x64.RDX, int32(part))
			a.ArithImm(x64.Sub, x64.R8, int32(part))
			if part == 8 {
				a.Jump(again)
			}
			a.Bind(next)
		}
	})
}
