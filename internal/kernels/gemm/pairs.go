package gemm

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
)

// Where the processor multiplies pairs of bfloat16, a panel has two elements that
// follow one another along the depth as one word, of the size of a float32, so that
// loops, panels and plans are those of float32 with half the depth. Results of pairs
// are summed in float32; operands and sums below the normal numbers count as zero.

// pairFunc is a packFunc from rows (or columns) of bfloat16: stride counts those, depth
// counts pairs.
type pairFunc func(dst *float32, width int, src *uint16, stride, n, depth int)

// pairLoops packs words. All are set.
type pairLoops struct {
	// rows packs up to 32 elements that are adjacent across, columns any number of those
	// adjacent along the depth. panels packs elements that are adjacent across into panels
	// of 32 that are width apart, the last filled up with zeros.
	rows, columns, panels pairFunc
	// turn transposes words as packFunc does.
	turn packFunc[float32]
}

// pairsFor returns the kernel that multiplies operands as pairs, or nil.
func (s *state[A]) pairsFor() *kernel[A] {
	if s.a.format != bf16 || s.kernel.pairs == nil || s.b.strided() && s.b.format != bf16 {
		return nil
	}
	return s.kernel.pairs
}

// inPairs has the product computed by pairs if it can be.
func (s *state[A]) inPairs() {
	kn := s.pairsFor()
	if kn == nil {
		return
	}
	s.kernel, s.k = kn, ceil(s.k, 2)
	if s.alongDepth() {
		s.k = s.deep / 2 // what is left over is added in the end
	}
}

// pack writes a panel of an operand of the product, see the function.
func (s *state[A]) pack(w *scratch[A], dst []A, width int, o *anyOperand, across, along, x0, x1, k0, k1 int) {
	if s.kernel.loops == nil {
		pack(s.kernel, w, dst, width, o, across, along, x0, x1, k0, k1)
		return
	}
	n := x1 - x0
	if n == 0 || k1 <= k0 {
		return
	}
	words := unsafe.Slice((*float32)(dataOf(dst)), (k1-k0-1)*width+n)
	whole := min(k1, s.deep/2) - k0
	for k := 0; k < whole; k += packDepth {
		src := (*uint16)(unsafe.Add(o.data, (x0*across+2*(k0+k)*along)*2))
		packPairs(s.kernel.loops, words[k*width:], width, src, across, along, n, min(packDepth, whole-k))
	}
	if k0+whole < k1 { // the last element has no other
		src := unsafe.Slice((*uint16)(unsafe.Add(o.data, (x0*across+(s.deep-1)*along)*2)), (n-1)*across+1)
		for i, to := 0, unsafe.Slice((*uint32)(unsafe.Pointer(&words[whole*width])), n); i < n; i++ {
			to[i] = uint32(src[i*across])
		}
	}
}

func packPairs(l *pairLoops, dst []float32, width int, src *uint16, across, along, n, depth int) {
	switch {
	case across == 1 && n <= 32:
		l.rows(&dst[0], width, src, along, n, depth)
	case along == 1:
		l.columns(&dst[0], width, src, across, n, depth)
	default:
		to := unsafe.Slice((*uint32)(unsafe.Pointer(&dst[0])), len(dst))
		from := unsafe.Slice(src, (n-1)*across+(2*depth-1)*along+1)
		for i := range n {
			for p, at := 0, i*across; p < depth; p++ {
				to[p*width+i] = uint32(from[at]) | uint32(from[at+along])<<16
				at += 2 * along
			}
		}
	}
}

// pairPanels packs columns j0..j1-1 of a right operand whose columns are adjacent:
// panels side by side, or with wideRows rows that are not cut.
func (s *state[A]) pairPanels(dst []A, j0, j1, k0, depth int) {
	l, b, nr := s.kernel.loops, &s.b, s.kernel.nr
	to, n := (*float32)(dataOf(dst)), j1-j0
	row, panel := nr, depth*nr
	if s.plan.wideRows > 0 {
		row, panel = s.plan.wideRows, nr
	}
	whole := min(k0+depth, s.deep/2) - k0
	step := packDepth
	if s.plan.wideRows > 0 {
		step = 1
	}
	for k := 0; k < whole; k += step {
		l.panels((*float32)(unsafe.Add(unsafe.Pointer(to), k*row*4)), panel, (*uint16)(b.at(2*(k0+k), j0, 2)), b.rs, n, min(step, whole-k))
	}
	if whole == depth {
		return
	}
	// The last row has no other.
	last := unsafe.Slice((*uint16)(b.at(s.deep-1, j0, 2)), n)
	for j := 0; j < n; j += nr {
		words := unsafe.Slice((*uint32)(unsafe.Add(unsafe.Pointer(to), (whole*row+j/nr*panel)*4)), nr)
		clear(words)
		for i, v := range last[j:min(j+nr, n)] {
			words[i] = uint32(v)
		}
	}
}

// addLast adds the products of the last elements, which have no others, of a tile
// that is computed by dot products.
func (s *state[A]) addLast(out []A, ldc, r0, r1, j0, j1 int) {
	p := s.deep - 1
	for j := j0; j < j1; j++ {
		y := normal(*(*uint16)(s.b.at(p, j, 2)))
		for r := r0; r < r1; r++ {
			x := normal(*(*uint16)(s.a.at(r, p, 2)))
			out[(r-r0)*ldc+j-j0] += s.alpha * A(x*y)
		}
	}
}

// normal returns a bfloat16 as the loops for pairs read it.
func normal(v uint16) float32 {
	if v&0x7f80 == 0 {
		return 0
	}
	return half.BF16ToF32(v)
}

// Pairs sets word dst[p·dstStride+i], for i < n, to elements (2p, i) and (2p+1, i) of src, of which
// (k, i) is src[k·along+i·across] for k < depth; an odd last one is paired with zeros. One of the
// strides is 1, and n at most 32 where that is across. The processor must be one that multiplies
// pairs.
func Pairs(dst []float32, dstStride int, src []BF16, across, along, n, depth int) {
	if depth <= 0 || n <= 0 {
		return
	}
	whole := depth / 2
	dst, src = dst[:((depth+1)/2-1)*dstStride+n], src[:(depth-1)*along+(n-1)*across+1]
	if whole > 0 {
		packPairs(vectorPairs().loops, dst, dstStride, (*uint16)(unsafe.SliceData(src)), across, along, n, whole)
	}
	if 2*whole < depth {
		for i := range n {
			dst[whole*dstStride+i] = math.Float32frombits(uint32(src[2*whole*along+i*across]))
		}
	}
}
