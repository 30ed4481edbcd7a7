package a64

import "github.com/loris-ml/loris/internal/native/x64"

// v returns half h of a vector register of 32 bytes.
func v(r x64.Reg, h int) uint32 { return uint32(r)*2 + uint32(h) }

// inst is what an x64.Inst says, with the address itself: the caller's need not be allocated.
type inst struct {
	Op              x64.Op
	Len             uint8
	Reg, V, RM, Is4 x64.Reg
	inMemory        bool
	mem             x64.Mem
	Imm             byte
}

// halves is how many registers of NEON an instruction's vectors are.
func halves(in *inst) int { return int(in.Len) / 16 }

// Vec appends an instruction, which must be one of those that AVX2 has, in the form without a mask; or
// one of the conversions between 64-bit integers and floats and the narrowing moves of AVX-512. Masked
// accesses there are none, and a gather takes all lanes.
func (a *Asm) Vec(from x64.Inst) {
	in, op := &a.now, from.Op
	*in = inst{Op: op, Len: from.Len, Reg: from.Reg, V: from.V, RM: from.RM, Imm: from.Imm, Is4: from.Is4}
	if from.Mem != nil {
		in.inMemory, in.mem = true, *from.Mem
	}
	switch {
	case three[op] != 0:
		a.each(in, func(d, n, m uint32) { a.rrr(three[op], d, n, m) })
	case two[op] != 0:
		a.each(in, func(d, _, m uint32) { a.rr(two[op], d, m) })
	case fused[op] != 0:
		a.each(in, func(d, n, m uint32) { a.fused(op, d, n, m) })
	case special[op] != nil:
		special[op](a, in)
	default:
		a.lack("%s", op.Name())
	}
}

// each calls one with the registers of each half: the destination and both sources, the second of which
// is loaded if it is in memory.
func (a *Asm) each(in *inst, one func(d, n, m uint32)) {
	var p place
	if in.inMemory {
		p = a.resolve(&in.mem, 16)
	}
	for h := range halves(in) {
		m := v(in.RM, h)
		if in.inMemory {
			m = source
			a.access(loadQ, m, 16, p, int32(16*h))
		}
		one(v(in.Reg, h), v(in.V, h), m)
	}
}

// low returns the register with the lowest bytes of the second source, loaded if it is in memory: as many
// as that of 4, 8, or 16 has, and no more.
func (a *Asm) low(in *inst, bytes int) uint32 {
	if !in.inMemory {
		return v(in.RM, 0)
	}
	a.access(lowLoads[bytes], source, int32(bytes), a.resolve(&in.mem, 16), 0)
	return source
}

var lowLoads = [17]uint32{4: loadS, 8: loadD, 16: loadQ}

// The encodings of vector instructions, for 4 lanes of 32 bits or, where the name ends with D, 2 of 64.
const (
	faddS, faddD     = 0x4e20d400, 0x4e60d400
	fsubS, fsubD     = 0x4ea0d400, 0x4ee0d400
	fmulS, fmulD     = 0x6e20dc00, 0x6e60dc00
	fdivS, fdivD     = 0x6e20fc00, 0x6e60fc00
	fmlaS, fmlaD     = 0x4e20cc00, 0x4e60cc00
	fmlsS, fmlsD     = 0x4ea0cc00, 0x4ee0cc00
	fcmeqS, fcmeqD   = 0x4e20e400, 0x4e60e400
	fcmgeS, fcmgeD   = 0x6e20e400, 0x6e60e400
	fcmgtS, fcmgtD   = 0x6ea0e400, 0x6ee0e400
	fsqrtS, fsqrtD   = 0x6ea1f800, 0x6ee1f800
	fnegS, fnegD     = 0x6ea0f800, 0x6ee0f800
	scvtfS, scvtfD   = 0x4e21d800, 0x4e61d800
	fcvtzsS, fcvtzsD = 0x4ea1b800, 0x4ee1b800

	addS, addD     = 0x4ea08400, 0x4ee08400
	subS, subD     = 0x6ea08400, 0x6ee08400
	mulS           = 0x4ea09c00
	cmeqS, cmeqD   = 0x6ea08c00, 0x6ee08c00
	cmgtS, cmgtD   = 0x4ea03400, 0x4ee03400
	cmhiD          = 0x6ee03400
	cmlt0S, cmlt0D = 0x4ea0a800, 0x4ee0a800
	smaxS, sminS   = 0x4ea06400, 0x4ea06c00
	umaxS, uminS   = 0x6ea06400, 0x6ea06c00
	sshlS          = 0x4ea04400
	ushlS, ushlD   = 0x6ea04400, 0x6ee04400
	negS, negD     = 0x6ea0b800, 0x6ee0b800
	absS           = 0x4ea0b800
	shl            = 0x4f005400
	ushr           = 0x6f000400
	sshr           = 0x4f000400

	and = 0x4e201c00
	bic = 0x4e601c00
	orr = 0x4ea01c00
	eor = 0x6e201c00
	bsl = 0x6e601c00
	bit = 0x6ea01c00
	bif = 0x6ee01c00
	not = 0x6e205800

	// Long forms make wider lanes from the lower half of a register, or with high from the upper half;
	// narrow ones make the lower half of one, or with high keep that and make the upper half.
	high   = 1 << 30
	fcvtlD = 0x0e617800 // 2 of f32 to f64
	fcvtlS = 0x0e217800 // 4 of f16 to f32
	fcvtnS = 0x0e616800 // 2 of f64 to f32
	fcvtnH = 0x0e216800 // 4 of f32 to f16
	xtnB   = 0x0e212800
	xtnH   = 0x0e612800
	xtnS   = 0x0ea12800
	sqxtnS = 0x0ea14800
	sxtlH  = 0x0f08a400
	sxtlS  = 0x0f10a400
	sxtlD  = 0x0f20a400
	uxtlH  = 0x2f08a400
	uxtlS  = 0x2f10a400
	umullD = 0x2ea0c000

	uzp1S   = 0x4e801800
	zip1D   = 0x4ec03800
	ext     = 0x6e000000
	rev64S  = 0x4ea00800
	tbl     = 0x4e000000
	tblTwo  = 0x4e002000
	dupS    = 0x4e040400
	dupD    = 0x4e080400
	dupFrom = 0x4e000c00 // a general register
	laneS   = 4 << 16
	laneD   = 8 << 16
	umov    = 0x4e003c00
	smov    = 0x4e002c00
	insS    = 0x6e040400
	movi    = 0x4f000400
	moviTop = 0x4f006400 // shifted left by 24
	scvtfSX = 0x9e220000
	scvtfDX = 0x9e620000

	loadQ, storeQ   = 0x3dc00000, 0x3d800000
	loadD, storeD   = 0xfd400000, 0xfd000000
	loadS, storeS   = 0xbd400000, 0xbd000000
	loadQQ, storeQQ = 0xad400000, 0xad000000
	literalQ        = 0x9c000000
	loadAllB        = 0x4d40c000
	loadAllH        = 0x4d40c400
	loadAllS        = 0x4d40c800
	loadAllD        = 0x4d40cc00
	loadLaneS       = 0x0d408000
	loadLaneD       = 0x0d408400
)

// three, two and fused have the instructions that are the same in NEON, or in fused with another order
// of operands.
var (
	three = [256]uint32{
		x64.ADDPS: faddS, x64.ADDPD: faddD, x64.SUBPS: fsubS, x64.SUBPD: fsubD,
		x64.MULPS: fmulS, x64.MULPD: fmulD, x64.DIVPS: fdivS, x64.DIVPD: fdivD,
		x64.FMADD231PS: fmlaS, x64.FMADD231PD: fmlaD, x64.FNMADD231PS: fmlsS, x64.FNMADD231PD: fmlsD,
		x64.PADDD: addS, x64.PADDQ: addD, x64.PSUBD: subS, x64.PSUBQ: subD, x64.PMULLD: mulS,
		x64.PANDD: and, x64.PANDQ: and, x64.PORD: orr, x64.PORQ: orr, x64.PXORD: eor, x64.PXORQ: eor,
		x64.PMINSD: sminS, x64.PMAXSD: smaxS, x64.PMINUD: uminS, x64.PMAXUD: umaxS,
		x64.PCMPEQD: cmeqS, x64.PCMPEQQ: cmeqD, x64.PCMPGTD: cmgtS, x64.PCMPGTQ: cmgtD,
		x64.PSHUFB: tbl, // of indices that are below 16 or negative
	}
	two = [256]uint32{
		x64.SQRTPS: fsqrtS, x64.SQRTPD: fsqrtD, x64.CVTDQ2PS: scvtfS, x64.CVTQQ2PD: scvtfD, x64.PABSD: absS,
	}
	fused = [256]uint32{
		x64.FMADD213PS: fmlaS, x64.FMADD213PD: fmlaD, x64.FNMADD213PS: fmlsS, x64.FNMADD213PD: fmlsD,
		x64.FMSUB213PS: fmlaS, x64.FMSUB213PD: fmlaD,
	}
)

// fused is d = ±n·d ± m, which NEON has with the sum in place of m only.
func (a *Asm) fused(op x64.Op, d, n, m uint32) {
	switch op {
	case x64.FMSUB213PS:
		a.rr(fnegS, source, m)
	case x64.FMSUB213PD:
		a.rr(fnegD, source, m)
	default:
		a.move(source, m)
	}
	a.rrr(fused[op], source, d, n)
	a.move(d, source)
}

// move is d = n.
func (a *Asm) move(d, n uint32) {
	if d != n {
		a.rrr(orr, d, n, n)
	}
}

// maskFor returns where a mask for choose is to be made: d itself unless that is one of what is chosen.
func maskFor(d, x, y uint32) uint32 {
	if d == x || d == y {
		return tmp0
	}
	return d
}

// choose is d = x where the mask is set and y elsewhere. The mask is lost.
func (a *Asm) choose(d, mask, x, y uint32) {
	switch d {
	case y:
		a.rrr(bit, d, x, mask)
	case x:
		a.rrr(bif, d, y, mask)
	default:
		a.rrr(bsl, mask, x, y)
		a.move(d, mask)
	}
}

// all makes all lanes of d a number of w bytes.
func (a *Asm) all(d uint32, w int, bits uint64) {
	a.mov(number, int64(bits))
	lane := uint32(laneS)
	if w == 8 {
		lane = laneD
	}
	a.rr(dupFrom|lane, d, number)
}
