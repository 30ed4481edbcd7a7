package conv

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
)

// Winograd's convolution makes tiles of 4×4 outputs with a quarter of the
// products: filters and positions are transformed (package tile says how), and
// coefficient by coefficient the positions of a unit's tiles are multiplied with
// the filters as in any other convolution.
//
// An output errs by at most some 10 units of the type's epsilon times the sum of
// the magnitudes of its products, where a plain sum errs by 3, as long as what
// meets in a tile is of about one size: the error of small outputs beside large
// ones is that of the large ones. A number that is not finite would spread to
// its whole tile, and infinities turn into NaN; so would sums that overflow on
// the way. The transform of the outputs tells whether any is not finite, and
// then the panel of the unit is computed again from the filters as they are. Units
// are the same for any number of goroutines, therefore the results are, too.

// Form is the algorithm that filters are packed for.
type Form uint8

// The forms of packed filters.
const (
	Plain Form = iota
	Winograd
	Pairs
)

const (
	coefficients = tile.WinogradIn * tile.WinogradIn
	// winogradTiles is how many tiles a unit aims at: so few that their coefficients
	// stay in the second-level cache, in whole register tiles. From winogradDeep
	// channels on they are twice as many, since each unit reads all filters.
	winogradTiles = 28
	winogradDeep  = 256
	// winogradChannels is from how many channels on each way it may be worth it.
	winogradChannels = 16
	// winogradUnits is how many units a processor gets at least, if the work can be
	// cut so.
	winogradUnits = 2
)

// allowsWinograd reports whether a convolution has the form that Winograd's is for.
func (g *Geometry) allowsWinograd() bool {
	return !g.Transposed && g.Groups == 1 && g.Kernel == [3]int{1, 3, 3} && g.Stride[1] == 1 && g.Stride[2] == 1 &&
		g.Dilation[1] == 1 && g.Dilation[2] == 1
}

// covered rounds outputs of a dimension up to whole tiles.
func covered(n int) int { return ceil(n, tile.WinogradOut) * tile.WinogradOut }

// winogradBlock is how outputs are cut into units: images×rows×cols each.
type winogradBlock struct {
	n                  int
	out                [3]int
	images, rows, cols int
	tiles              int // at most
}

// winogradShape cuts the outputs of n images of cin channels. It does not depend on
// what they are computed with, so that results do not.
func winogradShape(n int, out [3]int, cin int) winogradBlock {
	b := winogradBlock{n: n, out: out, images: 1}
	aim := winogradTiles
	if cin >= winogradDeep {
		aim *= 2
	}
	rows, cols := ceil(out[1], tile.WinogradOut), ceil(out[2], tile.WinogradOut)
	if rows*cols <= aim && out[0] == 1 {
		b.images = ceil(n, ceil(n, max(aim/(rows*cols), 1)))
	}
	cols = ceil(cols, ceil(cols, aim))
	rows = ceil(rows, ceil(rows, max(aim/cols, 1)))
	b.rows, b.cols = min(rows*tile.WinogradOut, out[1]), min(cols*tile.WinogradOut, out[2])
	b.tiles = b.images * rows * cols
	return b
}

// blocks returns the number of parts.
func (b *winogradBlock) blocks() int {
	return ceil(b.n, b.images) * b.out[0] * ceil(b.out[1], b.rows) * ceil(b.out[2], b.cols)
}

// blockWinograd chooses the outputs of a unit, and how many panels it has for so
// many goroutines.
func (p *Plan[A]) blockWinograd(procs int) {
	b := winogradShape(p.g.N, p.g.Out, p.g.CIn)
	p.images, p.rows, p.cols = b.images, b.rows, b.cols
	p.chunk = p.panels
	// Each unit transforms its part of the image, which costs about as much as half
	// a panel: panels are parted for the sake of few processors' balance only.
	for procs > 1 && p.chunk > 1 && b.blocks()*ceil(p.panels, p.chunk) < winogradUnits*procs {
		p.chunk = (p.chunk + 1) / 2
	}
	line := lineBytes / p.size
	// Odd numbers of lines spread the coefficients over the cache.
	p.coefIn = (ceil(b.tiles*p.g.CIn, line) | 1) * line
	p.coefOut = (ceil(b.tiles*p.set.Width, line) | 1) * line
}

// winograd computes a unit.
func (c *Call[T, A]) winograd(w *worker[A], u *unit) {
	p := c.Plan
	if w.held != u.region() {
		w.region = grow(w.region, p.images*p.regLen)
		for i := range u.nn {
			load(w, w.region[i*p.regLen:], c.X, p, u, i)
		}
		w.coefIn = grow(w.coefIn, coefficients*p.coefIn)
		w.transformIn(p, u)
		w.held = u.region()
	}
	w.coefOut = grow(w.coefOut, coefficients*p.coefOut)
	for panel := u.panel; panel < u.panelsEnd; panel++ {
		width := tile.One
		if 2*(p.g.COut-panel*p.set.Width) <= p.set.Width {
			width = tile.Half
		}
		channel, n := panel*p.set.Width, int(width)*p.set.Width/2
		w.multiply(p, u, c.Weights.data[panel*p.set.Width*winogradDepth(p.g.CIn):], width)
		s := c.sink(w, u, channel, n)
		c.loadBias(w, u, channel, n)
		if !w.transformOut(p, u, &s, n) {
			c.again(w, u, panel, width)
		} else if !s.direct {
			c.finish(w, u, channel, min(n, p.g.COut-channel), n)
		}
	}
}

// tiles calls f with each tile of a unit: its number and first position.
func (u *unit) tiles(f func(i, img, row, col int)) {
	i := 0
	for img := range u.nn {
		for row := 0; row < u.hn; row += tile.WinogradOut {
			for col := 0; col < u.wn; col += tile.WinogradOut {
				f(i, img, row, col)
				i++
			}
		}
	}
}

// transformIn computes the coefficients of the unit's tiles: for each coefficient
// the tiles, of these the channels.
func (w *worker[A]) transformIn(p *Plan[A], u *unit) {
	a := w.transform(p.set)
	r := &p.region
	a.XRow, a.XCol = r.Spatial[1]*p.size, r.Spatial[2]*p.size
	a.CRow, a.CCol = tile.WinogradIn*p.coefIn*p.size, p.coefIn*p.size
	lanes, cin := p.set.Lanes(), p.g.CIn
	u.tiles(func(i, img, row, col int) {
		x, to := w.region[img*p.regLen+row*r.Spatial[1]+col*r.Spatial[2]:], w.coefIn[i*cin:]
		a.X, a.C, a.Count = unsafe.Pointer(&x[0]), unsafe.Pointer(&to[0]), cin/lanes
		p.set.WinogradInput(a)
		if cin%lanes != 0 { // the last vector overlaps the one before
			a.X, a.C, a.Count = unsafe.Pointer(&x[cin-lanes]), unsafe.Pointer(&to[cin-lanes]), 1
			p.set.WinogradInput(a)
		}
	})
}

// transform returns the worker's operands of a transform.
func (w *worker[A]) transform(set *tile.Set[A]) *tile.TransformArgs[A] {
	w.line = grow(w.line, coefficients*set.Lanes())
	w.change = tile.TransformArgs[A]{Tmp: unsafe.Pointer(&w.line[0])}
	return &w.change
}

// multiply multiplies the coefficients of the unit's tiles with those of a panel
// of filters.
func (w *worker[A]) multiply(p *Plan[A], u *unit, filters []A, width tile.Panel) {
	a := &w.args
	step := p.set.Width
	a.Segs, a.NSegs, a.Run = tile.Zeros, 1, p.g.CIn
	a.XStep, a.KStep, a.WStep, a.CStep = p.g.CIn*p.size, p.size, step*p.size, step*p.size
	a.Init, a.Add, a.InitStep, a.AddStep = tile.Zeros, tile.Zeros, 0, 0
	a.W2 = tile.Zeros
	a.Lo, a.Hi = A(math.Inf(-1)), A(math.Inf(1))
	n := u.nn * ceil(u.hn, tile.WinogradOut) * ceil(u.wn, tile.WinogradOut)
	blocks := ceil(n, p.set.Rows(width))
	for k := range coefficients {
		a.W = unsafe.Pointer(&filters[k*(p.g.CIn+1)*step])
		x, to := w.coefIn[k*p.coefIn:], w.coefOut[k*p.coefOut:]
		for b, from := 0, 0; b < blocks; b++ {
			end := (b + 1) * n / blocks
			a.X, a.C = unsafe.Pointer(&x[from*p.g.CIn]), unsafe.Pointer(&to[from*step])
			p.set.Run(a, end-from, width)
			from = end
		}
	}
}

// transformOut makes outputs of the products with a panel of n channels, and puts
// them where s says. It reports whether all sums are finite.
func (w *worker[A]) transformOut(p *Plan[A], u *unit, s *sink[A], n int) bool {
	lanes := p.set.Lanes()
	a := w.transform(p.set)
	w.bad = grow(w.bad, lanes)
	clear(w.bad)
	a.Bad, a.Bias = unsafe.Pointer(&w.bad[0]), unsafe.Pointer(&w.bias[0])
	a.XRow, a.XCol = tile.WinogradIn*p.coefOut*p.size, p.coefOut*p.size
	a.Lo, a.Hi = s.lo, s.hi
	w.edge = grow(w.edge, tile.WinogradOut*tile.WinogradOut*n)
	u.tiles(func(i, img, row, col int) {
		a.X, a.Count = unsafe.Pointer(&w.coefOut[i*p.set.Width]), n/lanes
		rows, cols := min(u.hn-row, tile.WinogradOut), min(u.wn-col, tile.WinogradOut)
		if rows == tile.WinogradOut && cols == tile.WinogradOut {
			a.C, a.CRow, a.CCol = s.done.of(img, row, col), s.done.row, s.done.col
			p.set.WinogradOutput(a)
			return
		}
		a.C, a.CRow, a.CCol = unsafe.Pointer(&w.edge[0]), tile.WinogradOut*n*p.size, n*p.size
		p.set.WinogradOutput(a)
		for i := range rows {
			for j := range cols {
				to := unsafe.Slice((*A)(s.done.of(img, row+i, col+j)), n)
				copy(to, w.edge[(i*tile.WinogradOut+j)*n:])
			}
		}
	})
	for _, v := range w.bad {
		if v != v {
			return false
		}
	}
	return true
}

// again computes a panel of the unit by the definition, from its part of the image
// that is held.
func (c *Call[T, A]) again(w *worker[A], u *unit, panel int, width tile.Panel) {
	p := c.Plan
	plain := borrowWeights(&p.plain)
	defer plain.release()
	SetWeights(&plain.Weights, c.Filters, c.FilterStrides, panel, panel+1)
	if c.FilterScale != nil {
		ScaleWeights(&plain.Weights, c.FilterScale, panel, panel+1)
	}
	c.columns(w, u, &plain.Weights, unsafe.Pointer(&w.region[0]), p.regLen*p.size, panel, width)
}

// winogradDepth is how many rows of a panel the coefficients of filters are: for
// each of them the input channels, and one row more, which spreads them over the
// cache.
func winogradDepth(cin int) int { return coefficients * (cin + 1) }

// winograd packs the coefficients of a panel of filters.
func (p *packing[A, T]) winograd(dst []A, ph *phase) {
	set, w := p.w.set, p.scratch
	n := p.w.g.CIn * set.Width
	w.region = grow(w.region, 9*n)
	p.phase(w.region, ph)
	a := w.transform(set)
	size := int(unsafe.Sizeof(dst[0]))
	a.X, a.XCol, a.XRow = unsafe.Pointer(&w.region[0]), n*size, 3*n*size
	a.CCol = (n + set.Width) * size
	a.C, a.CRow = unsafe.Pointer(&dst[0]), tile.WinogradIn*a.CCol
	a.Count = n / set.Lanes()
	set.WinogradFilter(a)
}

// Costs of a convolution for each pair of an input and an output channel, in
// products of the plain one: measured on a processor with AVX-512.
const (
	costTransform = 560 // of a tile and one channel of it
	costPackPlain = 34  // of an element of filters
	costPack      = 20  // of a coefficient of filters
	costStream    = 20  // of a coefficient of filters that comes from farther away than the second-level cache
	streamed      = 1 << 20
	costFar       = 45 // and of one of so many that the third-level cache need not have them
	far           = 4 << 20
	fewTiles      = 8 // that take no longer than fewer, whose sums wait for each other
	// gain is how much of the plain cost Winograd's must save, in percent.
	gain = 20
)

// formOf chooses the form by the shape. once says that filters are packed for
// each run.
func formOf[A Float](g *Geometry, set *tile.Set[A], once bool) Form {
	if !g.allowsWinograd() || unsafe.Sizeof(*new(A)) != 4 || min(g.CIn, g.COut) < winogradChannels || g.CIn < set.Lanes() || g.empty() {
		return Plain
	}
	n := g.N
	if g.PerImage {
		n = 1
	}
	shape := winogradShape(n, g.Out, g.CIn)
	blocks, tiles := float64(shape.blocks()), float64(shape.tiles)
	plain := 9 * float64(n*g.Out[0]*g.Out[1]*g.Out[2])
	winograd := coefficients*max(tiles, fewTiles)*blocks + costTransform*tiles*blocks*(1/float64(g.CIn)+1/float64(g.COut))
	switch all := coefficients * g.CIn * g.COut; {
	case all > far:
		winograd += coefficients * costFar * blocks
	case all > streamed:
		winograd += coefficients * costStream * blocks
	}
	if once {
		plain += 9 * costPackPlain
		winograd += coefficients * costPack
	}
	if winograd*100 > plain*(100-gain) {
		return Plain
	}
	return Winograd
}
