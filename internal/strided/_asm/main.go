// Command asm writes the loops of package strided for amd64.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	reverse()
	halves()
	octets()
	alternate()
	runs()
	thirds()
	Generate()
}

// reverse writes the copy of rows in the other order; a mask turns each half of a vector. The last two vectors of a row overlap.
func reverse() {
	TEXT("reverseAVX2", NOSPLIT, "func(dst, end *byte, mask *[32]byte, n, rows, up, down int)")
	Doc("reverseAVX2 sets n bytes at dst, at least 32, to those before end, vector by vector from the last, and so for rows in all,",
		"up and down bytes apart; mask says for each byte of a half of a vector which byte of that half it is.")
	Pragma("noescape")
	dst, src, at := Load(Param("dst"), GP64()), Load(Param("end"), GP64()), Load(Param("mask"), GP64())
	n, rows := Load(Param("n"), GP64()), Load(Param("rows"), GP64())
	up, down := Load(Param("up"), GP64()), Load(Param("down"), GP64())
	mask := YMM()
	VMOVDQU(Mem{Base: at}, mask)
	turn := func(from, to Mem) {
		v := YMM()
		VMOVDQU(from, v)
		VPSHUFB(mask, v, v)
		VPERMQ(Imm(0x4e), v, v)
		VMOVDQU(v, to)
	}
	SUBQ(Imm(32), n)
	Label("row")
	from, to, left := GP64(), GP64(), GP64()
	MOVQ(src, from)
	MOVQ(dst, to)
	MOVQ(n, left)
	Label("next")
	turn(Mem{Base: from, Disp: -32}, Mem{Base: to})
	SUBQ(Imm(32), from)
	ADDQ(Imm(32), to)
	SUBQ(Imm(32), left)
	JGE(LabelRef("next"))
	CMPQ(left, I8(-32))
	JEQ(LabelRef("whole"))
	// The beginning of the row, of which a part is there already.
	ADDQ(left, to)
	SUBQ(left, from)
	turn(Mem{Base: from, Disp: -32}, Mem{Base: to})
	Label("whole")
	ADDQ(up, dst)
	ADDQ(down, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// runs writes the copy of runs of bytes by vectors, of which the last two overlap.
func runs() {
	TEXT("runsAVX2", NOSPLIT, "func(dst, src *byte, up, down, bytes, runs int)")
	Doc("runsAVX2 copies runs of bytes, at least 32, from down apart to up apart; runs is above zero. It writes nothing between them.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	up, down := Load(Param("up"), GP64()), Load(Param("down"), GP64())
	bytes, count := Load(Param("bytes"), GP64()), Load(Param("runs"), GP64())
	SUBQ(Imm(32), bytes)
	Label("run")
	at, last := GP64(), YMM()
	VMOVDQU(Mem{Base: src, Index: bytes, Scale: 1}, last)
	XORQ(at, at)
	JMP(LabelRef("more"))
	Label("vector")
	v := YMM()
	VMOVDQU(Mem{Base: src, Index: at, Scale: 1}, v)
	VMOVDQU(v, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(32), at)
	Label("more")
	CMPQ(at, bytes)
	JLT(LabelRef("vector"))
	VMOVDQU(last, Mem{Base: dst, Index: bytes, Scale: 1})
	ADDQ(up, dst)
	ADDQ(down, src)
	DECQ(count)
	JNZ(LabelRef("run"))
	VZEROUPPER()
	RET()
}

// rounds interleaves the first half of eight vectors with the second, three times: with their numbers
// written before the places of elements in them, each time the highest bit moves to the end. The results
// are in new registers, named one by one since those beyond the sixteenth have no AVX2.
func rounds(v []reg.VecPhysical, lo, hi func(a, b, to Op)) []reg.VecPhysical {
	spare := v[8:]
	v = v[:8]
	for range 3 {
		next := make([]reg.VecPhysical, len(v))
		free := append([]reg.VecPhysical{}, spare...)
		for i := range 4 {
			next[2*i], next[2*i+1] = free[0], free[1]
			lo(v[i+4], v[i], next[2*i])
			hi(v[i+4], v[i], next[2*i+1])
			free = append(free[2:], v[i], v[i+4])
		}
		v, spare = next, free
	}
	return v
}

var (
	xmm = []reg.VecPhysical{reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7, reg.X8, reg.X9}
	ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9}
)

// strip writes the loop over blocks of 8 rows: 16 elements of each row of dst are gathered from columns of
// src. load fills vector i from columns i and i+8 of a block, whose halves lo and hi interleave.
func strip(name, doc, signature string, size uint64, vectors []reg.VecPhysical, load func(i int, near, far Mem), lo, hi func(a, b, to Op)) {
	TEXT(name, NOSPLIT, signature)
	Doc(doc)
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()).(reg.GPVirtual), Load(Param("src"), GP64()).(reg.GPVirtual)
	width, step, n := Load(Param("width"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	if size == 2 {
		SHLQ(Imm(1), width)
		SHLQ(Imm(1), step)
	}
	Label("next")
	near, far := GP64(), GP64()
	MOVQ(src, near)
	LEAQ(Mem{Base: src, Index: step, Scale: 8}, far)
	for i := range 8 {
		load(i, Mem{Base: near}, Mem{Base: far})
		if i < 7 {
			ADDQ(step, near)
			ADDQ(step, far)
		}
	}
	for _, row := range rounds(vectors, lo, hi) {
		VMOVDQU(row, Mem{Base: dst})
		ADDQ(width, dst)
	}
	ADDQ(Imm(8*size), src)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

func halves() {
	strip("transpose16AVX2", "transpose16AVX2 sets element (k, c) of dst, rows width apart, to element k + c·step of src, for k below n, a multiple of 8 above zero, and c below 16.",
		"func(dst, src *uint16, width, step, n int)", 2, ymm,
		func(i int, near, far Mem) {
			VMOVDQU(near, xmm[i])
			VINSERTI128(Imm(1), far, ymm[i], ymm[i])
		},
		func(a, b, to Op) { VPUNPCKLWD(a, b, to) }, func(a, b, to Op) { VPUNPCKHWD(a, b, to) })
}

func octets() {
	strip("transpose8AVX2", "transpose8AVX2 is transpose16AVX2 of bytes.",
		"func(dst, src *uint8, width, step, n int)", 1, xmm,
		func(i int, near, far Mem) {
			VMOVQ(near, xmm[i])
			VMOVQ(far, xmm[9])
			VPUNPCKLBW(xmm[9], xmm[i], xmm[i])
		},
		func(a, b, to Op) { VPUNPCKLBW(a, b, to) }, func(a, b, to Op) { VPUNPCKHBW(a, b, to) })
}

// pairs writes a loop over blocks of a vector of elements on one side and two on the other, where every
// second element counts.
func pairs(name, doc string, wide string, block func(dst, src Mem)) {
	TEXT(name, NOSPLIT, "func(dst, src *byte, n int)")
	Doc(doc)
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("next")
	block(Mem{Base: dst}, Mem{Base: src})
	to, from := uint64(32), uint64(32)
	if wide == "dst" {
		to = 64
	} else {
		from = 64
	}
	ADDQ(Imm(to), dst)
	ADDQ(Imm(from), src)
	SUBQ(Imm(32), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// lowerHalves returns a mask of the lower half of each element, of bits bits: ones, shifted down.
func lowerHalves(shift func(...Op), bits uint64) reg.VecVirtual {
	mask := YMM()
	VPCMPEQB(mask, mask, mask)
	shift(Imm(bits/2), mask, mask)
	return mask
}

func alternate() {
	for _, e := range []struct {
		name, of        string
		bits            uint64
		shift, up, pack func(...Op)
		widen           func(...Op)
	}{{"1", "bytes", 16, VPSRLW, VPSLLW, VPACKUSWB, VPMOVZXBW}, {"2", "words of 2 bytes", 32, VPSRLD, VPSLLD, VPACKUSDW, VPMOVZXWD}} {
		pairs("every"+e.name+"AVX2", "every"+e.name+"AVX2 is every4AVX2 of "+e.of+".", "src", func(dst, src Mem) {
			mask, a, b := lowerHalves(e.shift, e.bits), YMM(), YMM()
			VPAND(src, mask, a)
			VPAND(src.Offset(32), mask, b)
			e.pack(b, a, a)
			VPERMQ(Imm(0xd8), a, a)
			VMOVDQU(a, dst)
		})
		pairs("spread"+e.name+"AVX2", "spread"+e.name+"AVX2 is spread4AVX2 of "+e.of+".", "dst", func(dst, src Mem) {
			mask := lowerHalves(e.shift, e.bits)
			for i := range 2 {
				v, between := YMM(), YMM()
				e.widen(src.Offset(16*i), v)
				VPANDN(dst.Offset(32*i), mask, between)
				VPOR(between, v, v)
				VMOVDQU(v, dst.Offset(32*i))
			}
		})
		pairs("twice"+e.name+"AVX2", "twice"+e.name+"AVX2 is twice4AVX2 of "+e.of+".", "dst", func(dst, src Mem) {
			for i := range 2 {
				v, second := YMM(), YMM()
				e.widen(src.Offset(16*i), v)
				e.up(Imm(e.bits/2), v, second)
				VPOR(second, v, v)
				VMOVDQU(v, dst.Offset(32*i))
			}
		})
	}
	pairs("every4AVX2", "every4AVX2 sets n bytes at dst, a multiple of 32 above zero, to every second word of 4 bytes from src on. It reads 2n bytes.", "src", func(dst, src Mem) {
		a, b := YMM(), YMM()
		VMOVUPS(src, a)
		VMOVUPS(src.Offset(32), b)
		VSHUFPS(Imm(0x88), b, a, a)
		VPERMPD(Imm(0xd8), a, a)
		VMOVUPS(a, dst)
	})
	pairs("every8AVX2", "every8AVX2 is every4AVX2 of 8 bytes.", "src", func(dst, src Mem) {
		a, b := YMM(), YMM()
		VMOVUPS(src, a)
		VMOVUPS(src.Offset(32), b)
		VUNPCKLPD(b, a, a)
		VPERMPD(Imm(0xd8), a, a)
		VMOVUPS(a, dst)
	})
	pairs("spread4AVX2", "spread4AVX2 sets every second word of 4 bytes at dst to n bytes of src, a multiple of 32 above zero. It reads 2n bytes and writes them again.", "dst", func(dst, src Mem) {
		for i := range 2 {
			v := YMM()
			VPMOVZXDQ(src.Offset(16*i), v)
			VPBLENDD(Imm(0xaa), dst.Offset(32*i), v, v)
			VMOVDQU(v, dst.Offset(32*i))
		}
	})
	pairs("spread8AVX2", "spread8AVX2 is spread4AVX2 of 8 bytes.", "dst", func(dst, src Mem) {
		v, w := YMM(), YMM()
		VMOVDQU(src, v)
		VPERMQ(Imm(0xfa), v, w)
		VPERMQ(Imm(0x50), v, v)
		for i, x := range []reg.VecVirtual{v, w} {
			VPBLENDD(Imm(0xcc), dst.Offset(32*i), x, x)
			VMOVDQU(x, dst.Offset(32*i))
		}
	})
	pairs("twice4AVX2", "twice4AVX2 sets dst to n bytes of src, a multiple of 32 above zero, each word of 4 bytes of them twice.", "dst", func(dst, src Mem) {
		for i := range 2 {
			v := YMM()
			VPMOVZXDQ(src.Offset(16*i), v)
			VPSHUFD(Imm(0xa0), v, v)
			VMOVDQU(v, dst.Offset(32*i))
		}
	})
	pairs("twice8AVX2", "twice8AVX2 is twice4AVX2 of 8 bytes.", "dst", func(dst, src Mem) {
		v, w := YMM(), YMM()
		VMOVDQU(src, v)
		VPERMQ(Imm(0xfa), v, w)
		VPERMQ(Imm(0x50), v, v)
		VMOVDQU(v, dst)
		VMOVDQU(w, dst.Offset(32))
	})
}

// bytesOf16 makes a vector of 16 bytes in the code's data.
func bytesOf16(name string, of func(i int) byte) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(i, U8(of(i)))
	}
	return m
}

// thirds writes the moves of every third element. Of three vectors that follow each other the elements that count
// are in different lanes, so they are blended and then put in order.
func thirds() {
	TEXT("third4AVX2", NOSPLIT, "func(dst, src *byte, n int)")
	Doc("third4AVX2 sets n bytes at dst, a multiple of 32 above zero, to every third word of 4 bytes from src on. It reads 3n bytes.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	order := YMM()
	places := GLOBL("placesOfThirds", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(3*i%8))
	}
	VMOVDQU(places, order)
	Label("next")
	v := YMM()
	VMOVDQU(Mem{Base: src}, v)
	VPBLENDD(Imm(0x92), Mem{Base: src}.Offset(32), v, v)
	VPBLENDD(Imm(0x24), Mem{Base: src}.Offset(64), v, v)
	VPERMD(v, order, v)
	VMOVDQU(v, Mem{Base: dst})
	ADDQ(Imm(32), dst)
	ADDQ(Imm(96), src)
	SUBQ(Imm(32), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()

	var masks, orders [3]Mem
	for k := range 3 {
		masks[k] = bytesOf16("maskOfThird"+string(rune('0'+k)), func(i int) byte {
			if i%3 == k {
				return 0xff
			}
			return 0
		})
		orders[k] = bytesOf16("orderOfThird"+string(rune('0'+k)), func(i int) byte { return byte((3*i + k) % 16) })
	}
	thirdBytes(masks, orders)

	TEXT("thirds1AVX2", NOSPLIT, "func(dst, src *uint8, width, n int)")
	Doc("thirds1AVX2 sets element (k, c) of dst, rows width apart, to element k + 3c of src, for k below 3 and c below n, a multiple of 16 above zero.")
	Pragma("noescape")
	to, from := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	width, columns := Load(Param("width"), GP64()), Load(Param("n"), GP64())
	var mask, order3 [3]reg.VecVirtual
	for k := range 3 {
		mask[k], order3[k] = XMM(), XMM()
		VMOVDQU(masks[k], mask[k])
		VMOVDQU(orders[k], order3[k])
	}
	Label("more")
	var parts [3]reg.VecVirtual
	for i := range parts {
		parts[i] = XMM()
		VMOVDQU(Mem{Base: from}.Offset(16*i), parts[i])
	}
	row := GP64()
	MOVQ(to, row)
	for k := range 3 {
		v := XMM()
		VPBLENDVB(mask[(k+2)%3], parts[1], parts[0], v)
		VPBLENDVB(mask[(k+1)%3], parts[2], v, v)
		VPSHUFB(order3[k], v, v)
		VMOVDQU(v, Mem{Base: row})
		if k < 2 {
			ADDQ(width, row)
		}
	}
	ADDQ(Imm(16), to)
	ADDQ(Imm(48), from)
	SUBQ(Imm(16), columns)
	JNZ(LabelRef("more"))
	VZEROUPPER()
	RET()
}

// thirdBytes writes the move of every third byte: each half of three vectors has those of 48 bytes that follow each
// other.
func thirdBytes(masks, orders [3]Mem) {
	TEXT("third1AVX2", NOSPLIT, "func(dst, src *byte, n int)")
	Doc("third1AVX2 is third4AVX2 of bytes.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	second, third, order := YMM(), YMM(), YMM()
	VBROADCASTI128(masks[2], second)
	VBROADCASTI128(masks[1], third)
	VBROADCASTI128(orders[0], order)
	Label("bytes")
	var parts [3]reg.VecVirtual
	for i := range parts {
		parts[i] = YMM()
		VMOVDQU(Mem{Base: src}.Offset(16*i), parts[i].AsX())
		VINSERTI128(Imm(1), Mem{Base: src}.Offset(48+16*i), parts[i], parts[i])
	}
	v := YMM()
	VPBLENDVB(second, parts[1], parts[0], v)
	VPBLENDVB(third, parts[2], v, v)
	VPSHUFB(order, v, v)
	VMOVDQU(v, Mem{Base: dst})
	ADDQ(Imm(32), dst)
	ADDQ(Imm(96), src)
	SUBQ(Imm(32), n)
	JNZ(LabelRef("bytes"))
	VZEROUPPER()
	RET()
}
