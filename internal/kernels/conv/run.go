package conv

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// Call is one run of a Plan: its operands and what is done to the sums.
//
//	Y = Activation(conv(X) + Bias + Scale·Residual)
type Call[T Element, A Float] struct {
	Plan    *Plan[A]
	Limiter *parallel.Limiter // bounds the goroutines of Run; nil stands for any
	Y, X    []T
	Weights *Weights[A]
	// Filters are what Run packs for itself if Weights is nil, at the strides
	// that Pack takes. A Plan of the form Winograd needs them beside Weights, too.
	// FilterScale is what ScaleWeights got for the Weights, or nil.
	Filters       []T
	FilterStrides [5]int
	FilterScale   []A
	Bias          []T // an element for each output channel, or nil
	// Residual is an image like Y that is added, or nil. It may be Y itself,
	// in the same layout.
	Residual       []T
	ResidualLayout Layout
	Scale          float64 // of Residual; 0 stands for 1
	Activation     vec.Activation
}

// Run computes all units on the goroutines that the Limiter allows.
func (c *Call[T, A]) Run() {
	if c.Weights == nil && c.Plan.units > 0 {
		w := borrowWeights(&c.Plan.filters)
		defer w.release()
		c.Weights = &w.Weights
		defer func() { c.Weights = nil }()
		grain := 1 + packGrain/max(w.Len()/max(w.Units(), 1), 1)
		c.Limiter.For(w.Units(), grain, func(lo, hi int) { SetWeights(c.Weights, c.Filters, c.FilterStrides, lo, hi) })
	}
	if c.Plan.units <= c.Plan.grain {
		c.Do(0, c.Plan.units)
		return
	}
	c.Limiter.For(c.Plan.units, c.Plan.grain, c.Do)
}

// unit is the outputs of one unit: those of a phase of images n.. in group grp,
// from depth d on, in rows h.. and columns w.. of each member, for panels from..to-1.
type unit struct {
	ph               *planPhase
	n, nn            int
	grp, d, dn       int
	h, hn, w, wn     int
	panel, panelsEnd int
}

func (p *Plan[A]) unit(i int) unit {
	ph := &p.tableRow[0]
	for k := range p.tableRow {
		if p.tableRow[k].first <= i {
			ph = &p.tableRow[k]
		}
	}
	i -= ph.first
	u := unit{ph: ph}
	next := func(n int) int {
		r := i % n
		i /= n
		return r
	}
	u.panel = next(ceil(p.panels, p.chunk)) * p.chunk
	u.panelsEnd = min(u.panel+p.chunk, p.panels)
	u.w = next(ph.blocks[1]) * p.cols
	u.h = next(ph.blocks[0]) * p.rows
	u.d = next(ceil(ph.count[0], p.depths)) * p.depths
	u.grp = next(p.g.Groups)
	u.n = i * p.images
	u.dn = min(p.depths, ph.count[0]-u.d)
	u.wn, u.hn, u.nn = min(p.cols, ph.count[2]-u.w), min(p.rows, ph.count[1]-u.h), min(p.images, p.g.N-u.n)
	return u
}

// region says which copy a worker's scratch holds.
type region struct {
	ph        *planPhase
	n, grp, d int
	h, w      int
}

func (u *unit) region() region { return region{u.ph, u.n, u.grp, u.d, u.h, u.w} }

// Do computes units lo..hi-1.
func (c *Call[T, A]) Do(lo, hi int) {
	w := borrow[A]()
	defer w.release()
	for i := lo; i < hi; i++ {
		u := c.Plan.unit(i)
		c.unit(w, &u)
	}
}

func (c *Call[T, A]) unit(w *worker[A], u *unit) {
	p := c.Plan
	if p.form == Winograd {
		c.winograd(w, u)
		return
	}
	var x unsafe.Pointer
	step := p.regLen // between images
	if p.direct {
		at := u.n*p.x.Batch + u.grp*p.g.CIn*p.x.Channel
		for d, j := range [3]int{u.d, u.h, u.w} {
			at += (j*p.g.inStep(d) + u.ph.min[d]) * p.x.Spatial[d]
		}
		if u.ph.depth > 0 {
			x = unsafe.Pointer(&c.X[at])
		}
		step = p.x.Batch
	} else if u.ph.depth > 0 {
		w.region = grow(w.region, p.images*p.regLen)
		if w.held != u.region() {
			for i := range u.nn {
				load(w, w.region[i*p.regLen:], c.X, p, u, i)
			}
			w.held = u.region()
		}
		x = unsafe.Pointer(unsafe.SliceData(w.region))
	}
	if p.columnwise {
		c.depthwise(w, u, x, step*p.size)
		return
	}
	for panel := u.panel; panel < u.panelsEnd; {
		width := tile.One
		if panel+1 < u.panelsEnd && !c.tall(u) {
			width = tile.Two
		} else if 2*(p.g.COut-panel*p.set.Width) <= p.set.Width {
			width = tile.Half
		}
		c.columns(w, u, c.Weights, x, step*p.size, panel, width)
		panel += max(int(width)/2, 1)
	}
}

// tall reports whether the unit's outputs are for tiles of one panel, which have
// more rows than those of two.
func (c *Call[T, A]) tall(u *unit) bool {
	set, n := c.Plan.set, u.wn
	if c.Plan.across {
		n = u.nn
	}
	one, two := set.Rows(tile.One), set.Rows(tile.Two)
	return n > two || one == two
}

// columns computes the unit's outputs of one panel or two.
func (c *Call[T, A]) columns(w *worker[A], u *unit, filters *Weights[A], x unsafe.Pointer, imageStep, panel int, width tile.Panel) {
	p := c.Plan
	channel := panel * p.set.Width
	n := int(width) * p.set.Width / 2
	s := c.sink(w, u, channel, n)
	s.x, s.xImage = x, imageStep
	s.width = width
	c.loadBias(w, u, channel, n)
	s.bias = unsafe.Pointer(unsafe.SliceData(w.bias))
	for i := range u.ph.members {
		m := &u.ph.members[i]
		if i > 0 { // their results are never direct
			s.part.at = unsafe.Add(s.part.at, n*p.size)
			s.done.at = s.part.at
		}
		s.member(&w.args, p, u, m, filters.data[u.grp*filters.group+filters.starts[m.index]:], panel)
	}
	if !s.direct {
		c.finish(w, u, channel, min(n, p.g.COut-channel), n)
	}
}

// member computes the unit's outputs of a member of its phase.
func (s *sink[A]) member(a *tile.Args[A], p *Plan[A], u *unit, m *member, weights []A, panel int) {
	a.Lo, a.Hi = A(math.Inf(-1)), A(math.Inf(1))
	a.W, a.W2 = tile.Zeros, tile.Zeros
	a.WStep = p.set.Width * p.size
	panelLen := p.set.Width * m.depth
	if len(m.cuts) == 0 {
		a.NSegs = 0
		s.positions(a, p, u, cut{}, true, true)
	}
	for i, ct := range m.cuts {
		a.Segs = unsafe.Pointer(&m.segs[ct.seg])
		a.NSegs, a.Run, a.KStep = ct.n, ct.run, m.kStep
		a.W = unsafe.Pointer(&weights[panel*panelLen+ct.k*p.set.Width])
		if s.width == tile.Two {
			a.W2 = unsafe.Pointer(&weights[(panel+1)*panelLen+ct.k*p.set.Width])
		}
		s.positions(a, p, u, ct, i == 0, i == len(m.cuts)-1)
	}
}

// loadBias sets the worker's bias to that of n channels.
func (c *Call[T, A]) loadBias(w *worker[A], u *unit, channel, n int) {
	w.bias = grow(w.bias, n)
	clear(w.bias)
	if c.Bias != nil && !c.scales() {
		from := u.grp*c.Plan.g.COut + channel
		vec.Load(w.bias, c.Bias[from:from+min(n, c.Plan.g.COut-channel)])
	}
}

// sink is where tiles of one unit and panel read and write. Steps are in bytes.
type sink[A Float] struct {
	x      unsafe.Pointer
	xImage int
	bias   unsafe.Pointer
	width  tile.Panel
	// Partial sums go to scratch, and the finished ones to the output itself if
	// direct, else to scratch, too.
	part   place
	done   place
	direct bool
	add    place // the residual, if direct and there is one
	lo, hi A     // bounds of the finished sums
}

// place is where positions are: the first, and the bytes between them.
type place struct {
	at                     unsafe.Pointer
	image, depth, row, col int
}

// sink decides where the n columns from channel on go: to the output itself if
// its channels adjoin, there are so many, and tiles can finish them.
func (c *Call[T, A]) sink(w *worker[A], u *unit, channel, n int) sink[A] {
	p := c.Plan
	s := sink[A]{lo: A(math.Inf(-1)), hi: A(math.Inf(1))}
	lo, hi, clamp := c.Activation.Clamp()
	y, same := any(c.Y).([]A)
	res, _ := any(c.Residual).([]A)
	// Tiles add a residual in another order than finish does: how the unit was cut
	// must not decide which of them it is.
	whole := p.g.COut%p.set.Width == 0
	simple := c.Residual == nil || whole && c.ResidualLayout.Channel == 1 && (c.Scale == 0 || c.Scale == 1)
	if p.columnwise || p.form == Winograd {
		simple = c.Residual == nil
	}
	s.direct = same && clamp && simple && p.y.Channel == 1 && channel+n <= p.g.COut
	if !s.direct || len(u.ph.members[0].cuts) > 1 {
		wide := u.wn * len(u.ph.members)
		w.sums = grow(w.sums, u.nn*u.dn*u.hn*wide*n)
		col := n * p.size
		s.part = place{unsafe.Pointer(unsafe.SliceData(w.sums)), u.dn * u.hn * wide * col, u.hn * wide * col, wide * col, len(u.ph.members) * col}
	}
	s.done = s.part
	if clamp && c.Residual == nil && !c.scales() || s.direct {
		s.lo, s.hi = A(lo), A(hi)
	}
	if s.direct {
		s.done = c.place(&p.y, u)
		s.done.at = unsafe.Pointer(&y[c.origin(&p.y, u, channel)])
		if res != nil {
			s.add = c.place(&c.ResidualLayout, u)
			s.add.at = unsafe.Pointer(&res[c.origin(&c.ResidualLayout, u, channel)])
		}
	}
	return s
}

// origin returns where the unit's first output of a channel is.
func (c *Call[T, A]) origin(l *Layout, u *unit, channel int) int {
	at := u.n*l.Batch + (u.grp*c.Plan.g.COut+channel)*l.Channel
	for d, j := range [3]int{u.d, u.h, u.w * len(u.ph.members)} {
		at += (u.ph.dims[d].first + j*u.ph.dims[d].step) * l.Spatial[d]
	}
	return at
}

// place returns the distances of the unit's outputs.
func (c *Call[T, A]) place(l *Layout, u *unit) place {
	d := &u.ph.dims
	size := c.Plan.size
	return place{image: l.Batch * size, depth: d[0].step * l.Spatial[0] * size, row: d[1].step * l.Spatial[1] * size, col: d[2].step * l.Spatial[2] * size}
}

// deeper returns the place d depths on.
func (l place) deeper(d int) place {
	if d > 0 {
		l.at = unsafe.Add(l.at, d*l.depth)
	}
	return l
}

func (l *place) of(img, row, col int) unsafe.Pointer {
	return unsafe.Add(l.at, img*l.image+row*l.row+col*l.col)
}

// positions adds one block of the depth to all positions of the unit.
func (s *sink[A]) positions(a *tile.Args[A], p *Plan[A], u *unit, ct cut, first, last bool) {
	var x place // nowhere, if the phase has no taps
	if s.x != nil {
		x = place{unsafe.Add(s.x, ct.from*a.KStep), s.xImage, p.g.inStep(0) * p.region.Spatial[0] * p.size, p.g.inStep(1) * p.region.Spatial[1] * p.size, p.g.inStep(2) * p.region.Spatial[2] * p.size}
	}
	// What there is already is added to the block's own sum, which errs less than
	// to begin with it.
	zeros := place{at: tile.Zeros}
	from, add, to := zeros, s.part, s.part
	if first {
		add = place{at: s.bias}
	}
	if last {
		to = s.done
		a.Lo, a.Hi = s.lo, s.hi
		if s.add.at != nil {
			from, add = add, s.add
		}
	}
	for d := range u.dn {
		x, from, add, to := x.deeper(d), from.deeper(d), add.deeper(d), to.deeper(d)
		if p.across {
			s.tilesAcross(a, p, u, &x, &from, &add, &to)
		} else {
			s.tiles(a, p, u, &x, &from, &add, &to)
		}
	}
}

// tiles computes the positions of one depth.
func (s *sink[A]) tiles(a *tile.Args[A], p *Plan[A], u *unit, x, from, add, to *place) {
	a.XStep, a.InitStep, a.AddStep, a.CStep = x.col, from.col, add.col, to.col
	tiles := ceil(u.wn, p.set.Rows(s.width))
	for img := range u.nn {
		for row := range u.hn {
			for t, col := 0, 0; t < tiles; t++ {
				end := (t + 1) * u.wn / tiles
				a.X = x.of(img, row, col)
				a.Init = from.of(img, row, col)
				a.Add = add.of(img, row, col)
				a.C = to.of(img, row, col)
				p.set.Run(a, end-col, s.width)
				col = end
			}
		}
	}
}

// tilesAcross does so by tiles that go across images.
func (s *sink[A]) tilesAcross(a *tile.Args[A], p *Plan[A], u *unit, x, from, add, to *place) {
	a.XStep, a.InitStep, a.AddStep, a.CStep = x.image, from.image, add.image, to.image
	tiles := ceil(u.nn, p.set.Rows(s.width))
	for t, img := 0, 0; t < tiles; t++ {
		end := (t + 1) * u.nn / tiles
		for row := range u.hn {
			for col := range u.wn {
				a.X = x.of(img, row, col)
				a.Init = from.of(img, row, col)
				a.Add = add.of(img, row, col)
				a.C = to.of(img, row, col)
				p.set.Run(a, end-img, s.width)
			}
		}
		img = end
	}
}
