package emit

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// Product is a batch of matrix products of M×K with K×N. Its operands are dst,
// which is dense, x, y, and those of Post, whose channels are the columns.
type Product struct {
	// DType is that of all operands: any that is computed with. Narrow floats are
	// summed in f32; integers wrap, and a bool is true if a product is.
	DType   ir.DType
	M, N, K int
	// Strides in elements: of x along m and k, of y along k and n.
	XRow, XCol, YRow, YCol int
	// Batch are the dimensions of the batch, eight at most, XBatch and YBatch the
	// strides in elements of the operands along them.
	Batch, XBatch, YBatch []int
	// XAlign and YAlign are what the addresses of x and y are multiples of.
	XAlign, YAlign int
	TF32           bool // f32s may be rounded to TF32
	Post           Post
}

// Plan returns how it is launched.
func (g *Product) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	batch := numel(g.Batch)
	t := &tiling{
		problem: fmt.Sprintf("Matrices<%s>", cxx.Stored(g.DType)), dtype: g.DType, batch: batch, m: g.M, n: g.N, k: g.K, tf32: g.TF32, post: &g.Post,
		left:  way(dev, g.DType, g.XAlign, g.XRow, g.XCol, g.XBatch...),
		right: way(dev, g.DType, g.YAlign, g.YCol, g.YRow, g.YBatch...),
		total: batch * g.M * g.N, inner: 1, channels: g.N, operands: 3,
	}
	rest := (&slots{}).num(g.M, g.N, g.K, g.XRow, g.XCol, g.YRow, g.YCol, len(g.Batch)).array(g.Batch).array(g.XBatch).array(g.YBatch)
	r.tiled(t, "ProductFrame", (&slots{}).at(1, 0).at(2, 0), rest)
	return &r.Plan
}

// Convolution is ATen's, forwards or transposed. Its operands are dst, which is
// dense, x, the filters, and those of Post, whose channels are the result's.
type Convolution struct {
	Window
	DType                   ir.DType // a float; narrow ones are summed in f32
	Images, Groups          int
	Channels, Results       int // of the input and of the result in a group
	Transposed              bool
	XImage, XChannel        int // strides of x in elements
	XAt                     [3]int
	FGroup, FResult, FInput int // strides of the filters in elements: by group, and by channel of each side
	FAt                     [3]int
	// XAlign and FAlign are what the addresses of x and of the filters are multiples
	// of.
	XAlign, FAlign int
	TF32           bool // f32s may be rounded to TF32
	Post           Post

	first int // where the first tap of a filter is
}

const (
	// FewResults is how many channels of a group leave most of a tile empty: they are
	// computed one by one.
	FewResults = 2
	// longDepth is from how many products on a block computes a result.
	longDepth = 512
	// rowsEach is how many results below each other a thread computes, which share
	// what it takes to find them.
	rowsEach = 4
)

// Plan returns how it is launched.
func (g *Convolution) Plan(dev Limits) *Plan {
	if g.Transposed && g.Stride == [3]int{1, 1, 1} {
		g = g.straight()
	}
	r := &routine{dev: dev}
	total := g.Images * g.Groups * g.Results * numel(g.Out[:])
	depth := g.Channels * numel(g.Kernel[:])
	post := !g.Post.empty()
	kind := fmt.Sprintf("%s, %v", cxx.Stored(g.DType), g.Transposed)
	switch {
	case total == 0:
	case g.Results > FewResults && g.small():
		t := g.tiling(dev)
		frame, rest := g.slots()
		r.tiled(t, "ConvFrame", frame, rest)
	default:
		frame, rest := g.slots()
		s := frame.num(0, 0, 0).extend(rest).extend(g.Post.tail(total, 1, numel(g.Out[:]), g.Groups*g.Results, 3))
		if depth >= longDepth && total < dev.Processors*dev.Threads {
			b := dev.block()
			r.launch(fmt.Sprintf("convolve_sums<%s, %v>", kind, post), "ConvFrame", s, [3]int{dev.blocks(total), 1, 1}, [3]int{b, 1, 1})
		} else {
			rows := 1
			if !g.Transposed && g.Out[1] > 1 {
				rows = rowsEach
			}
			r.each(fmt.Sprintf("convolve_each<%s, %v, %d>", kind, post, rows), "ConvFrame", s, total/g.Out[1]*ceil(g.Out[1], rows))
		}
	}
	return &r.Plan
}

// straight returns a transposed convolution with steps of one as a convolution with
// the taps in reverse.
func (g *Convolution) straight() *Convolution {
	out := *g
	out.Transposed = false
	for d, k := range g.Kernel {
		out.Pad[d] = g.Dilation[d]*(k-1) - g.Pad[d]
		out.first += (k - 1) * g.FAt[d]
		out.FAt[d] = -g.FAt[d]
	}
	return &out
}

// tiling describes the product that it is: of the filters with what positions of
// all images see. A transposed one is a product for each phase.
func (g *Convolution) tiling(dev Limits) *tiling {
	t := &tiling{
		dtype: g.DType, batch: g.Groups, m: g.Results, n: g.Images, k: g.Channels, tf32: g.TF32, post: &g.Post,
		total: g.Images * g.Groups * g.Results * numel(g.Out[:]), inner: numel(g.Out[:]), channels: g.Groups * g.Results, operands: 3,
	}
	period := g.period()
	for d := range 3 {
		phases := 1
		if g.Transposed {
			phases = g.Stride[d]
		}
		t.batch *= phases
		t.n *= ceil(g.Out[d], phases)
		t.k *= ceil(g.Kernel[d], period[d])
	}
	taps := append([]int{g.FGroup, g.FResult}, g.FAt[:]...)
	last := way(dev, g.DType, g.XAlign, g.XImage, g.XChannel, append([]int{g.Channels}, g.XAt[:]...)...) == byChunks
	if last {
		t.right = byChunks
		t.left = way(dev, g.DType, g.FAlign, g.Channels, g.FInput, taps...)
	} else {
		t.right, t.left = acrossRows, alongDepth
		if g.lined() {
			t.left = way(dev, g.DType, g.FAlign, g.FResult, 1, g.FGroup)
		}
	}
	if t.left == acrossRows {
		t.left = alongDepth
	}
	t.twice = t.unit(dev) != byFMA && t.left == byChunks && last && !g.Transposed
	t.problem = fmt.Sprintf("Convolution<%s, %v, %v>", cxx.Stored(g.DType), g.Transposed, last)
	return t
}

// lined reports whether a filter lies in the order of the depth, which has the
// channels first.
func (g *Convolution) lined() bool {
	if g.Transposed {
		return false
	}
	n := 1
	for d := 2; d >= 0; d-- {
		if g.Kernel[d] > 1 && g.FAt[d] != n {
			return false
		}
		n *= g.Kernel[d]
	}
	return g.Channels == 1 || g.FInput == n
}

// period returns how far apart the taps are that a position of a transposed
// convolution meets.
func (g *Convolution) period() [3]int {
	p := [3]int{1, 1, 1}
	if g.Transposed {
		for d := range p {
			p[d] = g.Stride[d] / gcd(g.Stride[d], g.Dilation[d])
		}
	}
	return p
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// small reports whether positions, the depth, and how far it reaches in an image
// and a filter have 31 bits.
func (g *Convolution) small() bool {
	x, f := g.Channels*abs(g.XChannel), g.Channels*abs(g.FInput)
	for d := range 3 {
		x += g.Kernel[d] * g.Dilation[d] * abs(g.XAt[d])
		f += g.Kernel[d] * abs(g.FAt[d])
	}
	return max(x, f, g.Images*numel(g.Out[:]), g.Channels*numel(g.Kernel[:])) <= math.MaxInt32
}

func abs(n int) int { return max(n, -n) }

// slots returns those of the frame before the numbers of tiles, and between them
// and the tail.
func (g *Convolution) slots() (frame, rest *slots) {
	period := g.period()
	rest = (&slots{}).num(g.Results, g.Channels, g.Groups, g.Images)
	rest = g.Window.slots(rest).num(period[:]...).num(g.XImage, g.XChannel).num(g.XAt[:]...)
	return (&slots{}).at(1, 0).at(2, g.first*g.DType.Size()), rest.num(g.FGroup, g.FResult, g.FInput).num(g.FAt[:]...)
}
