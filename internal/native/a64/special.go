package a64

import "github.com/loris-ml/loris/internal/native/x64"

// special has the instructions that are several of NEON, or read other registers than their like.
var special [256]func(a *Asm, in *inst)

func init() {
	s := &special
	s[x64.MOVUPS], s[x64.MOVAPS] = (*Asm).load, (*Asm).load
	s[x64.MOVUPSst], s[x64.MOVNTPS] = (*Asm).store, (*Asm).store
	part := func(op uint32, size int32) func(a *Asm, in *inst) {
		return func(a *Asm, in *inst) { a.access(op, v(in.Reg, 0), size, a.resolve(&in.mem, 16), 0) }
	}
	s[x64.MOVDst] = part(storeS, 4)
	s[x64.MOVQst], s[x64.MOVSDst] = part(storeD, 8), part(storeD, 8)
	s[x64.BROADCASTSS], s[x64.BROADCASTSD] = broadcast(loadAllS, dupS), broadcast(loadAllD, dupD)
	s[x64.PBROADCASTB], s[x64.PBROADCASTW] = broadcast(loadAllB, 0), broadcast(loadAllH, 0)
	s[x64.PGATHERDD], s[x64.PGATHERDQ] = gather(4), gather(8)

	s[x64.MINPS], s[x64.MINPD] = extremum(fcmgtS, true), extremum(fcmgtD, true)
	s[x64.MAXPS], s[x64.MAXPD] = extremum(fcmgtS, false), extremum(fcmgtD, false)
	s[x64.CMPPS], s[x64.CMPPD] = compare(fcmeqS, fcmgeS, fcmgtS), compare(fcmeqD, fcmgeD, fcmgtD)
	s[x64.ROUNDPS], s[x64.ROUNDPD] = round(0), round(1<<22)
	s[x64.BLENDVPS], s[x64.BLENDVPD] = blend(cmlt0S), blend(cmlt0D)
	s[x64.PANDND] = func(a *Asm, in *inst) {
		a.each(in, func(d, n, m uint32) { a.rrr(bic, d, m, n) })
	}
	s[x64.PMULUDQ] = func(a *Asm, in *inst) {
		a.each(in, func(d, n, m uint32) {
			a.rr(xtnS, tmp0, n)
			a.rr(xtnS, tmp1, m)
			a.rrr(umullD, d, tmp0, tmp1)
		})
	}
	s[x64.PSLLD], s[x64.PSLLQ] = shiftLeft(32), shiftLeft(64)
	s[x64.PSRLD], s[x64.PSRLQ], s[x64.PSRAD] = shiftRight(ushr, 32), shiftRight(ushr, 64), shiftRight(sshr, 32)
	s[x64.PSLLVD], s[x64.PSRLVD], s[x64.PSRAVD] = shifts(ushlS, 32, false), shifts(ushlS, 32, true), shifts(sshlS, 31, true)
	s[x64.PSLLVQ], s[x64.PSRLVQ] = (*Asm).shiftsWide, (*Asm).shiftsWide

	s[x64.CVTPS2PD] = long(fcvtlD, 0)
	s[x64.CVTDQ2PD] = long(sxtlD, scvtfD)
	s[x64.CVTPH2PS] = long(fcvtlS, 0)
	s[x64.PMOVZXWD], s[x64.PMOVSXWD], s[x64.PMOVSXDQ] = long(uxtlS, 0), long(sxtlS, 0), long(sxtlD, 0)
	s[x64.PMOVZXBD], s[x64.PMOVSXBD] = fromBytes(uxtlH, uxtlS), fromBytes(sxtlH, sxtlS)
	s[x64.CVTPD2PS] = func(a *Asm, in *inst) { a.narrow(fcvtnS, in.Reg, in.RM, in) }
	// The destination of these is in the second place.
	s[x64.CVTPS2PH] = func(a *Asm, in *inst) { a.narrow(fcvtnH, in.RM, in.Reg, in) }
	s[x64.PMOVDW] = func(a *Asm, in *inst) { a.narrow(xtnH, in.RM, in.Reg, in) }
	s[x64.PMOVQD] = func(a *Asm, in *inst) { a.narrow(xtnS, in.RM, in.Reg, in) }
	s[x64.PMOVDB] = func(a *Asm, in *inst) {
		a.narrow(xtnH, in.RM, in.Reg, in)
		a.rr(xtnB, v(in.RM, 0), v(in.RM, 0))
	}
	s[x64.EXTRACTI128] = func(a *Asm, in *inst) { a.move(v(in.RM, 0), v(in.Reg, 1)) }
	s[x64.INSERTI128] = func(a *Asm, in *inst) {
		a.move(v(in.Reg, 1), a.low(in, 16))
		a.move(v(in.Reg, 0), v(in.V, 0))
	}
	s[x64.PSHUFD], s[x64.SHUFPS] = (*Asm).exchange, (*Asm).evens
	s[x64.PERMQ], s[x64.PERMD] = (*Asm).quarters, (*Asm).look

	s[x64.CVTTPS2DQ], s[x64.CVTTPD2DQ] = (*Asm).toInts, (*Asm).doublesToInts
	s[x64.CVTTPD2QQ], s[x64.CVTTPS2QQ] = (*Asm).toLongs, (*Asm).floatsToLongs
	s[x64.CVTQQ2PS] = (*Asm).longsToFloats
	s[x64.CVTSI2SD] = func(a *Asm, in *inst) {
		a.access(load8, number, 8, a.resolve(&in.mem, 8), 0)
		a.rr(scvtfDX, v(in.Reg, 0), number)
	}
}

func (a *Asm) load(in *inst) {
	if !in.inMemory {
		for h := range halves(in) {
			a.move(v(in.Reg, h), v(in.RM, h))
		}
		return
	}
	a.whole(loadQ, loadQQ, in)
}

func (a *Asm) store(in *inst) { a.whole(storeQ, storeQQ, in) }

// whole loads or stores a vector.
func (a *Asm) whole(one, pair uint32, in *inst) {
	p := a.resolve(&in.mem, 16)
	if halves(in) == 2 && p.label == 0 && p.disp%16 == 0 && p.disp < 1024-16 {
		a.word(pair | uint32(p.disp/16)&0x7f<<15 | v(in.Reg, 1)<<10 | p.base<<5 | v(in.Reg, 0))
		return
	}
	for h := range halves(in) {
		a.access(one, v(in.Reg, h), 16, p, int32(16*h))
	}
}

// broadcast makes all lanes the element in memory, by one instruction, or in a register, by another.
func broadcast(mem, reg uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		d := v(in.Reg, 0)
		if in.inMemory {
			a.rr(mem, d, a.register(&in.mem))
		} else {
			a.rr(reg, d, v(in.RM, 0))
		}
		if halves(in) == 2 {
			a.move(v(in.Reg, 1), d)
		}
	}
}

// gather loads elements of w bytes whose offsets are the 32-bit lanes of the index.
func gather(w uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		m := in.mem
		m.Index = x64.NoReg
		base := a.register(&m)
		for i := range uint32(in.Len) / w {
			index, d := v(in.mem.Index, int(i/4)), v(in.Reg, int(i*w/16))
			a.rr(smov|laneS|i%4<<19, number, index)
			a.rrr(addReg, number, base, number)
			if w == 4 {
				a.rr(loadLaneS|i%4>>1<<30|i&1<<12, d, number)
			} else {
				a.rr(loadLaneD|i&1<<30, d, number)
			}
		}
	}
}

// extremum returns the second source where both are equal or one is NaN.
func extremum(gt uint32, least bool) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		a.each(in, func(d, n, m uint32) {
			mask := maskFor(d, n, m)
			if least {
				a.rrr(gt, mask, m, n)
			} else {
				a.rrr(gt, mask, n, m)
			}
			a.choose(d, mask, n, m)
		})
	}
}

// predicate is a comparison of AVX: by an equality, a "greater or equal" or a "greater" of NEON, of the
// sources in this order or in the other, or of each with itself, and inverted or not.
type predicate struct {
	op            int
	swap, not, is bool
}

const (
	equal = iota
	atLeast
	greater
)

var predicates = map[byte]predicate{
	0: {op: equal}, 0x1d: {op: atLeast}, 0x1e: {op: greater}, 0x12: {op: atLeast, swap: true}, 0x11: {op: greater, swap: true},
	4: {op: equal, not: true}, 0x19: {op: atLeast, not: true}, 0x16: {op: atLeast, swap: true, not: true},
	7: {op: equal, is: true}, 3: {op: equal, is: true, not: true}, // both are numbers, and one is NaN
}

func compare(ops ...uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		p, ok := predicates[in.Imm]
		if !ok {
			a.lack("comparison %#x", in.Imm)
		}
		a.each(in, func(d, n, m uint32) {
			if p.swap {
				n, m = m, n
			}
			if p.is && n != m {
				a.rrr(ops[p.op], tmp0, n, n)
				a.rrr(ops[p.op], d, m, m)
				a.rrr(and, d, d, tmp0)
			} else {
				a.rrr(ops[p.op], d, n, m)
			}
			if p.not {
				a.rr(not, d, d)
			}
		})
	}
}

// round is to the nearest integer, down, up or towards 0.
func round(double uint32) func(a *Asm, in *inst) {
	modes := map[byte]uint32{8: 0x4e218800, 9: 0x4e219800, 10: 0x4ea18800, 11: 0x4ea19800}
	return func(a *Asm, in *inst) {
		a.each(in, func(d, _, m uint32) { a.rr(modes[in.Imm]|double, d, m) })
	}
}

// blend takes the second source where the sign bit of the mask is set.
func blend(negative uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		h := 0
		a.each(in, func(d, n, m uint32) {
			mask := maskFor(d, n, m)
			a.rr(negative, mask, v(in.Is4, h))
			a.choose(d, mask, m, n)
			h++
		})
	}
}

// Shifts by a count have their destination in the place of the first source.

func shiftLeft(width uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		for h := range halves(in) {
			a.rr(shl|(width+uint32(in.Imm))<<16, v(in.V, h), v(in.RM, h))
		}
	}
}

func shiftRight(op, width uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		for h := range halves(in) {
			a.rr(op|(2*width-uint32(in.Imm))<<16, v(in.V, h), v(in.RM, h))
		}
	}
}

// Shifts by lanes take their counts as unsigned numbers; NEON's take a signed byte.

func shifts(op, most uint32, right bool) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		a.each(in, func(d, n, m uint32) {
			a.rr(movi|most>>5<<16|most&31<<5, tmp0, 0)
			a.rrr(uminS, tmp0, tmp0, m) // beyond, they are all the same
			if right {
				a.rr(negS, tmp0, tmp0)
			}
			a.rrr(op, d, n, tmp0)
		})
	}
}

// shiftsWide shifts lanes of 64 bits to the left, or to the right with zeros above.
func (a *Asm) shiftsWide(in *inst) {
	a.each(in, func(d, n, m uint32) {
		a.all(tmp0, 8, 64)
		a.rrr(cmhiD, tmp0, tmp0, m) // the counts below
		if in.Op == x64.PSRLVQ {
			a.rr(negD, tmp1, m)
			m = tmp1
		}
		a.rrr(ushlD, tmp1, n, m)
		a.rrr(and, d, tmp1, tmp0)
	})
}
