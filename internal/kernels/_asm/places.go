package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// places writes the search for the key at a place in the order of all: bit by bit from the highest on, by how many
// keys are below a number.
func places() {
	for _, s := range []struct {
		suffix string
		vec    func() reg.VecVirtual
		bytes  int
	}{{"AVX512", ZMM, 64}, {"AVX2", YMM, 32}} {
		place(s.suffix, s.vec, s.bytes)
	}
}

func place(suffix string, vec func() reg.VecVirtual, bytes int) {
	const vectors = 4 // of keys in a step, each with a count of its own
	name := "keyAt" + suffix
	TEXT(name, NOSPLIT, "func(keys *int32, n, at int) (key int32, less int)")
	Doc(fmt.Sprintf("%s returns the key that has at others before it in the order of n, a multiple of %d above zero, and how many are less than it.", name, vectors*bytes/4))
	Pragma("noescape")
	keys, n, at := Load(Param("keys"), GP64()), Load(Param("n"), GP64()), Load(Param("at"), GP64())
	SHLQ(Imm(2), n)
	ADDQ(keys, n)
	key, bit, less, trial, count, from := GP32(), GP32(), GP64(), GP32(), GP64(), GP64()
	MOVL(U32(1<<31), key)
	MOVL(key, bit)
	XORQ(less, less)
	bound, part, one := vec(), XMM(), vec()
	if bytes == 64 {
		VPTERNLOGD(Imm(255), one, one, one) // all bits: subtracted, they count
	}
	sums := make([]reg.VecVirtual, vectors)
	for i := range sums {
		sums[i] = vec()
	}
	Label("bit")
	LEAL(Mem{Base: key, Index: bit, Scale: 1}, trial)
	VMOVD(trial, part)
	VPBROADCASTD(part, bound)
	for _, s := range sums {
		if bytes == 64 {
			VPXORD(s, s, s)
		} else {
			VPXOR(s, s, s)
		}
	}
	MOVQ(keys, from)
	Label("step")
	for i, s := range sums {
		m := Mem{Base: from, Disp: i * bytes}
		if bytes == 64 {
			k := K()
			VPCMPGTD(m, bound, k)
			VPSUBD(one, s, k, s)
		} else {
			above := vec()
			VPCMPGTD(m, bound, above)
			VPSUBD(above, s, s)
		}
	}
	ADDQ(U32(vectors*bytes), from)
	CMPQ(from, n)
	JLT(LabelRef("step"))
	VPADDD(sums[1], sums[0], sums[0])
	VPADDD(sums[3], sums[2], sums[2])
	VPADDD(sums[2], sums[0], sums[0])
	if bytes == 64 {
		half := YMM()
		VEXTRACTI64X4(Imm(1), sums[0], half)
		VPADDD(half, sums[0].AsY(), sums[0].AsY())
	}
	x := sums[0].AsX()
	VEXTRACTI128(Imm(1), sums[0].AsY(), part)
	VPADDD(part, x, x)
	VPSHUFD(Imm(0x4e), x, part)
	VPADDD(part, x, x)
	VPSHUFD(Imm(0xb1), x, part)
	VPADDD(part, x, x)
	VMOVD(x, count.As32())
	CMPQ(count, at)
	CMOVLLE(trial, key)
	CMOVQLE(count, less)
	SHRL(Imm(1), bit)
	JNZ(LabelRef("bit"))
	Store(key, ReturnIndex(0))
	Store(less, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
