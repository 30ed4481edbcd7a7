package gemm

import "unsafe"

const (
	// mostSmall is how many multiplications a product has at most that is worth no plan: beside more of them planning costs
	// little, and the operands of more leave the first-level cache.
	mostSmall = 1 << 18
	// mostSmallCols is how many columns it has at most.
	mostSmallCols = 128
)

// Small computes products of one size that Mul would take longer to plan than to compute, tile by tile from where the
// operands are. Its bits are those of Mul.
type Small[A Float] struct {
	kernel               *kernel[A]
	m, n, k, mr          int
	aRow, aK, bRow, bCol int
}

// SmallOf returns how products are computed of m×k matrices, whose element (i, p) is at i·aRow+p·aK, and k×n matrices,
// whose element (p, j) is at p·bRow+j·bCol. It reports false for what Mul does better.
func SmallOf[A Float](m, n, k, aRow, aK, bRow, bCol int) (s Small[A], ok bool) {
	kn := kernelsFor[A]()[0]
	var zero A
	size := int(unsafe.Sizeof(zero))
	switch {
	case m < 1 || n < 1 || k < 1 || min(aRow, aK, bRow, bCol) < 0:
		return s, false
	case n > mostSmallCols || k > depthBytes/size || m > mostSmall/(n*k):
		return s, false
	case !kn.masked && n%kn.nr != 0, kn.deep:
		return s, false
	case kn.dots != nil && aK == 1 && bRow == 1 && min(m, n) <= dotSide && k >= dotLeast: // which adds up in another order
		return s, false
	case bCol == 1 && m > readRows && bRow*size%aliasBytes == 0:
		return s, false
	}
	return Small[A]{kn, m, n, k, balanced(m, kn.mr), aRow, aK, bRow, bCol}, true
}

// Room is how many numbers Right needs room for: none where right operands are read where they are.
func (s *Small[A]) Room() int {
	if s.bCol == 1 {
		return 0
	}
	return s.k * s.n
}

// Right returns a right operand as Mul takes it, b or what it has packed into room.
func (s *Small[A]) Right(b, room []A) []A {
	if s.bCol == 1 {
		return b
	}
	room = room[:s.k*s.n]
	packWide(s.kernel, room, s.n, &b[:(s.k-1)*s.bRow+(s.n-1)*s.bCol+1][0], s.bCol, s.bRow, s.n, s.k)
	return room
}

// Mul sets the m×n matrix c, which is dense, to the product of a and of what Right has returned.
func (s *Small[A]) Mul(c, a, right []A) {
	kn, step := s.kernel, s.bRow
	if s.bCol != 1 {
		step = s.n
	}
	c, a, right = c[:s.m*s.n], a[:(s.m-1)*s.aRow+(s.k-1)*s.aK+1], right[:(s.k-1)*step+s.n]
	for j := 0; j < s.n; j += kn.nr {
		form, cols, b := kn.tiles[0], min(kn.nr, s.n-j), &right[j]
		if cols <= kn.nr/2 && kn.slim() {
			form = kn.tiles[1]
		}
		for r := 0; r < s.m; r += s.mr {
			form[min(s.mr, s.m-r)](s.k, &a[r*s.aRow], s.aRow, s.aK, b, step, &c[r*s.n+j], s.n, cols, 1, flagBelow, b, 0)
		}
	}
}
