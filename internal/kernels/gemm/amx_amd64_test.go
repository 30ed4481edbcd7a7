//go:build amd64 && !noasm

package gemm

import (
	enc "encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
)

// TestAMXLoop interprets the machine code of amxBF16, as few processors have AMX, and holds what it
// computes against the definition. Nothing but the operands may be read, nor but the result be written.
func TestAMXLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	words := func(n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			x := func() uint32 {
				if rng.IntN(40) == 0 {
					return uint32(rng.IntN(0x80)) // subnormal
				}
				return uint32(half.F32ToBF16(float32(rng.IntN(31) - 15)))
			}
			w[i] = math.Float32frombits(x() | x()<<16)
		}
		return w
	}
	for _, rows := range []int{1, 3, 15, 16, 17, 31, 32} {
		for _, cols := range []int{1, 14, 16, 18, 32} {
			for _, depth := range []int{1, 9, 15, 16, 17, 32, 47} {
				aRow, bK, ldc := depth+rng.IntN(3), cols+rng.IntN(20), cols+rng.IntN(5)
				a, b := words((rows-1)*aRow+depth), words((depth-1)*bK+cols)
				c := make([]float32, (rows-1)*ldc+cols)
				for i := range c {
					c[i] = float32(i % 9)
				}
				want := append([]float32(nil), c...)
				add := rng.IntN(2) == 0
				scalarTile(rows, depth, &a[0], aRow, &b[0], bK, &want[0], ldc, cols, add)
				if err := interpretTile(rows, depth, a, aRow, b, bK, c, ldc, cols, add); err != nil {
					t.Fatalf("%d×%d×%d: %v", rows, depth, cols, err)
				}
				for i, v := range c {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("%d×%d×%d, add %v: element %d is %v, want %v", rows, depth, cols, add, i, v, want[i])
					}
				}
			}
		}
	}
}

// interpretTile is amxTile by an interpreter.
func interpretTile(rows, depth int, a []float32, aRow int, b []float32, bK int, c []float32, ldc, cols int, add bool) error {
	p := newProduct(rows, depth, &a[0], aRow, &b[0], bK, &c[0], ldc, cols, add)
	m := &amxMachine{code: amxCode()}
	stack := make([]uint64, 2) // a return address and the argument
	stack[1] = uint64(uintptr(unsafe.Pointer(&p)))
	m.memory = []amxMemory{
		memoryOf(stack, false), memoryOf(unsafe.Slice((*uint64)(unsafe.Pointer(&p)), unsafe.Sizeof(p)/8), true),
		memoryOf(a, false), memoryOf(b, false), memoryOf(c, true),
	}
	m.regs[4] = uint64(m.memory[0].at)
	return m.run()
}

// amxCode returns the code of amxBF16. The function value is that of a wrapper that calls it.
func amxCode() []byte {
	f := amxBF16
	code := **(**unsafe.Pointer)(unsafe.Pointer(&f))
	wrapper := unsafe.Slice((*byte)(code), 64)
	for i, b := range wrapper {
		if b == 0xe8 {
			to := i + 5 + int(int32(enc.LittleEndian.Uint32(wrapper[i+1:])))
			return unsafe.Slice((*byte)(unsafe.Add(code, to)), 1024)
		}
	}
	panic("no call")
}

// amxMemory is memory that the code may use.
type amxMemory struct {
	at       uintptr
	bytes    []byte
	writable bool
}

func memoryOf[T any](s []T, writable bool) amxMemory {
	first := unsafe.Pointer(unsafe.SliceData(s))
	return amxMemory{uintptr(first), unsafe.Slice((*byte)(first), len(s)*int(unsafe.Sizeof(s[0]))), writable}
}

// amxMachine is a processor with the instructions that amxBF16 is written in.
type amxMachine struct {
	code   []byte
	at     int // of the next byte
	regs   [16]uint64
	zero   bool
	shapes tileShapes
	tiles  [8][16][16]uint32
	memory []amxMemory
	fault  error
}

// span returns n bytes of memory, or bytes of no consequence after a fault.
func (m *amxMachine) span(at uint64, n int, write bool) []byte {
	for _, r := range m.memory {
		if off := int(uintptr(at) - r.at); uintptr(at) >= r.at && off+n <= len(r.bytes) && (r.writable || !write) {
			return r.bytes[off : off+n]
		}
	}
	m.stop("access to %d bytes at %#x", n, at)
	return make([]byte, n)
}

func (m *amxMachine) stop(format string, args ...any) {
	if m.fault == nil {
		m.fault = fmt.Errorf("at %d: %s", m.at, fmt.Sprintf(format, args...))
	}
}

func (m *amxMachine) next() byte {
	m.at++
	return m.code[m.at-1]
}

func (m *amxMachine) next32() uint64 {
	m.at += 4
	return uint64(int64(int32(enc.LittleEndian.Uint32(m.code[m.at-4:]))))
}

// operand reads a ModRM byte and what follows it: a register, or an address in memory, or those of
// the rows of a tile.
func (m *amxMachine) operand(rBit, xBit, bBit byte) (reg, rm int, address, stride uint64) {
	b := m.next()
	mod := b >> 6
	reg, rm = int(b>>3&7|rBit<<3), int(b&7|bBit<<3)
	if mod == 3 {
		return reg, rm, 0, 0
	}
	if b&7 == 4 {
		sib := m.next()
		rm = int(sib&7 | bBit<<3)
		if index := int(sib>>3&7 | xBit<<3); index != 4 {
			stride = m.regs[index] << (sib >> 6)
		}
	}
	address = m.regs[rm]
	switch {
	case mod == 1:
		address += uint64(int64(int8(m.next())))
	case mod == 2:
		address += m.next32()
	case b&7 == 5, rm&7 == 5:
		m.stop("an address without a base")
	}
	return reg, -1, address, stride
}

func (m *amxMachine) run() error {
	for range 100000 {
		if m.fault != nil {
			return m.fault
		}
		switch b := m.next(); {
		case b == 0xc3:
			if m.shapes != (tileShapes{}) {
				m.stop("tiles are left behind")
			}
			return m.fault
		case b == 0xc4:
			m.tileInstruction()
		case b&0xf8 == 0x48:
			m.plain(b>>2&1, b>>1&1, b&1)
		case b == 0x74, b == 0x75, b == 0xeb:
			to := int(int8(m.next()))
			m.jump(b == 0xeb || m.zero == (b == 0x74), to)
		case b == 0xe9:
			m.jump(true, int(int64(m.next32())))
		case b == 0x0f:
			b = m.next()
			if b != 0x84 && b != 0x85 {
				m.stop("opcode 0f %x", b)
			}
			m.jump(m.zero == (b == 0x84), int(int64(m.next32())))
		default:
			m.stop("opcode %x", b)
		}
	}
	return fmt.Errorf("no end")
}

func (m *amxMachine) jump(taken bool, by int) {
	if taken {
		m.at += by
	}
}

// plain does an instruction on 64-bit registers.
func (m *amxMachine) plain(rBit, xBit, bBit byte) {
	op := m.next()
	reg, rm, address, _ := m.operand(rBit, xBit, bBit)
	get := func() uint64 {
		if rm >= 0 {
			return m.regs[rm]
		}
		return enc.LittleEndian.Uint64(m.span(address, 8, false))
	}
	set := func(v uint64) {
		if rm >= 0 {
			m.regs[rm] = v
			return
		}
		enc.LittleEndian.PutUint64(m.span(address, 8, true), v)
	}
	result := func(v uint64) { m.zero = v == 0; set(v) }
	switch op {
	case 0x8b:
		m.regs[reg] = get()
	case 0x89:
		set(m.regs[reg])
	case 0x8d:
		m.regs[reg] = address
	case 0x01:
		result(get() + m.regs[reg])
	case 0x85:
		m.zero = get()&m.regs[reg] == 0
	case 0xc7:
		set(m.next32())
	case 0xc1:
		result(get() << m.next())
	case 0xff:
		result(get() - 1)
	case 0x83:
		v := uint64(int64(int8(m.next())))
		if reg&7 == 7 {
			m.zero = get() == v
			return
		}
		result(get() + v)
	default:
		m.stop("opcode %x", op)
	}
	if want, ok := map[byte]int{0xc7: 0, 0xc1: 4, 0xff: 1}[op]; ok && reg&7 != want || op == 0x83 && reg&7 != 0 {
		m.stop("opcode %x /%d", op, reg&7)
	}
}

// tileInstruction does one of AMX (Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 2).
func (m *amxMachine) tileInstruction() {
	p0, p1, op := m.next(), m.next(), m.next()
	y := int(^p1 >> 3 & 15)
	tile, rm, address, stride := m.operand(^p0>>7&1, ^p0>>6&1, ^p0>>5&1)
	if p0&31 != 2 || p1&0x84 != 0 {
		m.stop("prefix %x %x", p0, p1)
		return
	}
	switch form := [2]byte{op, p1 & 3}; {
	case form == [2]byte{0x49, 0} && rm == 0:
		m.shapes, m.tiles = tileShapes{}, [8][16][16]uint32{}
	case form == [2]byte{0x49, 0} && rm < 0:
		m.configure(m.span(address, 64, false))
	case form == [2]byte{0x49, 3} && rm == 0:
		m.rows(tile)
		m.tiles[tile] = [16][16]uint32{}
	case form == [2]byte{0x4b, 3} && rm < 0:
		m.tiles[tile] = [16][16]uint32{}
		for i := range m.rows(tile) {
			for j, from := 0, m.span(address+uint64(i)*stride, m.bytes(tile), false); j < len(from)/4; j++ {
				m.tiles[tile][i][j] = enc.LittleEndian.Uint32(from[4*j:])
			}
		}
	case form == [2]byte{0x4b, 2} && rm < 0:
		for i := range m.rows(tile) {
			for j, to := 0, m.span(address+uint64(i)*stride, m.bytes(tile), true); j < len(to)/4; j++ {
				enc.LittleEndian.PutUint32(to[4*j:], m.tiles[tile][i][j])
			}
		}
	case form == [2]byte{0x5c, 2} && rm >= 0:
		m.multiply(tile, rm, y)
	default:
		m.stop("AMX opcode %x, prefix %x %x", op, p0, p1)
	}
}

func (m *amxMachine) configure(b []byte) {
	m.shapes, m.tiles = tileShapes{palette: b[0], startRow: b[1]}, [8][16][16]uint32{}
	for i := range 16 {
		m.shapes.rowBytes[i], m.shapes.rows[i] = enc.LittleEndian.Uint16(b[16+2*i:]), b[48+i]
		if r, n := m.shapes.rows[i], m.shapes.rowBytes[i]; r > 16 || n > 64 || n%4 != 0 || (r == 0) != (n == 0) || i >= 8 && r != 0 {
			m.stop("tile %d of %d rows of %d bytes", i, r, n)
		}
	}
	if b[0] != 1 || b[1] != 0 {
		m.stop("palette %d, row %d", b[0], b[1])
	}
}

// rows returns the rows of a tile that must be configured.
func (m *amxMachine) rows(tile int) int {
	if tile >= 8 || m.shapes.rows[tile] == 0 {
		m.stop("tile %d is not configured", tile)
		return 0
	}
	return int(m.shapes.rows[tile])
}

func (m *amxMachine) bytes(tile int) int { return int(m.shapes.rowBytes[tile]) }

// multiply is TDPBF16PS c, a, b.
func (m *amxMachine) multiply(c, a, b int) {
	rows, depth := m.rows(c), m.rows(b)
	if m.rows(a) != rows || m.bytes(a) != 4*depth || m.bytes(b) != m.bytes(c) || c == a || a == b || b == c {
		m.stop("tiles %d, %d and %d do not fit", c, a, b)
		return
	}
	for i := range rows {
		for j := range m.bytes(c) / 4 {
			var even, odd float32
			for p := range depth {
				x, y := m.tiles[a][i][p], m.tiles[b][p][j]
				even += normal(uint16(x)) * normal(uint16(y))
				odd += normal(uint16(x>>16)) * normal(uint16(y>>16))
			}
			sum := math.Float32frombits(m.tiles[c][i][j]) + (even + odd)
			m.tiles[c][i][j] = math.Float32bits(sum)
		}
	}
}
