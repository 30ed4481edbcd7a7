package emit

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

const (
	// tileEdge and tileThreads are tile_edge and tile_threads of product.cuh. Every
	// device has blocks of so many threads.
	tileEdge    = 64
	tileThreads = 256
)

// Product is a batch of matrix products of M×K with K×N. Its operands are dst,
// which is dense, x and y.
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
}

// Plan returns how it is launched.
func (g *Product) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	batch := numel(g.Batch)
	s := (&slots{}).at(0, 0).at(1, 0).at(2, 0).num(batch, g.M, g.N, g.K, g.XRow, g.XCol, g.YRow, g.YCol)
	s.num(len(g.Batch)).array(g.Batch).array(g.XBatch).array(g.YBatch)
	r.product(fmt.Sprintf("product<Matrices<%s>>", stored(g.DType)), "ProductFrame", s, batch, g.M, g.N)
	return &r.Plan
}

// product adds the launch that computes m×n results for each of a batch.
func (r *routine) product(function, frame string, s *slots, batch, m, n int) {
	if tiles := batch * ceil(m, tileEdge) * ceil(n, tileEdge); tiles > 0 {
		r.launch(function, frame, s, [3]int{r.dev.blocks(tiles), 1, 1}, [3]int{tileThreads, 1, 1})
	}
}

// Window is how a filter or a window of three dimensions goes over a tensor. What
// has fewer dimensions has leading ones of size 1, step 1 and no padding.
type Window struct {
	In, Out, Kernel, Stride, Pad, Dilation [3]int
}

func (w *Window) slots(s *slots) *slots {
	for _, v := range [][3]int{w.In, w.Out, w.Kernel, w.Stride, w.Pad, w.Dilation} {
		s.num(v[:]...)
	}
	return s
}

// Convolution is ATen's, forwards or transposed. Its operands are dst, which is
// dense, x, the filters and, if there is one, the dense bias.
type Convolution struct {
	Window
	DType                   ir.DType // a float; narrow ones are summed in f32
	Images, Groups          int
	Channels, Results       int // of the input and of the result in a group
	Transposed, Bias        bool
	XImage, XChannel        int // strides of x in elements
	XAt                     [3]int
	FGroup, FResult, FInput int // strides of the filters in elements: by group, and by channel of each side
	FAt                     [3]int
}

// Plan returns how it is launched.
func (g *Convolution) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	m, k := g.Images*numel(g.Out[:]), g.Channels*numel(g.Kernel[:])
	s := (&slots{}).at(0, 0).at(1, 0).at(2, 0)
	if g.Bias {
		s.at(3, 0)
	} else {
		s.num(0)
	}
	s = g.slots(s.num(g.Groups, m, g.Results, k)).num(g.Channels, g.XImage, g.XChannel).num(g.XAt[:]...)
	s.num(g.FGroup, g.FResult, g.FInput).num(g.FAt[:]...)
	r.product(fmt.Sprintf("product<Convolution<%s, %v>>", stored(g.DType), g.Transposed), "ConvFrame", s, g.Groups, m, g.Results)
	return &r.Plan
}

// MaxPool is the largest element of each window and where it is. Its operands are
// the values, their i64 indices and x, all dense.
type MaxPool struct {
	Window
	DType ir.DType // any but bool
	Batch int      // the product of the dimensions before those of the window
}

// Plan returns how it is launched.
func (g *MaxPool) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if n := g.Batch * numel(g.Out[:]); n > 0 {
		s := g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).num(n))
		r.each(fmt.Sprintf("max_pool<%s>", stored(g.DType)), "PoolFrame", s, n)
	}
	return &r.Plan
}
