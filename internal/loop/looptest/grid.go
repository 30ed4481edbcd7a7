package looptest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Grid is the memory of a kernel's operands, twice: for the code that is tested
// and for Eval.
type Grid struct {
	Rows, Cols int
	Data       [2][][]byte
	Frame      [2]loop.Frame
}

// Fill writes an element of an operand.
type Fill = func(r *rand.Rand, arg int, d ir.DType, b []byte)

// NewGrid fills operands with random elements. Rows and columns of all but the
// Free ones are packed, with a gap between rows.
func NewGrid(r *rand.Rand, k *loop.Kernel, rows, cols, spill int, fill Fill) *Grid {
	g := &Grid{Rows: rows, Cols: cols}
	for i, a := range k.Args {
		if k.Indexes(i) {
			fill = indices(fill, i)
		}
		size := a.DType.Size()
		col := size
		switch a.Cols {
		case loop.Fixed:
			col = 0
		case loop.Free:
			col = 3 * size
		}
		row := max(col*cols, size) + 2*size
		steps, step := 0, 0
		if a.By > 0 {
			steps, step = Steps, 7*size
		}
		data := make([]byte, row*rows+size*64+steps*step)
		for at := 0; at < len(data); at += size {
			fill(r, i, a.DType, data[at:])
		}
		for side := range g.Data {
			own := append([]byte{}, data...)
			g.Data[side] = append(g.Data[side], own)
			g.Frame[side].Ptr[i] = unsafe.Pointer(&own[0])
			g.Frame[side].Row[i], g.Frame[side].Col[i] = row, col
			g.Frame[side].Size[i], g.Frame[side].Step[i] = steps, step
		}
	}
	for side := range g.Frame {
		g.Frame[side].Rows, g.Frame[side].Cols = rows, cols
		g.Frame[side].First = 5
		g.Frame[side].Spill = Aligned(spill)
	}
	return g
}

// Steps is how many steps operands with an index have.
const Steps = 5

// indices is fill, but for an operand that is an index.
func indices(fill Fill, index int) Fill {
	return func(r *rand.Rand, arg int, d ir.DType, b []byte) {
		if arg != index {
			fill(r, arg, d, b)
			return
		}
		*(*int64)(unsafe.Pointer(&b[0])) = r.Int64N(Steps)
	}
}

// Compare returns how the memory of both sides differs by more than some units in
// the last place; nothing if it does not.
func (g *Grid) Compare(k *loop.Kernel, ulps float64) string {
	for i, a := range k.Args {
		size := a.DType.Size()
		for at := 0; at+size <= len(g.Data[0][i]); at += size {
			got, want := g.Data[0][i][at:at+size], g.Data[1][i][at:at+size]
			if why := Differ(a.DType, got, want, ulps); why != "" {
				return fmt.Sprintf("%d×%d, operand %d, element %d (row of %d): %s\n%v", g.Rows, g.Cols, i, at/size, g.Frame[0].Row[i]/size, why, k)
			}
		}
	}
	return ""
}

// Aligned returns memory at a multiple of 64 bytes.
func Aligned(n int) unsafe.Pointer {
	b := make([]byte, n+64)
	at := uintptr(unsafe.Pointer(&b[0]))
	return unsafe.Pointer(&b[(64-at%64)%64])
}

// Elements writes interesting random elements.
func Elements(r *rand.Rand, _ int, d ir.DType, b []byte) {
	special := r.IntN(12)
	switch d {
	case ir.Bool:
		b[0] = byte(r.IntN(2))
	case ir.U8, ir.I8:
		b[0] = byte(r.Uint32())
		if special == 0 {
			b[0] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
		}
	case ir.I16:
		*(*int16)(unsafe.Pointer(&b[0])) = int16(r.Uint32()) >> r.IntN(15)
	case ir.I32:
		*(*int32)(unsafe.Pointer(&b[0])) = int32(r.Uint32()) >> r.IntN(31)
	case ir.I64:
		*(*int64)(unsafe.Pointer(&b[0])) = int64(r.Uint64()) >> r.IntN(63)
	default:
		setFloat(d, b, float(r, special))
	}
}

// Moderate writes elements whose sums and products stay finite.
func Moderate(r *rand.Rand, arg int, d ir.DType, b []byte) {
	if d == ir.F32 || d == ir.F64 {
		setFloat(d, b, 0.5+r.Float64())
		return
	}
	Elements(r, arg, d, b)
}

func setFloat(d ir.DType, b []byte, x float64) {
	switch d {
	case ir.F8E4M3FN:
		b[0] = half.F64ToE4M3(x)
	case ir.F8E5M2:
		b[0] = half.F64ToE5M2(x)
	case ir.F16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F64ToF16(x)
	case ir.BF16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F64ToBF16(x)
	case ir.F32:
		*(*float32)(unsafe.Pointer(&b[0])) = float32(x)
	case ir.F64:
		*(*float64)(unsafe.Pointer(&b[0])) = x
	}
}

var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2.5, 1.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-42, 3e38, -3e38, 2147483648, 1e10, -1e19, 300, 87.5, -104}

func float(r *rand.Rand, special int) float64 {
	if special == 0 {
		return specials[r.IntN(len(specials))]
	}
	x := r.NormFloat64()
	if special < 4 {
		x *= 50
	}
	return x
}

// Differ tells how two elements differ by more than some units in the last place.
func Differ(d ir.DType, got, want []byte, ulps float64) string {
	if string(got) == string(want) {
		return ""
	}
	var x, y, unit float64
	switch d {
	case ir.F32:
		p, q := *(*float32)(unsafe.Pointer(&got[0])), *(*float32)(unsafe.Pointer(&want[0]))
		x, y = float64(p), float64(q)
		a := float32(math.Abs(y))
		unit = float64(math.Nextafter32(a, float32(math.Inf(1))) - a)
		if a == math.MaxFloat32 {
			unit = 0x1p104
		}
	case ir.F64:
		x, y = *(*float64)(unsafe.Pointer(&got[0])), *(*float64)(unsafe.Pointer(&want[0]))
		unit = math.Nextafter(math.Abs(y), math.Inf(1)) - math.Abs(y)
	case ir.F16:
		x, y = float64(half.F16ToF32(*(*uint16)(unsafe.Pointer(&got[0])))), float64(half.F16ToF32(*(*uint16)(unsafe.Pointer(&want[0]))))
		unit = math.Max(math.Abs(y)*0x1p-10, 0x1p-24)
	case ir.F8E4M3FN:
		x, y = float64(half.E4M3ToF32(got[0])), float64(half.E4M3ToF32(want[0]))
		unit = math.Max(math.Abs(y)*0x1p-3, 0x1p-9)
	case ir.F8E5M2:
		x, y = float64(half.E5M2ToF32(got[0])), float64(half.E5M2ToF32(want[0]))
		unit = math.Max(math.Abs(y)*0x1p-2, 0x1p-16)
	case ir.BF16:
		x, y = float64(half.BF16ToF32(*(*uint16)(unsafe.Pointer(&got[0])))), float64(half.BF16ToF32(*(*uint16)(unsafe.Pointer(&want[0]))))
		unit = math.Abs(y) * 0x1p-7
	default:
		return fmt.Sprintf("%x, want %x", got, want)
	}
	if (math.IsNaN(x) && math.IsNaN(y)) || math.Abs(x-y) <= ulps*unit && math.Signbit(x) == math.Signbit(y) {
		return ""
	}
	return fmt.Sprintf("%v, want %v, %.3g units", x, y, math.Abs(x-y)/unit)
}
