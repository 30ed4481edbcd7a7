// Package a64 writes the operations of package x64 as instructions of A64 and its vectors (NEON), for
// a generator of code that thinks in those of x86-64 with AVX2. It has the methods of x64.Asm, with
// the same operands and results: of each lane the bits are those that AVX2 gives, but for which NaN
// it is.
//
// General register n is Xn. A vector register of 32 bytes is two of NEON, V2n and V2n+1, of which an
// operation on 16 bytes takes the first: Vectors are few. X16, X17 and V28 to V31 are scratch, and X18
// and X26 to X30 are not touched. Addresses in the code reach as far as a megabyte.
package a64

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/loris-ml/loris/internal/native/x64"
)

// Vectors is how many vector registers there are.
const Vectors = 14

// What Finish may wrap: the code is too long for its own addresses, or an operation is missing here.
var (
	ErrFar  = errors.New("the code is longer than its addresses reach")
	ErrLack = errors.New("arm64 has no code for an operation")
)

// The scratch registers: an address, a number, a source that was in memory, and three more vectors.
const (
	address = 16
	number  = 17
	source  = 28
	tmp0    = 29
	tmp1    = 30
	tmp2    = 31

	zero = 31 // the general register that is 0
)

// reach is how an instruction has the distance to a label.
type reach uint8

const (
	words19 reach = iota // a signed number of words from bit 5 on
	words26              // a signed number of words in the lowest bits
	bytes21              // a signed number of bytes, its two lowest bits in front
)

type fixup struct {
	at    int
	disp  int32
	label x64.Label
	reach reach
}

// Asm collects code. The zero value is ready for use.
type Asm struct {
	buf    []byte
	labels []int // offset of each label, -1 while unknown
	fixups []fixup
	now    inst  // the vector instruction that is written
	err    error // of the first operation that is missing
	added  bool  // the flags are those of an addition, whose carry is not inverted
}

// Use makes an Asm that has no code yet write it to memory that nobody uses any more.
func (a *Asm) Use(memory []byte) { a.buf = memory[:0] }

// Label returns a new label without a place.
func (a *Asm) Label() x64.Label {
	a.labels = append(a.labels, -1)
	return x64.Label(len(a.labels))
}

// Bind gives a label the present place.
func (a *Asm) Bind(l x64.Label) { a.labels[l-1] = len(a.buf) }

// Align fills with zeros up to a multiple of n; it is for data.
func (a *Asm) Align(n int) {
	for len(a.buf)%n != 0 {
		a.buf = append(a.buf, 0)
	}
}

// Data appends bytes that are no code. A multiple of 4 of them is followed by code.
func (a *Asm) Data(b ...byte) { a.buf = append(a.buf, b...) }

// Finish resolves all labels and returns the code. Every label used must be bound.
func (a *Asm) Finish() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	for _, f := range a.fixups {
		to := a.labels[f.label-1]
		if to < 0 {
			panic("a64: a label is used and not bound")
		}
		by := to + int(f.disp) - f.at
		if by < -1<<20 || by >= 1<<20 {
			return nil, ErrFar
		}
		u := uint32(by)
		switch f.reach {
		case words19:
			u = u >> 2 & (1<<19 - 1) << 5
		case words26:
			u = u >> 2 & (1<<26 - 1)
		case bytes21:
			u = u&3<<29 | u>>2&(1<<19-1)<<5
		}
		binary.LittleEndian.PutUint32(a.buf[f.at:], binary.LittleEndian.Uint32(a.buf[f.at:])|u)
	}
	a.fixups = a.fixups[:0]
	return a.buf, nil
}

// lack makes Finish fail.
func (a *Asm) lack(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("%w: "+format, append([]any{ErrLack}, args...)...)
	}
}

func (a *Asm) word(w uint32) { a.buf = binary.LittleEndian.AppendUint32(a.buf, w) }

// far appends an instruction with the distance to a label.
func (a *Asm) far(w uint32, r reach, l x64.Label, disp int32) {
	a.fixups = append(a.fixups, fixup{len(a.buf), disp, l, r})
	a.word(w)
}

// rrr is an instruction with a destination and two sources.
func (a *Asm) rrr(w, d, n, m uint32) { a.word(w | m<<16 | n<<5 | d) }

// rr is an instruction with a destination and a source.
func (a *Asm) rr(w, d, n uint32) { a.word(w | n<<5 | d) }

// place is an address that accesses of up to 32 bytes reach with offsets: base + disp, or that of a
// label plus disp.
type place struct {
	base  uint32
	disp  int32
	label x64.Label
}

// resolve computes an address as far as accesses of size bytes and less can't. It may be in scratch.
func (a *Asm) resolve(m *x64.Mem, size int32) place {
	if m.Label != 0 {
		return place{label: m.Label, disp: m.Disp}
	}
	p := place{base: uint32(m.Base), disp: m.Disp}
	if m.Index != x64.NoReg {
		a.rrr(addReg|logs[m.Scale]<<10, address, p.base, uint32(m.Index))
		p.base = address
	}
	near := p.disp >= -256 && p.disp < 256-32
	whole := p.disp >= 0 && p.disp < 4096-32 && p.disp%size == 0
	if !near && !whole {
		a.addImm(address, p.base, p.disp)
		p.base, p.disp = address, 0
	}
	return p
}

var logs = [9]uint32{1: 0, 2: 1, 4: 2, 8: 3}

// addImm is d = n + imm. It leaves the flags.
func (a *Asm) addImm(d, n uint32, imm int32) {
	op, u := uint32(addImm), uint32(imm)
	if imm < 0 {
		op, u = subImm, uint32(-imm)
	}
	if u >= 1<<24 {
		a.mov(number, int64(imm))
		a.rrr(addReg, d, n, number)
		return
	}
	if hi := u >> 12; hi != 0 {
		a.rr(op|1<<22|hi<<10, d, n)
		if u &= 1<<12 - 1; u == 0 {
			return
		}
		n = d
	}
	a.rr(op|u<<10, d, n)
}

// access appends a load or a store, in the form with an unsigned offset, of size bytes at an offset of a
// place.
func (a *Asm) access(op, r uint32, size int32, p place, off int32) {
	disp := p.disp + off
	if p.label != 0 {
		if op == loadQ {
			a.far(literalQ|r, words19, p.label, disp)
			return
		}
		a.far(adr|address, bytes21, p.label, disp)
		p.base, disp = address, 0
	}
	if disp >= 0 && disp%size == 0 {
		a.rr(op|uint32(disp/size)<<10, r, p.base)
		return
	}
	a.rr(op&^unsignedForm|uint32(disp)&0x1ff<<12, r, p.base)
}

// register returns an address as a register.
func (a *Asm) register(m *x64.Mem) uint32 {
	if m.Label != 0 {
		a.far(adr|address, bytes21, m.Label, m.Disp)
		return address
	}
	p := a.resolve(m, 1)
	if p.disp != 0 {
		a.addImm(address, p.base, p.disp)
		return address
	}
	return p.base
}
