package gemm

import "unsafe"

// Sizes in bytes that the blocking aims at. A panel of each operand (depth times
// the tile's sides) shares the first-level cache, a block of packed columns and
// one of packed rows the second-level one.
const (
	depthBytes = 2048 // of one element's row of a panel: 512 float32
	wideDepth  = 96   // of one pass over 16-bit columns that are not cut into panels
	colBytes   = 512 << 10
	rowBytes   = 768 << 10
	chunkBytes = 16 << 20 // of the left operand, packed before
	// Where the depth is small most of the memory is that of the result, whose rows are finished before the next.
	shallow     = 64
	resultBytes = 256 << 10
	// The same of a product whose left operand is packed by block: a panel of it
	// and one of the right operand, which is all packed before, flow through the
	// first-level cache, a block of it stays in the second-level one.
	flowDepth   = 1536
	flowBytes   = 512 << 10
	flowRows    = 320      // from which on a right operand is worth that
	packDepth   = 512      // of one call of the packing loops
	packGrain   = 32 << 10 // elements that are worth a goroutine to pack
	workGrain   = 1 << 20  // multiplications that are worth a goroutine
	readCost    = 16       // multiplications in the time that reading an element from memory takes
	tilesPerWay = 4        // tiles of the result for each goroutine
	gradePanels = 4        // of a left operand that make a graded tile, at least

	// Up to these sizes of the other side an operand is read where it is: always;
	// if its rows do not fall on the same lines of the cache; and the latter only
	// if it is not big.
	readRows, readMoreRows, readMostRows = 42, 70, 140
	readCols, readMoreCols               = 64, 512
	bigBytes                             = 4 << 20
	// From this size on products by an operand that was packed before take less time than those that
	// read it, whose rows lie in as many pages and compete for places of the cache.
	packedBytes = 1 << 20
	// A big right operand that a few rows meet is read once, from memory: some
	// rows of it at a time from end to end.
	streamRows, streamDepth = 4, 32
	streamBytes             = 64 << 10
	// aliasBytes is a distance in memory at which lines compete for the same few
	// places of the first-level cache.
	aliasBytes = 2048
)

// plan is how a product is cut up.
type plan struct {
	mr    int // rows of a tile: at most the kernel's, all nearly equal
	depth int // of one pass
	// packA and packB say that the operand is packed before the product; else it
	// is packed already, read where it is, or, with packCols, packed by block.
	packA, packB, packCols bool
	packRows               bool // the left operand is packed by block
	graded                 bool // and the tiles are grades of each goroutine's rows
	// wideRows is the length of the rows in which a block of 16-bit columns is
	// widened without being cut into panels; zero if it is cut.
	wideRows             int
	direct               bool // results go straight to c
	biased               bool // whose tiles start as the columns' bias
	dot                  bool // by dot products
	chunk                int  // rows at a time
	threads              int
	rowTiles, colTiles   int
	tileRows, tileCols   int // multiples of mr and nr
	blockRows, blockCols int // within a tile; multiples of mr and nr

	row0, rows int // of the current chunk
	units      int // panels of its left operand to pack
}

func (s *state[A]) makePlan(threads int) {
	kn, p := s.kernel, &s.plan
	*p = plan{threads: threads}
	var zero A
	size := int(unsafe.Sizeof(zero))
	p.direct = s.c.format == wide && (s.c.cs == 1 || s.n == 1) && !s.scalesLater()
	p.biased = p.direct && s.post.colBias != nil && s.post.beta == 0 && s.post.rowScale == nil
	if s.alongDepth() {
		s.planDots()
		return
	}
	p.mr = balanced(s.m, kn.mr)
	p.depth = s.pass(depthBytes / size)
	rowPanels, colPanels := ceil(s.m, p.mr), ceil(s.n, kn.nr)
	p.packA = !s.readLeft(size)
	readB := s.b.strided() && s.readRight(size)
	if bSize := s.b.size(size); readB && s.streams(bSize) {
		p.depth = s.pass(min(max(s.streamDepth()/size*bSize, streamBytes/bSize/s.n), p.depth))
	}
	if p.packRows = p.packA && p.direct && !readB && (kn.panels != nil || kn.deep) && s.m >= flowRows; p.packRows {
		p.packA = false
		p.depth = s.pass(flowDepth / size)
	}
	p.chunk = s.m
	if p.packA {
		p.chunk = max(1, chunkBytes/size/max(1, s.k)/p.mr) * p.mr
	}
	s.tiles(rowPanels, colPanels)
	if !readB && (s.b.packed == nil || s.b.format != kn.stored) {
		p.packB = p.rowTiles > 1 || p.packRows
		p.packCols = !p.packB
	}
	// Neither this nor another depth depends on the threads: it orders sums.
	widen := s.b.packed == nil && !readB && s.b.format != wide && s.b.cs == 1 && s.m <= readMoreRows && s.k > 0
	if widen {
		p.depth = s.pass(wideDepth)
	}
	p.blockCols = max(kn.nr, colBytes/size/max(1, p.depth)/kn.nr*kn.nr)
	p.blockRows = max(p.mr, rowBytes/size/max(1, p.depth)/p.mr*p.mr)
	if s.k <= shallow {
		p.blockRows = min(p.blockRows, max(p.mr, resultBytes/size/max(1, s.n)/p.mr*p.mr))
	}
	if widen && p.packCols {
		p.blockCols = min(p.blockCols, p.tileCols)
		p.wideRows = p.blockCols
		if p.wideRows*size%aliasBytes == 0 {
			p.wideRows += kn.nr
		}
	}
	if p.packRows {
		p.blockCols = p.tileCols
		p.blockRows = max(p.mr, flowBytes/size/max(1, p.depth)/p.mr*p.mr)
	}
	if !p.direct {
		p.blockRows = p.tileRows
	}
}

// readLeft reports whether packing a strided left operand would not pay.
func (s *state[A]) readLeft(size int) bool {
	if s.a.format != wide {
		return false
	}
	return s.n <= readCols || s.n <= readMoreCols && s.a.cs == 1 && s.a.rs*size%aliasBytes != 0
}

// readRight reports the same of a right operand; only adjacent columns can be
// read where they are, and without masks only a panel of them at least.
func (s *state[A]) readRight(size int) bool {
	if s.b.format != s.kernel.stored || s.b.cs != 1 || !s.kernel.masked && s.n < s.kernel.nr {
		return false
	}
	most := readRows
	if s.b.rs*size%aliasBytes != 0 {
		if most = readMoreRows; s.k*s.n*size <= bigBytes {
			most = readMostRows
		}
	}
	return s.m <= most
}

// streams reports whether a right operand that is read where it is is read once, from end to end.
func (s *state[A]) streams(size int) bool {
	most := streamRows
	if s.kernel.stored != wide {
		most = narrowRows
	}
	return s.m <= most && s.n > s.kernel.nr && s.k*s.n*size > bigBytes
}

// streamDepth is how many rows of wide elements are read at a time from end to end.
func (s *state[A]) streamDepth() int {
	most := s.kernel.streams
	switch {
	case most == 0:
		return streamDepth
	case s.m < len(s.kernel.broad):
		return most
	}
	return min(2*most, streamDepth) // of half as many columns each
}

// tiles shares the result out: by rows if they are packed by block, else by columns
// if there are enough of them, so that each goroutine packs its own.
func (s *state[A]) tiles(rowPanels, colPanels int) {
	p := &s.plan
	rowPanels = min(rowPanels, ceil(p.chunk, p.mr))
	rows, k := min(s.m, p.chunk), max(s.k, 1)
	pieces := max(min((rows*s.n*k+readCost*k*(rows+s.n))/workGrain, p.threads*tilesPerWay), 1)
	if p.threads == 1 {
		pieces = 1
	}
	byRow, byCol := 1, min(pieces, colPanels)
	if colPanels < pieces || s.m > 4*s.n || p.packRows {
		byRow = min(pieces, rowPanels)
		byCol = min(ceil(pieces, byRow), colPanels)
	}
	p.tileRows = ceil(rowPanels, byRow) * p.mr
	p.tileCols = ceil(colPanels, byCol) * s.kernel.nr
	p.rowTiles = ceil(rowPanels*p.mr, p.tileRows)
	p.colTiles = ceil(colPanels*s.kernel.nr, p.tileCols)
	if p.graded = p.packRows && byRow > 1 && rowPanels >= p.threads*grades[tilesPerGrade]*gradePanels; p.graded {
		p.rowTiles = p.threads * tilesPerGrade
	}
}

// grades are where the graded tiles of a goroutine begin and the last ends, in eighths
// of its rows. All columns are read for each tile, so that big ones cost less, but the
// last ones are what the goroutines wait for in the end.
var grades = [...]int{0, 2, 4, 5, 6, 7, 8}

const tilesPerGrade = len(grades) - 1

// balanced returns the size of the parts when n is cut into as few parts of at
// most most as possible.
func balanced(n, most int) int {
	if n <= most {
		return max(n, 1)
	}
	return ceil(n, ceil(n, most))
}

// work computes tiles lo..hi-1 of the current chunk.
func (s *state[A]) work(lo, hi int) {
	pool := &poolsOf[A]().scratches
	w := pool.Get().(*scratch[A])
	p := &s.plan
	for u := lo; u < hi; u++ {
		r0, r1 := s.rowsOf(u / p.colTiles)
		j0 := u % p.colTiles * p.tileCols
		j1 := min(j0+p.tileCols, s.n)
		if r0 >= r1 || j0 >= j1 {
			continue
		}
		if p.dot {
			s.dotTile(w, r0, r1, j0, j1)
			continue
		}
		// Rows that are packed by block are finished before the next block, and the
		// blocks alike: each meets all columns, which are read for a few rows as for many.
		panels, blocks := ceil(r1-r0, p.mr), 1
		if p.packRows {
			blocks = ceil(panels*p.mr, p.blockRows)
		}
		for i := range blocks {
			from, to := r0+i*panels/blocks*p.mr, min(r0+(i+1)*panels/blocks*p.mr, r1)
			for j := j0; j < j1; j += p.blockCols {
				s.columns(w, from, to, j, min(j+p.blockCols, j1))
			}
		}
	}
	pool.Put(w)
}

// rowsOf returns the rows of a row of tiles. Where all goroutines wait for the last
// tile, none is smaller by more than a panel, unless tiles are graded.
func (s *state[A]) rowsOf(i int) (r0, r1 int) {
	p := &s.plan
	if !p.packRows {
		r0 = p.row0 + i*p.tileRows
		return r0, min(r0+p.tileRows, p.row0+p.rows)
	}
	from, to, all := i, i+1, p.rowTiles
	if p.graded {
		way, grade, eighths := i/tilesPerGrade, i%tilesPerGrade, grades[tilesPerGrade]
		from, to, all = way*eighths+grades[grade], way*eighths+grades[grade+1], p.threads*eighths
	}
	panels := ceil(s.m, p.mr)
	return from * panels / all * p.mr, min(to*panels/all*p.mr, s.m)
}

// columns computes rows r0..r1-1 of a block of columns.
func (s *state[A]) columns(w *scratch[A], r0, r1, j0, j1 int) {
	p, kn := &s.plan, s.kernel
	out, ldc := s.target(w, r0, r1, j0, j1)
	for k0 := 0; k0 == 0 || k0 < s.k; k0 += p.depth {
		depth := min(p.depth, s.k-k0)
		if p.packCols {
			w.panels = grown(w.panels, max(roundUp(j1-j0, kn.nr), p.wideRows)*depth)
			s.packPanels(w, w.panels, j0, j1, k0, depth)
		}
		add := k0 > 0 || p.adds(s.post.beta != 0)
		for r := r0; r < r1; r += p.blockRows {
			if p.packRows {
				s.packBlock(w, r, min(r+p.blockRows, r1), k0, depth)
			}
			s.block(w, out[(r-r0)*ldc:], ldc, r, min(r+p.blockRows, r1), j0, j1, k0, depth, add)
		}
	}
	s.finish(w, out, ldc, r0, r1, j0, j1)
}

// adds reports whether sums are added to what the target holds from the start.
func (p *plan) adds(beta bool) bool { return p.direct && (beta || p.biased) }

// target returns where the sums of a block go: the result itself, scaled by beta, or scratch memory.
func (s *state[A]) target(w *scratch[A], r0, r1, j0, j1 int) (out []A, ldc int) {
	rows, cols := r1-r0, j1-j0
	if !s.plan.direct {
		w.block = grown(w.block, rows*cols)
		return w.block, cols
	}
	var zero A
	ldc = s.c.rs
	out = unsafe.Slice((*A)(s.c.at(r0, j0, unsafe.Sizeof(zero))), (rows-1)*ldc+cols)
	if s.post.beta != 0 && s.post.beta != 1 {
		for i := range rows {
			scale(out[i*ldc:][:cols], s.post.beta)
		}
	}
	return out, ldc
}

// block runs the inner loop over the tiles of a block for one pass of depth.
func (s *state[A]) block(w *scratch[A], out []A, ldc, r0, r1, j0, j1, k0, depth int, add bool) {
	p, kn := &s.plan, s.kernel
	flags := 0
	if add {
		flags = flagAdd
	}
	if s.b.packed != nil || p.packB || p.packCols && p.wideRows == 0 {
		flags |= flagPadded
	}
	biased := p.biased && k0 == 0
	bothPacked := kn.panels != nil && flags&flagPadded != 0 && (p.packA || p.packRows)
	for j := j0; j < j1; j += kn.nr {
		if r1-r0 < len(kn.broad) && flags&flagPadded == 0 && j1-j >= 2*kn.nr {
			b, bK := s.right(w, j, j0, k0, depth)
			a, aRow, aK := s.left(w, r0, r0, r1-r0, k0, depth)
			if biased {
				s.biasRows(out[j-j0:], ldc, r1-r0, j, 2*kn.nr)
			}
			kn.broad[r1-r0](depth, a, aRow, aK, b, bK, &out[j-j0], ldc, 2*kn.nr, s.alpha, flags, b, 0)
			j += kn.nr
			continue
		}
		cols := min(kn.nr, j1-j)
		b, bK := s.right(w, j, j0, k0, depth)
		next, step := s.ahead(b, j, j0, j1, k0, depth, r1-r0)
		form := kn.tiles[0]
		if cols <= kn.nr/2 && kn.slim() {
			form = kn.tiles[1]
		}
		for r := r0; r < r1; r += p.mr {
			rows := min(p.mr, r1-r)
			if flags &^= flagBelow; r+p.mr < s.m {
				flags |= flagBelow
			}
			a, aRow, aK := s.left(w, r0, r, rows, k0, depth)
			c := out[(r-r0)*ldc+j-j0:]
			if biased {
				s.biasRows(c, ldc, rows, j, cols)
			}
			part := (*A)(unsafe.Add(unsafe.Pointer(next), (r-r0)/p.mr*depth*step))
			if bothPacked && cols > kn.nr/2 {
				kn.panels[rows](depth, a, b, &c[0], ldc, cols, s.alpha, flags, part, step)
				continue
			}
			if kn.masked || cols == kn.nr {
				form[rows](depth, a, aRow, aK, b, bK, &c[0], ldc, cols, s.alpha, flags, part, step)
				continue
			}
			s.edge(w, c, ldc, rows, cols, depth, a, aRow, aK, b, bK, flags)
		}
	}
}

// edge computes a tile of fewer columns than a panel has, of a kernel that has no masks: all those of a packed panel, or
// with the columns before them those of an operand that is read where it is.
func (s *state[A]) edge(w *scratch[A], c []A, ldc, rows, cols, depth int, a *A, aRow, aK int, b *A, bK, flags int) {
	kn, skip := s.kernel, 0
	if flags&flagPadded == 0 && s.plan.wideRows == 0 {
		var zero A
		skip = kn.nr - cols
		b = (*A)(unsafe.Add(unsafe.Pointer(b), -skip*s.b.size(int(unsafe.Sizeof(zero)))))
	}
	w.edge = grown(w.edge, kn.mr*kn.nr)
	kn.edge(w.edge, skip, depth, a, aRow, aK, b, bK, c, ldc, rows, cols, s.alpha, flags)
}

// edge computes a whole tile, of which it sets or adds to c so many columns behind those to skip.
func (kn *kernel[A]) edge(tile []A, skip, depth int, a *A, aRow, aK int, b *A, bK int, c []A, ldc, rows, cols int, alpha A, flags int) {
	kn.tiles[0][rows](depth, a, aRow, aK, b, bK, &tile[0], kn.nr, kn.nr, alpha, flags&^(flagAdd|flagBelow), b, 0)
	for i := range rows {
		from, to := tile[i*kn.nr+skip:][:cols], c[i*ldc:][:cols]
		if flags&flagAdd != 0 {
			addTo(to, from)
		} else {
			copy(to, from)
		}
	}
}

// packBlock packs rows r0..r1-1 of the left operand for a pass of depth.
func (s *state[A]) packBlock(w *scratch[A], r0, r1, k0, depth int) {
	p := &s.plan
	w.panels = grown(w.panels, p.blockRows*p.depth)
	for r := r0; r < r1; r += p.mr {
		end := min(r+p.mr, r1)
		s.packLeft(w, w.panels[(r-r0)*depth:], r, end, k0, k0+depth)
	}
}

// left returns the panel of the left operand at row r from depth k0; r0 is where
// the block begins.
func (s *state[A]) left(w *scratch[A], r0, r, rows, k0, depth int) (a *A, aRow, aK int) {
	var zero A
	size := unsafe.Sizeof(zero)
	switch {
	case s.kernel.deep && s.plan.packRows:
		return (*A)(unsafe.Add(dataOf(w.panels), (r-r0)*depth*int(size))), depth, 1
	case s.kernel.deep:
		return (*A)(unsafe.Add(dataOf(s.aBuf), ((r-s.plan.row0)*s.k+k0)*int(size))), s.k, 1
	case s.plan.packRows:
		return (*A)(unsafe.Add(dataOf(w.panels), (r-r0)*depth*int(size))), 1, rows
	case s.plan.packA:
		return (*A)(unsafe.Add(dataOf(s.aBuf), ((r-s.plan.row0)*s.k+k0*rows)*int(size))), 1, rows
	}
	return (*A)(s.a.at(r, k0, size)), s.a.rs, s.a.cs
}

// right returns the panel of the right operand at column j from depth k0; j0 is
// where the block begins.
func (s *state[A]) right(w *scratch[A], j, j0, k0, depth int) (b *A, bK int) {
	var zero A
	size := unsafe.Sizeof(zero)
	nr := s.kernel.nr
	switch {
	case s.plan.wideRows > 0:
		return &w.panels[j-j0], s.plan.wideRows
	case s.plan.packCols:
		return (*A)(unsafe.Add(dataOf(w.panels), (j-j0)*depth*int(size))), nr
	case s.plan.packB:
		return (*A)(unsafe.Add(dataOf(s.bBuf), (j*s.k+k0*nr)*int(size))), nr
	}
	bSize := s.b.size(int(size))
	if s.b.packed != nil {
		return (*A)(unsafe.Add(s.b.packed, (j*s.k+k0*nr)*bSize)), nr
	}
	return (*A)(s.b.at(k0, j, uintptr(bSize))), s.b.rs
}

// ahead returns which memory the tiles of a panel are to ask for, and how many
// bytes further at each step: the panel of packed columns that comes after the one
// at column j, shared out among the tiles of so many rows. Memory where the right
// operand is read now stands for nothing: also where the next panel is less deep,
// of which the tiles would ask for more than there is.
func (s *state[A]) ahead(now *A, j, j0, j1, k0, depth, rows int) (next *A, step int) {
	p, nr := &s.plan, s.kernel.nr
	packed, size := s.b.packed, int(unsafe.Sizeof(*now))
	switch {
	case p.packB:
		packed = dataOf(s.bBuf)
	case p.packCols:
		packed = nil
	default:
		size = s.b.size(size)
	}
	if j += nr; j >= j1 {
		j, k0 = j0, k0+p.depth
	}
	if packed == nil || k0+depth > s.k {
		return now, 0
	}
	return (*A)(unsafe.Add(packed, (j*s.k+k0*nr)*size)), nr * size / ceil(rows, p.mr)
}

// finish does what is to be done with the finished sums of a block.
func (s *state[A]) finish(w *scratch[A], out []A, ldc, r0, r1, j0, j1 int) {
	if s.plan.direct && s.post.none(s.plan.biased) {
		return
	}
	n, together := j1-j0, 1
	if ldc == n && s.c.adjoins(n) && s.post.alike(n) {
		together = max(1, min(finishTogether/max(n, 1), r1-r0))
	}
	var bias []A
	if s.post.colBias != nil && !s.plan.biased {
		if bias = s.post.colBias[j0:j1]; together > 1 {
			w.bias = grown(w.bias, together*n)
			for i := range together {
				copy(w.bias[i*n:], bias)
			}
			bias = w.bias
		}
	}
	w.row = grown(w.row, together*n)
	for r := r0; r < r1; r += together {
		size := min(together, r1-r) * n
		x := out[(r-r0)*ldc:][:size]
		if s.scalesLater() {
			scale(x, s.alpha)
		}
		if !s.plan.direct && s.post.beta != 0 {
			for i, v := range rowOf(&s.c, r, j0, w.row[:size]) {
				x[i] += s.post.beta * v
			}
		}
		s.post.apply(s.kernel, r, j0, x, w.row, bias)
		s.store(r, j0, x, w.row)
	}
}
