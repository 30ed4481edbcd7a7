package gemm

import "unsafe"

// Where both operands lie along the depth and one side of the result is short,
// packing would cost as much as it saves: each element is the dot product of two
// rows of memory instead, a few rows against four at a time.

const (
	dotCols   = 4
	dotDepth  = 16 << 10 // elements of one pass
	dotNarrow = 1 << 10  // the same of 16-bit elements, which are widened first
	// dotSide is up to which rows or columns this pays, dotLeast from which depth.
	dotSide  = 32
	dotLeast = 48
)

// dotFunc sets a tile of c (or adds to it) to alpha times the product of rows of
// a with four rows of memory of b; aRow and bCol are bytes.
type dotFunc[A Float] func(depth int, a *A, aRow int, b *A, bCol int, c *A, ldc int, alpha A, flags int)

// dots is the loops for one element type, by rows.
type dots[A Float] struct {
	tiles []dotFunc[A]
	// single is for one row and one column; nil if there is no better one than four times the same column.
	single dotFunc[A]
	// lanes is of what the depth must be a multiple; the rest is left to Go.
	lanes int
}

// alongDepth reports whether the product is to be computed by dot products.
func (s *state[A]) alongDepth() bool {
	return s.kernel.dots != nil && s.b.strided() && s.a.cs == 1 && s.b.rs == 1 &&
		min(s.m, s.n) <= dotSide && s.deep >= dotLeast
}

// planDots shares the longer side of the result out.
func (s *state[A]) planDots() {
	p := &s.plan
	p.dot = true
	p.mr = balanced(s.m, len(s.kernel.dots.tiles)-1)
	p.depth = dotDepth
	long := &s.b
	if s.m > s.n {
		long = &s.a
	}
	if s.widensLong(long) {
		p.depth = dotNarrow
	}
	p.chunk = s.m
	p.tileRows, p.tileCols, p.rowTiles, p.colTiles = s.m, s.n, 1, 1
	if p.threads == 1 {
		return
	}
	pieces := max(min((s.m*s.n+readCost*(s.m+s.n))*s.k/workGrain, p.threads*tilesPerWay), 1)
	if s.m > s.n {
		p.tileRows = roundUp(ceil(s.m, pieces), p.mr)
		p.rowTiles = ceil(s.m, p.tileRows)
		return
	}
	p.tileCols = roundUp(ceil(s.n, pieces), dotCols)
	p.colTiles = ceil(s.n, p.tileCols)
}

// rows are adjacent elements along the depth, or words of two, stride bytes apart.
type rows[A Float] struct {
	first  *A
	stride int
}

func (r rows[A]) at(i int) *A {
	return (*A)(unsafe.Add(unsafe.Pointer(r.first), i*r.stride))
}

// widens reports whether an operand is made wide before it is multiplied.
func (s *state[A]) widens(o *anyOperand) bool { return o.format != wide && s.kernel.loops == nil }

// widensLong reports whether the longer operand is.
func (s *state[A]) widensLong(o *anyOperand) bool { return s.widens(o) && s.kernel.stored == wide }

// widenShort makes the shorter operand of 16-bit elements wide, as dense rows.
func (s *state[A]) widenShort() {
	o, n := s.a, s.m
	if s.m > s.n {
		o, n = s.b.transposed(), s.n
	}
	if !s.widens(&o) {
		return
	}
	s.aBuf = grown(s.aBuf, n*s.k)
	for i := range n {
		widen(o.format, s.aBuf[i*s.k:][:s.k], o.at(i, 0, 2), 1)
	}
}

// short returns rows x0.. of the shorter operand from depth k0, long rows x0..x1-1
// of the other one; both rows of the left operand or columns of the right one.
func (s *state[A]) short(o *anyOperand, x0, k0 int) rows[A] {
	size := int(unsafe.Sizeof(s.alpha))
	if s.widens(o) {
		return rows[A]{&s.aBuf[x0*s.k+k0], s.k * size}
	}
	if s.kernel.loops != nil {
		return rows[A]{(*A)(o.at(x0, 2*k0, 2)), o.rs * 2}
	}
	return rows[A]{(*A)(o.at(x0, k0, uintptr(size))), o.rs * size}
}

func (s *state[A]) long(w *scratch[A], o *anyOperand, x0, x1, k0, depth int) rows[A] {
	if s.kernel.stored != wide {
		return rows[A]{(*A)(o.at(x0, k0, 2)), o.rs * 2}
	}
	if !s.widens(o) {
		return s.short(o, x0, k0)
	}
	w.wide = grown(w.wide, (x1-x0)*depth)
	for i := range x1 - x0 {
		widen(o.format, w.wide[i*depth:][:depth], o.at(x0+i, k0, 2), 1)
	}
	return rows[A]{&w.wide[0], depth * int(unsafe.Sizeof(s.alpha))}
}

// dotTile computes rows r0..r1-1 of columns j0..j1-1: each part of the longer
// operand with all of the shorter one.
func (s *state[A]) dotTile(w *scratch[A], r0, r1, j0, j1 int) {
	out, ldc := s.target(w, r0, r1, j0, j1)
	if s.plan.biased {
		s.biasRows(out, ldc, r1-r0, j0, j1-j0)
	}
	w.edge = grown(w.edge, (len(s.kernel.dots.tiles)-1)*dotCols)
	bt, mr := s.b.transposed(), s.plan.mr
	// Rows of the longer operand are read from end to end, as memory is fastest.
	from, to, step := j0, j1, dotCols
	if s.m > s.n {
		from, to, step = r0, r1, mr
	} else if r1-r0 <= mr && s.k <= s.plan.depth && s.k%s.kernel.dots.lanes == 0 && !s.widensLong(&bt) {
		from += s.dotColumns(w, out, ldc, r0, r1-r0, j0, j1)
	}
	for x := from; x < to; x += step {
		xe := min(x+step, to)
		for k0 := 0; k0 < s.k; k0 += s.plan.depth {
			depth := min(s.plan.depth, s.k-k0)
			flags := s.dotFlags(k0)
			if s.m > s.n {
				a := s.long(w, &s.a, x, xe, k0, depth)
				for j := j0; j < j1; j += dotCols {
					s.dot(w, a, s.short(&bt, j, k0), out[(x-r0)*ldc+j-j0:], ldc, xe-x, min(dotCols, j1-j), j, depth, flags)
				}
				continue
			}
			b := s.long(w, &bt, x, xe, k0, depth)
			for r := r0; r < r1; r += mr {
				s.dot(w, s.short(&s.a, r, k0), b, out[(r-r0)*ldc+x-j0:], ldc, min(mr, r1-r), xe-x, 0, depth, flags)
			}
		}
	}
	if s.kernel.loops != nil && s.deep%2 != 0 {
		s.addLast(out, ldc, r0, r1, j0, j1)
	}
	s.finish(w, out, ldc, r0, r1, j0, j1)
}

// dotColumns computes rows of whole tiles of columns, and returns how many columns these are.
func (s *state[A]) dotColumns(w *scratch[A], out []A, ldc, r0, rows, j0, j1 int) int {
	flags, whole := s.dotFlags(0), (j1-j0)/dotCols*dotCols
	bt := s.b.transposed()
	f, a, b := s.kernel.dots.tiles[rows], s.short(&s.a, r0, 0), s.long(w, &bt, j0, j1, 0, s.k)
	for j := 0; j < whole; j += dotCols {
		f(s.k, a.first, a.stride, b.at(j), b.stride, &out[j], ldc, s.alpha, flags)
	}
	return whole
}

// dotFlags returns the flags of a pass from depth k0 on.
func (s *state[A]) dotFlags(k0 int) int {
	if k0 > 0 || s.plan.adds(s.post.beta != 0) {
		return flagAdd
	}
	return 0
}

// dot computes one tile. Before the columns of b there are back more in memory.
func (s *state[A]) dot(w *scratch[A], a, b rows[A], c []A, ldc, rows, cols, back, depth, flags int) {
	d := s.kernel.dots
	f, whole := d.tiles[rows], depth/d.lanes*d.lanes
	if cols == dotCols {
		f(whole, a.first, a.stride, b.first, b.stride, &c[0], ldc, s.alpha, flags)
	} else {
		s.dotEdge(w, f, a, b, c, ldc, rows, cols, back, whole, flags)
	}
	if whole < depth {
		s.dotRest(w, a, b, c, ldc, rows, cols, whole, depth)
	}
}

// dotEdge computes fewer than four columns: with those before them again, of
// which there are back, or else each of them by itself.
func (s *state[A]) dotEdge(w *scratch[A], f dotFunc[A], a, b rows[A], c []A, ldc, rows, cols, back, depth, flags int) {
	calls, step, skip, start := 1, b.stride, dotCols-cols, cols-dotCols
	if single := s.kernel.dots.single; back < skip && rows == 1 && single != nil {
		for j := range cols {
			single(depth, a.first, a.stride, b.at(j), step, &c[j], ldc, s.alpha, flags)
		}
		return
	}
	if back < skip {
		calls, step, skip, start = cols, 0, 0, 0
	}
	for j := range calls {
		first := b.at(start + j)
		f(depth, a.first, a.stride, first, step, &w.edge[0], dotCols, s.alpha, 0)
		for i := range rows {
			from, to := w.edge[i*dotCols+skip:][:cols/calls], c[i*ldc+j:]
			for q, v := range from {
				if flags&flagAdd != 0 {
					v += to[q]
				}
				to[q] = v
			}
		}
	}
}

// dotRest adds the depth that the loops leave over.
func (s *state[A]) dotRest(w *scratch[A], a, b rows[A], c []A, ldc, rows, cols, k0, k1 int) {
	for i := range rows {
		x := unsafe.Slice(a.at(i), k1)[k0:]
		for j := range cols {
			var y []A
			if s.kernel.stored == wide {
				y = unsafe.Slice(b.at(j), k1)[k0:]
			} else { // which are not in w.wide
				w.wide = grown(w.wide, k1-k0)
				y = w.wide
				widen(s.kernel.stored, y, unsafe.Add(unsafe.Pointer(b.at(j)), 2*k0), 1)
			}
			var sum A
			for p, v := range x {
				sum += v * y[p]
			}
			c[i*ldc+j] += s.alpha * sum
		}
	}
}
