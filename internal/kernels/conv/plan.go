package conv

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/kernels/tile"
)

const (
	// blockPixels is how many output positions a unit aims at: enough to use
	// each block of filters many times from the first-level cache.
	blockPixels = 256
	// panelBytes bounds the block of filters that all positions of a unit meet
	// before the next. It stays in the first-level cache; and so few products are
	// summed one after another, since sums of sums err less.
	panelBytes = 20 << 10
	// innerChannels is from how many channels on a copy has them innermost, though
	// the image has not: its rows are then read along lines of the cache, and the
	// taps of a row are one segment.
	innerChannels = 8
	// regionBytes bounds the part of the image that a unit copies.
	regionBytes = 512 << 10
	// maxDepths bounds the depth of a unit.
	maxDepths = 4
	// unitsPerWorker is how many units a processor gets at least, if the work
	// can be cut so.
	unitsPerWorker = 4
	// workGrain is how many multiplications are worth a goroutine.
	workGrain = 1 << 20
	// badStep is a distance between pixels that puts them all in one set of the
	// first-level cache.
	badStep = 4096
)

// Plan is how a convolution of one Geometry and pair of layouts is computed.
type Plan[A Float] struct {
	g Geometry
	// channels is the input channels of a group; those of g are words in a plan of
	// the form Pairs, and groups in a depthwise one.
	channels int
	set      *tile.Set[A]
	x, y     Layout
	size     int // bytes of an A
	form     Form
	// filters are packed ones without memory: in the plan's form, and plain.
	filters, plain Weights[A]

	columnwise bool   // a depthwise convolution
	across     bool   // the rows of a tile are positions of one place in several images
	direct     bool   // the image is read where it lies
	region     Layout // of the image as tiles see it: x's, or that of the copy
	regLen     int    // elements of the copy of one image's part
	// The outputs of a unit are images×depths×rows×cols positions.
	images, depths, rows, cols int
	chunk                      int // panels of a unit
	panels                     int
	tableRow                   []planPhase
	coefIn, coefOut            int // elements between Winograd's coefficients
	units                      int
	grain                      int // units that are worth a goroutine
}

// planPhase is a phase with the outputs that an image of this Geometry has, or those phases of the last
// dimension together that are alike in the others. Their outputs alternate, so that whole rows of the
// result are stored.
type planPhase struct {
	dims    [3]dim // without the taps of the last
	members []member
	depth   int    // products in an output, of the deepest member
	count   [3]int // outputs of the largest member
	min     [3]int // smallest offset of a tap
	span    [3]int // largest less smallest
	blocks  [2]int // of rows and columns
	first   int    // unit
}

// member is one phase.
type member struct {
	index int // in the Weights
	depth int
	taps  []tap // in the last dimension
	segs  []int // offsets in bytes
	run   int   // steps of a segment
	kStep int   // bytes between steps
	cuts  []cut
}

// cut is a block of the depth: segments seg..seg+n-1, of each the steps
// from..from+run-1. It begins at row k of the filters.
type cut struct{ seg, n, from, run, k int }

// New plans a convolution of images with the given layouts, cut into units that
// so many goroutines can share, on which results do not depend. T is the type of
// the images: plans depend on whether they can be read without conversion. once
// says that filters are packed for each run.
func New[T Element, A Float](g Geometry, x, y Layout, threads int, once bool) *Plan[A] {
	set := tile.Best[A]()
	form := formOf(&g, set, once)
	if form == Plain && isa.FastBF16Pairs() && inPairs[T](&g) {
		form = Pairs
	}
	return newPlan[T](g, x, y, set, threads, form)
}

func newPlan[T Element, A Float](g Geometry, x, y Layout, set *tile.Set[A], procs int, form Form) *Plan[A] {
	p := &Plan[A]{g: g, set: set, form: form, filters: *newWeights(g, form, set), size: int(unsafe.Sizeof(*new(A)))}
	if form == Winograd {
		p.plain = *newWeights(g, Plain, set)
	}
	if form == Pairs {
		p.set = p.filters.set
	}
	if p.columnwise = g.depthwise(); p.columnwise {
		g.CIn, g.COut, g.Groups = g.Groups, g.Groups, 1
	}
	p.channels = g.CIn
	g.CIn = form.depth(g.CIn)
	p.panels = ceil(g.COut, set.Width)
	p.g, p.x, p.y = flatten(g, x, y)
	if p.g.empty() {
		return p
	}
	inside := p.phaseList()
	p.depths = 1
	_, same := any(*new(T)).(A)
	p.direct = same && inside && form == Plain && p.readable()
	if form == Winograd {
		p.blockWinograd(procs)
	} else {
		p.block(procs)
	}
	p.layRegion()
	for i := range p.tableRow {
		ph := &p.tableRow[i]
		for k := range ph.members {
			if p.columnwise {
				p.depthwiseTable(ph, &ph.members[k])
			} else {
				p.table(ph, &ph.members[k])
			}
		}
	}
	p.count()
	return p
}

// flatten turns a convolution whose kernel is one position into one over a
// single row, and over a single image, as far as the layouts allow.
func flatten(g Geometry, x, y Layout) (Geometry, Layout, Layout) {
	ones := [3]int{1, 1, 1}
	if g.Transposed || g.Kernel != ones || g.Stride != ones || g.Pad != [3]int{} || g.In != g.Out {
		return g, x, y
	}
	for d := 1; d >= 0; d-- {
		if x.Spatial[d] == x.Spatial[2]*g.In[2] && y.Spatial[d] == y.Spatial[2]*g.In[2] || g.In[d] == 1 {
			g.In[2] *= g.In[d]
			g.In[d] = 1
			x.Spatial[d], y.Spatial[d] = 0, 0
		} else {
			break
		}
	}
	if g.In[0]*g.In[1] == 1 && x.Batch == x.Spatial[2]*g.In[2] && y.Batch == y.Spatial[2]*g.In[2] {
		g.In[2] *= g.N
		g.N = 1
	}
	g.Out = g.In
	return g, x, y
}

// phaseList fills in the phases and reports whether all taps of all outputs
// are inside the image.
func (p *Plan[A]) phaseList() bool {
	inside := true
	phases := p.g.phases()
	together := 1 // of the last dimension, which are innermost in the list
	if p.g.Transposed && p.y.Channel != 1 {
		together = p.g.Stride[2]
	}
	for i := 0; i < len(phases); i += together {
		pp := planPhase{dims: phases[i].dims}
		var cols []tap
		for k := range together {
			ph := &phases[i+k]
			cols = append(cols, ph.dims[2].taps...)
			pp.members = append(pp.members, member{index: i + k, depth: ph.depth, taps: ph.dims[2].taps})
			pp.depth = max(pp.depth, ph.depth)
		}
		pp.dims[2].taps = cols
		for d, dm := range pp.dims {
			if dm.first < p.g.Out[d] {
				pp.count[d] = (p.g.Out[d] - dm.first + dm.step - 1) / dm.step
			}
			lo, hi := 0, 0
			if len(dm.taps) > 0 {
				lo, hi = math.MaxInt, math.MinInt
			}
			for _, t := range dm.taps {
				lo, hi = min(lo, t.off), max(hi, t.off)
			}
			pp.min[d], pp.span[d] = lo, hi-lo
			if lo < 0 || (pp.count[d]-1)*p.g.inStep(d)+hi >= p.g.In[d] {
				inside = false
			}
		}
		if together > 1 {
			pp.dims[2].step = 1
		}
		if pp.count[0]*pp.count[1]*pp.count[2] > 0 {
			p.tableRow = append(p.tableRow, pp)
		}
	}
	return inside
}

// readable reports whether tiles can read the image well where it lies.
func (p *Plan[A]) readable() bool {
	if p.columnwise {
		return p.x.Channel == 1 && p.g.CIn%p.set.Lanes() == 0
	}
	step := p.x.Spatial[2] * p.g.inStep(2) * p.size
	if p.x.Channel == 1 {
		return step%badStep != 0 || p.g.Out[2] < 8
	}
	return p.x.Spatial[2] == 1
}

// channelsInner reports whether channels are innermost in what tiles read.
func (p *Plan[A]) channelsInner() bool {
	return p.columnwise || p.form != Plain || !p.direct && p.g.CIn >= innerChannels || p.x.Spatial[2] != 1 || p.x.Channel == 1
}

// block chooses the outputs of a unit.
func (p *Plan[A]) block(procs int) {
	most := [3]int{}
	span := [3]int{}
	for i := range p.tableRow {
		for d := range most {
			most[d] = max(most[d], p.tableRow[i].count[d])
			span[d] = max(span[d], p.tableRow[i].span[d])
		}
	}
	wide := p.set.Rows(tile.One)
	pixels := blockPixels
	if p.columnwise {
		pixels = max(depthwiseElements/p.g.CIn, wide)
	}
	if p.across = !p.columnwise && p.acrossImages(most[2]); p.across {
		p.blockAcross(procs, most, span)
		return
	}
	p.images = 1
	p.cols = most[2]
	if p.cols > pixels*2 {
		p.cols = balanced(p.cols, max(pixels/wide, 1)*wide)
	}
	p.rows = min(max(pixels/p.cols, 1), most[1])
	if span[0] > 0 && most[1]*p.cols <= 2*pixels { // a whole plane, of which units can have several
		p.rows = most[1]
	}
	if !p.direct {
		p.fewerRows(span, regionBytes)
	}
	if p.rows == most[1] && p.cols == most[2] {
		p.images = min(max(pixels/(p.rows*p.cols), 1), p.g.N)
	}
	if p.columnwise {
		p.panels = 1
	} else if p.rows*p.cols == most[1]*most[2] && p.images == 1 && !p.direct {
		p.moreDepths(most[0], span)
	}
	p.chunk = p.panels
	for procs > 1 && p.total() < unitsPerWorker*procs {
		switch {
		case p.images > 1:
			p.images = (p.images + 1) / 2
		case p.depths > 1:
			p.depths = (p.depths + 1) / 2
		case p.rows*p.cols > 4*wide && p.rows > 1:
			p.rows = (p.rows + 1) / 2
		case p.chunk > 2:
			p.chunk = (p.chunk + 1) / 2
		case p.cols > 4*wide:
			p.cols = balanced(p.cols, (p.cols/2+wide-1)/wide*wide)
		default:
			return
		}
	}
}

// moreDepths makes units of whole planes deeper, so that they copy each plane of the image fewer times.
func (p *Plan[A]) moreDepths(most int, span [3]int) {
	for span[0] > 0 && p.depths < min(maxDepths, most) && 2*p.extent(p.rows, p.cols, span)*p.size < regionBytes {
		p.depths++
	}
	p.depths = ceil(most, ceil(most, p.depths))
}

// fewerRows halves the rows of a unit until the part of the image that they meet has so many bytes at
// most, or until fewer rows need hardly less of it, since the kernel is as large.
func (p *Plan[A]) fewerRows(span [3]int, most int) {
	for p.rows > 1 && p.extent(p.rows, p.cols, span)*p.size > most {
		half := (p.rows + 1) / 2
		if 4*p.extent(half, p.cols, span) > 3*p.extent(p.rows, p.cols, span) {
			return
		}
		p.rows = half
	}
}

// total returns how many units the blocks make.
func (p *Plan[A]) total() int {
	n := 0
	for i := range p.tableRow {
		c := &p.tableRow[i].count
		n += ceil(c[0], p.depths) * ceil(c[1], p.rows) * ceil(c[2], p.cols)
	}
	return n * ceil(p.g.N, p.images) * p.g.Groups * ceil(p.panels, p.chunk)
}

// balanced returns the size of blocks of about the given size that divide n
// evenly.
func balanced(n, size int) int {
	size = max(size, 1)
	blocks := ceil(n, size)
	wide := 14
	return min(size, ceil(ceil(n, blocks), wide)*wide)
}

func ceil(n, d int) int { return (n + d - 1) / d }

// extent returns the elements of the image that rows×cols outputs meet.
func (p *Plan[A]) extent(rows, cols int, span [3]int) int {
	return p.g.CIn * ((p.depths-1)*p.g.inStep(0) + span[0] + 1) * ((rows-1)*p.g.inStep(1) + span[1] + 1) * ((cols-1)*p.g.inStep(2) + span[2] + 1)
}

// layRegion chooses the layout of the copies.
func (p *Plan[A]) layRegion() {
	if p.direct {
		p.region = p.x
		return
	}
	var ext [3]int
	for i := range p.tableRow {
		span := p.tableRow[i].span
		ext[0] = max(ext[0], (p.depths-1)*p.g.inStep(0)+span[0]+1)
		ext[1] = max(ext[1], (p.rows-1)*p.g.inStep(1)+span[1]+1)
		ext[2] = max(ext[2], (p.cols-1)*p.g.inStep(2)+span[2]+1)
	}
	if p.form == Winograd {
		span := p.tableRow[0].span
		ext[1], ext[2] = covered(p.rows)+span[1], covered(p.cols)+span[2]
	}
	r := &p.region
	line := lineBytes / p.size
	if p.channelsInner() {
		c := p.g.CIn
		if p.columnwise {
			c = padded(p.set, c)
		} else if c*p.g.inStep(2)*p.size%badStep == 0 {
			c += line
		}
		r.Channel = 1
		r.Spatial = [3]int{ext[1] * ext[2] * c, ext[2] * c, c}
		p.regLen = ext[0] * r.Spatial[0]
	} else {
		r.Spatial = [3]int{ext[1] * ext[2], ext[2], 1}
		// An odd number of lines spreads the channels over the cache.
		r.Channel = (ceil(ext[0]*r.Spatial[0], line) | 1) * line
		p.regLen = p.g.CIn * r.Channel
	}
	if p.across { // so that the images of a tile spread over the cache, too
		p.regLen = (ceil(p.regLen, line) | 1) * line
	}
}

// table lists the segments of a member of a phase.
func (p *Plan[A]) table(ph *planPhase, m *member) {
	r := &p.region
	m.run, m.kStep = p.g.CIn, r.Channel*p.size
	cols := m.taps
	if r.Channel == 1 && r.Spatial[2] == p.g.CIn && consecutive(cols) {
		m.run *= len(cols)
		cols = cols[:1]
	}
	if m.run == 0 {
		return
	}
	for _, t0 := range ph.dims[0].taps {
		for _, t1 := range ph.dims[1].taps {
			for _, t2 := range cols {
				off := (t0.off-ph.min[0])*r.Spatial[0] + (t1.off-ph.min[1])*r.Spatial[1] + (t2.off-ph.min[2])*r.Spatial[2]
				m.segs = append(m.segs, off*p.size)
			}
		}
	}
	most := max(panelBytes/(p.set.Width*p.size), 1)
	if m.run > most {
		n := ceil(m.run, most)
		for s := range m.segs {
			for i := range n {
				from, to := i*m.run/n, (i+1)*m.run/n
				m.cuts = append(m.cuts, cut{s, 1, from, to - from, s*m.run + from})
			}
		}
		return
	}
	n := ceil(len(m.segs), most/m.run)
	for i := range n {
		from, to := i*len(m.segs)/n, (i+1)*len(m.segs)/n
		m.cuts = append(m.cuts, cut{from, to - from, 0, m.run, from * m.run})
	}
}

func consecutive(t []tap) bool {
	for i := range t {
		if t[i].off != t[0].off+i {
			return false
		}
	}
	return len(t) > 0
}

func (p *Plan[A]) count() {
	work := 0
	for i := range p.tableRow {
		ph := &p.tableRow[i]
		ph.first = p.units
		for k := range ph.members {
			work += p.g.N * p.g.Groups * p.g.COut * ph.count[0] * ph.count[1] * ph.count[2] * ph.members[k].depth
		}
		ph.blocks = [2]int{ceil(ph.count[1], p.rows), ceil(ph.count[2], p.cols)}
		p.units += ceil(p.g.N, p.images) * p.g.Groups * ceil(ph.count[0], p.depths) * ph.blocks[0] * ph.blocks[1] * ceil(p.panels, p.chunk)
	}
	if p.grain = 1; !p.columnwise { // whose loops wait for memory
		p.grain = ceil(workGrain, max(work/max(p.units, 1), 1))
	}
}

// Form returns the form of the filters that the plan is for.
func (p *Plan[A]) Form() Form { return p.form }

// Units returns the number of independent units of work.
func (p *Plan[A]) Units() int { return p.units }
