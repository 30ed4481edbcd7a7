package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comparisons of VPCMPD and VPCMPUD.
const (
	equal   = 0
	greater = 6
)

// pair is two taps of a vector of places that read pixels which adjoin: the first of these, and how the two are weighed.
// The latter is for two vectors of places and pixels in turn.
type pair struct {
	first   [2]reg.VecVirtual
	weights [2]reg.VecVirtual
	used    [2]reg.OpmaskVirtual
}

// weighPairs writes the weighted sums of pixels that adjoin by twos. One access to memory then reads both, of which
// places at the edge of an image use one.
func weighPairs() {
	begin("weighPairs", "func(dst, planes *float32, at *int32, weights *float32, step, n, channels, places, pixels int, add bool) int",
		"sets elements of dst for each of so many channels to the sums of the elements of planes that at selects, times weights,",
		"or adds them. There are four taps, step apart; those below zero count for nothing. Channels of dst are places apart, and",
		"those of planes so many pixels, at least two. It returns how many of n places it did: it ends before those",
		"whose first two or last two taps do not adjoin.")
	at, weights, n := param("at"), param("weights"), param("n")
	to, done := param("dst"), GP64()
	XORQ(done, done)
	last, none := ZMM(), numbers("none", func(int) uint32 { return 1<<32 - 1 })
	{
		pixels := param("pixels")
		SUBQ(Imm(2), pixels)
		VPBROADCASTD(pixels.As32(), last)
	}
	interleaved := [2]reg.VecVirtual{numbers("low", func(i int) uint32 { return uint32(i/2 + i%2*lanes) }),
		numbers("high", func(i int) uint32 { return uint32(i/2 + i%2*lanes + lanes/2) })}
	each := [2]reg.VecVirtual{numbers("even", func(i int) uint32 { return uint32(2 * i) }),
		numbers("odd", func(i int) uint32 { return uint32(2*i + 1) })}
	Label("places")
	mask := firstLanes(n, "mask")
	apart := GP32()
	XORL(apart, apart)
	var pairs [2]*pair
	{
		p, w, step := GP64(), GP64(), param("step")
		SHLQ(Imm(2), step)
		MOVQ(at, p)
		MOVQ(weights, w)
		for i := range pairs {
			pairs[i] = loadPair(p, w, step, mask, last, none, interleaved, apart)
			if i == 0 {
				ADDQ(step, p)
				ADDQ(step, w)
			}
		}
	}
	TESTL(apart, apart)
	JNE(LabelRef("end"))
	weighChannels(to, mask, &pairs, each)
	ADDQ(Imm(4*lanes), to)
	ADDQ(Imm(4*lanes), at)
	ADDQ(Imm(4*lanes), weights)
	ADDQ(Imm(lanes), done)
	SUBQ(Imm(lanes), n)
	JG(LabelRef("places"))
	ADDQ(n, done) // what the last vector had no places for
	Label("end")
	Store(done, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// numbers returns a vector of constants.
func numbers(name string, of func(i int) uint32) reg.VecVirtual {
	m, v := GLOBL(name, RODATA|NOPTR), ZMM()
	for i := range lanes {
		DATA(4*i, U32(of(i)))
	}
	VMOVDQU32(m, v)
	return v
}

// loadPair returns the taps at p with weights at w and those a step behind, to which it moves both. Where two do not adjoin it
// sets bits of apart.
func loadPair(p, w, step reg.GPVirtual, mask reg.OpmaskVirtual, last, none reg.VecVirtual, interleaved [2]reg.VecVirtual, apart reg.GPVirtual) *pair {
	var at, weight, distance [2]reg.VecVirtual
	for t := range at {
		at[t], weight[t] = ZMM(), ZMM()
		VMOVDQA32(none, at[t])
		VMOVDQU32(Mem{Base: p}, mask, at[t])
		VMOVUPS_Z(Mem{Base: w}, mask, weight[t])
		if t == 0 {
			ADDQ(step, p)
			ADDQ(step, w)
		}
	}
	nothing, one, first := ZMM(), ZMM(), ZMM()
	zero(nothing)
	VPSUBD(none, nothing, one)
	inside := K()
	VPCMPD(Imm(notLess), nothing, at[0], inside)
	VPBLENDMD(at[0], at[1], inside, first)
	VPMINSD(last, first, first)
	VPMAXSD(nothing, first, first)
	for t := range at {
		distance[t] = ZMM()
		VPSUBD(first, at[t], distance[t])
		far, bits := K(), GP32()
		VPCMPD(Imm(notLess), nothing, at[t], far)
		VPCMPUD(Imm(greater), one, distance[t], far, far)
		KMOVW(far, bits)
		ORL(bits, apart)
	}
	var both, used [2]reg.VecVirtual
	for side, d := range []reg.VecVirtual{nothing, one} {
		both[side], used[side] = ZMM(), ZMM()
		k, more := K(), K()
		VPCMPD(Imm(equal), d, distance[0], k)
		VMOVUPS_Z(weight[0], k, both[side])
		VPCMPD(Imm(equal), d, distance[1], more)
		VADDPS(weight[1], both[side], more, both[side])
		KORW(k, more, k)
		VPMOVM2D(k, used[side])
	}
	x := &pair{}
	for half := range 2 {
		x.first[half] = YMM()
		VEXTRACTI64X4(Imm(uint64(half)), first, x.first[half])
		x.weights[half], x.used[half] = ZMM(), K()
		VMOVAPS(both[0], x.weights[half])
		VPERMT2PS(both[1], interleaved[half], x.weights[half])
		bits := ZMM()
		VMOVAPS(used[0], bits)
		VPERMT2PS(used[1], interleaved[half], bits)
		VPMOVD2M(bits, x.used[half])
	}
	return x
}

// weighChannels writes a vector of places for each channel.
func weighChannels(dst reg.GPVirtual, mask reg.OpmaskVirtual, pairs *[2]*pair, each [2]reg.VecVirtual) {
	plane, to, channels := param("planes"), GP64(), param("channels")
	pixels, places := param("pixels"), param("places")
	SHLQ(Imm(2), pixels)
	SHLQ(Imm(2), places)
	MOVQ(dst, to)
	Label("channel")
	var sums [2]reg.VecVirtual
	for half := range sums {
		sums[half] = ZMM()
		for i, p := range pairs {
			all, value := K(), ZMM()
			KXNORW(mask, mask, all)
			zero(value)
			VGATHERDPD(Mem{Base: plane, Index: p.first[half], Scale: 4}, all, value)
			if i == 0 {
				VMULPS_Z(value, p.weights[half], p.used[half], sums[half])
			} else {
				VFMADD231PS(value, p.weights[half], p.used[half], sums[half])
			}
		}
	}
	odd := ZMM()
	VMOVAPS(sums[0], odd)
	VPERMT2PS(sums[1], each[1], odd)
	VPERMT2PS(sums[1], each[0], sums[0])
	VADDPS(odd, sums[0], sums[0])
	CMPB(NewParamAddr("add", 72), Imm(0))
	JEQ(LabelRef("store"))
	before := ZMM()
	VMOVUPS_Z(Mem{Base: to}, mask, before)
	VADDPS(before, sums[0], sums[0])
	Label("store")
	VMOVUPS(sums[0], mask, Mem{Base: to})
	ADDQ(pixels, plane)
	ADDQ(places, to)
	DECQ(channels)
	JNE(LabelRef("channel"))
}
