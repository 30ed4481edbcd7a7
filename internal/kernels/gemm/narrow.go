package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/parallel"
)

// A few rows times many columns of 16-bit elements takes as long as reading these does, and a pass
// that widens them takes longer: they are widened on their way into the sums instead. Weights that are
// packed stay 16 bits wide for that.

const (
	// narrowDots is up to how many tiles of dot products, each of which widens its columns, this pays,
	narrowDots = 2
	// narrowRows up to how many rows of columns that are read where they lie,
	narrowRows = 8
	// and narrowPanels up to how many tiles of those that were packed.
	narrowPanels = 4
)

// readsNarrow has the right operand read as it lies in memory if its elements are of 16 bits and
// there is a kernel for so few rows.
func (s *state[A]) readsNarrow() {
	kn := s.kernel.narrow[s.b.format]
	switch {
	case kn == nil:
	case !s.b.strided():
		if s.m <= narrowPanels*kn.mr {
			s.kernel = kn
		}
	case s.m > s.n:
	case s.alongDepth():
		if s.m <= narrowDots*(len(kn.dots.tiles)-1) {
			s.kernel = kn
		}
	case s.b.cs == 1 && kn.tiles[0] != nil && s.m <= narrowRows && (kn.masked || s.n >= kn.nr):
		s.kernel = kn
	}
}

// packNarrow packs a right operand of 16-bit elements as they are, in panels like those of wide ones,
// or returns nil if there is no kernel that reads these.
func packNarrow(b anyOperand) []uint16 {
	kn := kernels32[0]
	if by := kn.narrow[b.format]; by == nil || by.tiles[0] == nil || kn.pairs != nil && b.format == bf16 {
		return nil
	}
	s := &state[float32]{kernel: kn, n: b.cols, k: b.rows, deep: b.rows, b: b}
	panel := kn.nr * s.k
	dst := make([]uint16, ceil(b.cols, kn.nr)*panel)
	parallel.For(ceil(b.cols, kn.nr), max(1, packGrain/(panel+1)), func(lo, hi int) {
		w, wide := &scratch[float32]{}, make([]float32, panel)
		for u := lo; u < hi && panel > 0; u++ {
			s.packPanels(w, wide, u*kn.nr, min((u+1)*kn.nr, b.cols), 0, s.k)
			narrow(b.format, dataOf(dst[u*panel:]), 1, wide) // what was widened becomes what it was
		}
	})
	return dst
}

// widenPanels is packPanels of an operand that packNarrow has packed.
func (s *state[A]) widenPanels(dst []A, j0, j1, k0, depth int) {
	nr := s.kernel.nr
	for j := j0; j < j1; j += nr {
		widen(s.b.format, dst[(j-j0)*depth:][:nr*depth], unsafe.Add(s.b.packed, (j*s.k+k0*nr)*2), 1)
	}
}
