package gemm

// A few rows times many columns of 16-bit elements is as long as reading these takes, which a pass
// that widens them would double: they are widened on their way into the sums instead.

// narrowTiles is up to how many tiles of dot products, each of which widens its columns, this pays.
const narrowTiles = 2

// readsNarrow has the right operand read where it lies if its elements are of 16 bits and
// there is a kernel for so few rows.
func (s *state[A]) readsNarrow() {
	kn := s.kernel.narrow[s.a.format]
	if kn == nil || !s.b.strided() || s.m > s.n {
		return
	}
	if s.alongDepth() {
		if s.m <= narrowTiles*(len(kn.dots.tiles)-1) {
			s.kernel = kn
		}
		return
	}
	if s.b.cs == 1 && s.m < len(kn.tiles[0]) {
		s.kernel = kn
	}
}
