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

// doubledLoads returns which Loads are of that kind, by Value; nil if there is none.
func doubledLoads(k *loop.Kernel, isa ISA) (doubled []bool) {
	if isa != AVX2 || k.Width > 0 || k.Height > 0 || k.Axis != loop.None {
		return nil
	}
	for v := range k.Instrs {
		in := &k.Instrs[v]
		if in.Code != loop.Load {
			continue
		}
		a := &k.Args[in.Arg]
		if (a.DType == ir.I64 || a.DType == ir.F64) && a.Cols != loop.Free && !a.Write && a.By == 0 {
			if doubled == nil {
				doubled = make([]bool, len(k.Instrs))
			}
			doubled[v] = true
		}
	}
	if doubled == nil {
		return nil
	}
	for u := range k.Instrs {
		in := &k.Instrs[u]
		for _, v := range in.In[:in.N] {
			doubled[v] = doubled[v] && in.Code == loop.Apply && in.Op == aten.Cast && in.DType == ir.F32
		}
	}
	return doubled
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
			p := g.element(arg)
			g.places[p].disp += int32(h) * int32(n)
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
