package native

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Elements of 64 bits halve the lanes of a kernel. With AVX2 those that are only loaded to become f32s do not: a vector of
// f32s is converted from two of them. Kernels that reduce keep the lanes that they have with such elements in any other
// use, since these order their sums.

// loads tells Loads of a kernel, by Value; nil if there are none of a kind.
type loads []bool

func (l loads) has(v loop.Value) bool { return l != nil && l[v] }

// loadsOnly returns the Loads of operands of a kind that are read in the order of memory, or are one element for a row,
// and that nothing but users of a kind has.
func loadsOnly(k *loop.Kernel, of func(a *loop.Arg) bool, by func(user *loop.Instr) bool) (l loads) {
	if k.Width > 0 || k.Height > 0 {
		return nil
	}
	for v := range k.Instrs {
		in := &k.Instrs[v]
		if in.Code != loop.Load {
			continue
		}
		if a := &k.Args[in.Arg]; of(a) && a.Cols != loop.Free && !a.Write && a.By == 0 {
			if l == nil {
				l = make(loads, len(k.Instrs))
			}
			l[v] = true
		}
	}
	if l == nil {
		return nil
	}
	for u := range k.Instrs {
		in := &k.Instrs[u]
		for _, v := range in.In[:in.N] {
			l[v] = l[v] && by(in)
		}
	}
	return l
}

// doubledLoads returns which Loads are of elements of 64 bits that only become f32s.
func doubledLoads(k *loop.Kernel, isa ISA) loads {
	if isa != AVX2 || k.Axis != loop.None {
		return nil
	}
	return loadsOnly(k, func(a *loop.Arg) bool { return a.DType == ir.I64 || a.DType == ir.F64 },
		func(user *loop.Instr) bool {
			return user.Code == loop.Apply && user.Op == aten.Cast && user.DType == ir.F32
		})
}

// factorLoads returns which Loads are only factors of a product, where f32s are converted from memory: with
// AVX2, which takes a vector in a register apart for as long as it converts it.
func factorLoads(k *loop.Kernel, isa ISA, wide bool) loads {
	if isa != AVX2 || wide || k.Axis == loop.Rows {
		return nil
	}
	return loadsOnly(k, func(a *loop.Arg) bool { return a.DType == ir.F32 && a.Cols == loop.Unit },
		func(user *loop.Instr) bool {
			return user.Code == loop.Reduce && user.Op == aten.Prod && user.DType == ir.F32
		})
}

// halfElement returns the place of one of the halves, of so many bytes, of the present vector of an operand.
func (g *gen) halfElement(arg, half int, bytes uint8) addr {
	p := g.element(arg)
	g.places[p].disp += int32(half) * int32(bytes)
	return p
}

// readDoubled loads elements of 64 bits as f32s.
func (g *gen) readDoubled(arg int) val {
	const w = 8
	a, n := &g.k.Args[arg], g.vl(w)
	var halves []val
	for h := range 2 {
		x := none
		switch {
		case a.Cols == loop.Fixed && h > 0:
			halves = append(halves, halves[0])
			continue
		case a.Cols == loop.Fixed:
			x = g.add(vop{op: x64.BROADCASTSD, len: n, dst: g.temp(n), mem: g.addr(place{arg: arg})})
		default:
			p := g.halfElement(arg, h, n)
			if !g.tail {
				x = g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: p})
				break
			}
			m := g.tails[0]
			if h > 0 {
				m = g.resize(x64.EXTRACTI128, n, n/2, m, 1)
			}
			x = g.add(vop{op: x64.MASKMOVPD, len: n, dst: g.temp(n), c: g.op1(x64.PMOVSXDQ, n, m), mem: p})
		}
		if a.DType == ir.I64 {
			x = g.longToDouble(g.withoutTies(x))
		}
		halves = append(halves, x)
	}
	return g.joined(x64.CVTPD2PS, halves)
}
