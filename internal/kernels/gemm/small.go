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
	width                int // of a right operand that is packed
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
	case kn.deep:
		return s, false
	case kn.dots != nil && aK == 1 && bRow == 1 && min(m, n) <= dotSide && k >= dotLeast: // which adds up in another order
		return s, false
	case bCol == 1 && m > readRows && bRow*size%aliasBytes == 0:
		return s, false
	}
	s = Small[A]{kn, m, n, k, balanced(m, kn.mr), n, aRow, aK, bRow, bCol}
	if !kn.masked {
		s.width = roundUp(n, kn.nr)
	}
	return s, true
}

// packed is how many numbers Right may need room for.
func (s *Small[A]) packed() int {
	if s.bCol == 1 && s.kernel.masked {
		return 0
	}
	return s.k * s.width
}

// Room is how many numbers Right and Mul need room for: a right operand that is not read where it is, and a tile at the
// edge where those are not masked.
func (s *Small[A]) Room() int {
	if s.kernel.masked || s.n%s.kernel.nr == 0 {
		return s.packed()
	}
	return s.packed() + s.mr*s.kernel.nr
}

// Right returns a right operand as Mul takes it, and how far apart its rows are: b, or what it has packed into room.
// Without masks rows are read to the end of a panel, which must not be behind the end of b.
func (s *Small[A]) Right(b, room []A) (right []A, step int) {
	if s.bCol == 1 && (s.kernel.masked || s.n >= s.kernel.nr || len(b) >= (s.k-1)*s.bRow+s.kernel.nr) {
		return b, s.bRow
	}
	room = room[:s.packed()]
	if s.width > s.n {
		clear(room)
	}
	src := b[:(s.k-1)*s.bRow+(s.n-1)*s.bCol+1]
	for j := 0; j < s.n; j += s.kernel.nr {
		packWide(s.kernel, room[j:], s.width, &src[j*s.bCol], s.bCol, s.bRow, min(s.kernel.nr, s.n-j), s.k)
	}
	return room, s.width
}

// Mul sets the m×n matrix c, which is dense, to the product of a and of what Right has returned. It uses the room, too, and
// what c has behind the matrix.
func (s *Small[A]) Mul(c, a, right []A, step int, room []A) {
	kn := s.kernel
	a, right = a[:(s.m-1)*s.aRow+(s.k-1)*s.aK+1], right[:(s.k-1)*step+s.n]
	for j := 0; j < s.n; j += kn.nr {
		form, cols := kn.tiles[0], min(kn.nr, s.n-j)
		if cols <= kn.nr/2 && kn.slim() {
			form = kn.tiles[1]
		}
		// The rows of a single panel overwrite what those before them have too much.
		if !kn.masked && cols < kn.nr && (j > 0 || len(c) < s.m*s.n+kn.nr-s.n) {
			s.edge(c, a, right, step, j, room[s.packed():])
			return
		}
		for r := 0; r < s.m; r += s.mr {
			form[min(s.mr, s.m-r)](s.k, &a[r*s.aRow], s.aRow, s.aK, &right[j], step, &c[r*s.n+j], s.n, cols, 1, flagBelow, &right[j], 0)
		}
	}
}

// edge computes the columns from j on, fewer than a panel has, with those before them if there are any.
func (s *Small[A]) edge(c, a, right []A, step, j int, room []A) {
	kn, cols, skip := s.kernel, s.n-j, 0
	if j > 0 {
		skip = kn.nr - cols
	}
	for r := 0; r < s.m; r += s.mr {
		kn.edge(room, skip, s.k, &a[r*s.aRow], s.aRow, s.aK, &right[j-skip], step, c[r*s.n+j:], s.n, min(s.mr, s.m-r), cols, 1, 0)
	}
}
