package gemm

import "unsafe"

// Where both operands lie along the depth and one side of the result is short,
// packing would cost as much as it saves: each element is the dot product of two
// rows of memory instead, a few rows against four at a time.

const (
	dotCols  = 4
	dotDepth = 16 << 10 // elements of one pass
	// dotSide is up to which rows or columns this pays, dotLeast from which depth.
	dotSide  = 32
	dotLeast = 48
)

// dotFunc sets a tile of c (or adds to it) to alpha times the product of rows of
// a with four rows of memory of b.
type dotFunc[A Float] func(depth int, a *A, aRow int, b *A, bCol int, c *A, ldc int, alpha A, flags int)

// dots is the loops for one element type, by rows.
type dots[A Float] struct {
	tiles []dotFunc[A]
	// lanes is of what the depth must be a multiple; the rest is left to Go.
	lanes int
}

// alongDepth reports whether the product is to be computed by dot products.
func (s *state[A]) alongDepth() bool {
	return s.kernel.dots != nil && s.a.strided() && s.b.strided() && s.a.format == wide && s.b.format == wide &&
		(s.a.cs == 1) && (s.b.rs == 1) && min(s.m, s.n) <= dotSide && s.k >= dotLeast
}

// planDots shares the longer side of the result out.
func (s *state[A]) planDots() {
	p := &s.plan
	p.dot = true
	p.mr = balanced(s.m, len(s.kernel.dots.tiles)-1)
	p.chunk = s.m
	p.tileRows, p.tileCols, p.rowTiles, p.colTiles = s.m, s.n, 1, 1
	if p.threads == 1 {
		return
	}
	pieces := min((s.m*s.n+readCost*(s.m+s.n))*s.k/workGrain+1, p.threads*tilesPerWay)
	if s.m > s.n {
		p.tileRows = roundUp(ceil(s.m, pieces), p.mr)
		p.rowTiles = ceil(s.m, p.tileRows)
		return
	}
	p.tileCols = roundUp(ceil(s.n, pieces), dotCols)
	p.colTiles = ceil(s.n, p.tileCols)
}

// dotTile computes rows r0..r1-1 of columns j0..j1-1.
func (s *state[A]) dotTile(w *scratch[A], r0, r1, j0, j1 int) {
	out, ldc := s.target(w, r0, r1, j0, j1)
	w.edge = grown(w.edge, (len(s.kernel.dots.tiles)-1)*dotCols)
	for k0 := 0; k0 < s.k; k0 += dotDepth {
		flags := 0
		if k0 > 0 || (s.plan.direct && s.post.beta != 0) {
			flags = flagAdd
		}
		depth := min(dotDepth, s.k-k0)
		if r1-r0 > j1-j0 {
			for r := r0; r < r1; r += s.plan.mr {
				s.dotStrip(w, out[(r-r0)*ldc:], ldc, r, min(r+s.plan.mr, r1), j0, j1, k0, depth, flags)
			}
			continue
		}
		for j := j0; j < j1; j += dotCols {
			for r := r0; r < r1; r += s.plan.mr {
				s.dotStrip(w, out[(r-r0)*ldc+j-j0:], ldc, r, min(r+s.plan.mr, r1), j, min(j+dotCols, j1), k0, depth, flags)
			}
		}
	}
	s.finish(w, out, ldc, r0, r1, j0, j1)
}

// dotStrip computes one tile's rows of any columns; out begins at (r0, j0).
func (s *state[A]) dotStrip(w *scratch[A], out []A, ldc, r0, r1, j0, j1, k0, depth, flags int) {
	rows := r1 - r0
	f, whole := s.kernel.dots.tiles[rows], depth/s.kernel.dots.lanes*s.kernel.dots.lanes
	a := (*A)(s.a.at(r0, k0, unsafe.Sizeof(s.alpha)))
	for j := j0; j < j1; j += dotCols {
		cols, c := min(dotCols, j1-j), out[j-j0:]
		b := (*A)(s.b.at(k0, j, unsafe.Sizeof(s.alpha)))
		if cols == dotCols {
			f(whole, a, s.a.rs, b, s.b.cs, &c[0], ldc, s.alpha, flags)
		} else {
			s.dotEdge(w, f, whole, a, b, c, ldc, rows, cols, flags)
		}
		if whole < depth {
			s.dotRest(c, ldc, rows, cols, r0, j, k0+whole, k0+depth)
		}
	}
}

// dotEdge computes fewer than four columns: each of them four times over.
func (s *state[A]) dotEdge(w *scratch[A], f dotFunc[A], depth int, a, b *A, c []A, ldc, rows, cols, flags int) {
	for j := range cols {
		col := (*A)(unsafe.Add(unsafe.Pointer(b), j*s.b.cs*int(unsafe.Sizeof(*b))))
		f(depth, a, s.a.rs, col, 0, &w.edge[0], dotCols, s.alpha, 0)
		for i := range rows {
			if flags&flagAdd != 0 {
				c[i*ldc+j] += w.edge[i*dotCols]
			} else {
				c[i*ldc+j] = w.edge[i*dotCols]
			}
		}
	}
}

// dotRest adds the depth that the loops leave over.
func (s *state[A]) dotRest(c []A, ldc, rows, cols, r0, j0, k0, k1 int) {
	size := unsafe.Sizeof(s.alpha)
	for i := range rows {
		x := unsafe.Slice((*A)(s.a.at(r0+i, k0, size)), k1-k0)
		for j := range cols {
			y := unsafe.Slice((*A)(s.b.at(k0, j0+j, size)), k1-k0)
			var sum A
			for p, v := range x {
				sum += v * y[p]
			}
			c[i*ldc+j] += s.alpha * sum
		}
	}
}
