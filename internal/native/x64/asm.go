// Package x64 encodes the x86-64 instructions that fused loops need: vector
// instructions with VEX and EVEX prefixes (AVX2, FMA, F16C and AVX-512 F, DQ, BW
// and VL), mask instructions, and the few scalar ones around them.
//
// It knows encodings only. Which register holds what, and whether the processor
// has an instruction, is the caller's business.
package x64

import "encoding/binary"

// Reg is a register by its number: general, vector or mask, as the place where it
// is used says.
type Reg int8

// The general registers.
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15

	// NoReg is no register: an address without base or index, an unmasked or
	// one-operand instruction.
	NoReg Reg = -1
)

// Mem is an address: Base + Index·Scale + Disp, or, if Label is not 0, that of
// a label plus Disp.
type Mem struct {
	Base, Index Reg
	Scale       uint8
	Disp        int32
	Label       Label
}

// At returns the address base + disp.
func At(base Reg, disp int32) Mem { return Mem{Base: base, Index: NoReg, Disp: disp} }

// Label is a place in the code. The zero Label is none.
type Label int32

type fixup struct {
	at    int // of the 32-bit displacement
	end   int // of the instruction
	label Label
}

// Asm collects code. The zero value is ready for use.
type Asm struct {
	buf    []byte
	labels []int // offset of each label, -1 while unknown
	fixups []fixup
}

// Use makes an Asm that has no code yet write it to memory that nobody uses any more.
func (a *Asm) Use(memory []byte) { a.buf = memory[:0] }

// Label returns a new label without a place.
func (a *Asm) Label() Label {
	a.labels = append(a.labels, -1)
	return Label(len(a.labels))
}

// Bind gives a label the present place.
func (a *Asm) Bind(l Label) { a.labels[l-1] = len(a.buf) }

// Align fills with zeros up to a multiple of n; it is for data.
func (a *Asm) Align(n int) {
	for len(a.buf)%n != 0 {
		a.buf = append(a.buf, 0)
	}
}

// Data appends bytes that are no code.
func (a *Asm) Data(b ...byte) { a.buf = append(a.buf, b...) }

// Finish resolves all labels and returns the code. Every label used must be
// bound.
func (a *Asm) Finish() []byte {
	for _, f := range a.fixups {
		to := a.labels[f.label-1]
		if to < 0 {
			panic("x64: a label is used and not bound")
		}
		binary.LittleEndian.PutUint32(a.buf[f.at:], binary.LittleEndian.Uint32(a.buf[f.at:])+uint32(to-f.end))
	}
	a.fixups = a.fixups[:0]
	return a.buf
}

func (a *Asm) u32(v int32) { a.buf = binary.LittleEndian.AppendUint32(a.buf, uint32(v)) }

func (a *Asm) label(l Label, disp int32, tail int) {
	a.fixups = append(a.fixups, fixup{len(a.buf), len(a.buf) + 4 + tail, l})
	a.u32(disp)
}

// modrm writes the operand bytes for a register field and an address; tail is
// the number of immediate bytes that follow, and wide keeps displacements at 32
// bits, because EVEX scales those of 8.
func (a *Asm) modrm(reg Reg, m Mem, tail int, wide bool) {
	r := byte(reg&7) << 3
	if m.Label != 0 {
		a.buf = append(a.buf, r|5)
		a.label(m.Label, m.Disp, tail)
		return
	}
	mod, base := byte(0x80), byte(m.Base&7)
	switch {
	case m.Disp == 0 && base != 5:
		mod = 0
	case !wide && m.Disp == int32(int8(m.Disp)):
		mod = 0x40
	}
	if m.Index == NoReg && base != 4 {
		a.buf = append(a.buf, mod|r|base)
	} else {
		index := byte(4)
		if m.Index != NoReg {
			index = byte(m.Index & 7)
		}
		a.buf = append(a.buf, mod|r|4, scaleBits[m.Scale]|index<<3|base)
	}
	switch mod {
	case 0x40:
		a.buf = append(a.buf, byte(m.Disp))
	case 0x80:
		a.u32(m.Disp)
	}
}

var scaleBits = [9]byte{1: 0, 2: 0x40, 4: 0x80, 8: 0xc0}

// high reports whether bit of a register number is set.
func high(r Reg, bit uint) byte {
	if r < 0 {
		return 0
	}
	return byte(r) >> bit & 1
}
