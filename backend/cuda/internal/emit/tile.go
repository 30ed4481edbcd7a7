package emit

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Post is what happens to each result of a product or convolution before it is
// rounded and written: links in their order, an addend, an activation. Its operands
// follow those of what it belongs to: one for each link, then the addend.
type Post struct {
	Links  []Link
	Addend bool // of the dtype and dimensions of the result
	Act    Activation
}

// Link is an operation on a result and a number, or the element of a dense vector
// along the channels.
type Link struct {
	Op     ir.Op // add, sub, mul or div
	Vector bool
}

// Activation is a function of one element.
type Activation uint8

// The activations, with the numbers of tile.cuh.
const (
	Identity Activation = iota
	ReLU
	GELU
	GELUTanh
	SiLU
	Sigmoid
	Tanh
)

// MaxLinks is how many links a Post may have, max_links of tile.cuh.
const MaxLinks = 9

var linkOps = map[ir.Op]int{aten.Add: 0, aten.Sub: 1, aten.Mul: 2, aten.Div: 3}

func (p *Post) empty() bool { return len(p.Links) == 0 && !p.Addend && p.Act == Identity }

// tail returns the slots of a Tail. first is the number of the first operand of the
// Post; result i is of channel i/inner mod channels.
func (p *Post) tail(total, parts, inner, channels, first int) *slots {
	s := (&slots{}).at(0, 0)
	if parts > 1 {
		s.at(Work, 0)
	} else {
		s.num(0)
	}
	s.num(total, parts, inner, channels)
	if p.Addend {
		s.at(first+len(p.Links), 0)
	} else {
		s.num(0)
	}
	s.num(int(p.Act), len(p.Links))
	for i, l := range p.Links {
		step := 0
		if l.Vector {
			step = 1
		}
		s.at(first+i, 0).num(step, linkOps[l.Op])
	}
	return s.num(make([]int, 3*(MaxLinks-len(p.Links)))...)
}

// extend appends the slots of a part of a frame.
func (s *slots) extend(t *slots) *slots {
	for _, a := range t.addresses {
		a.Slot += len(s.words)
		s.addresses = append(s.addresses, a)
	}
	s.words = append(s.words, t.words...)
	return s
}

// summedSize returns the bytes of what a dtype is summed in.
func summedSize(d ir.DType) int { return max(4, loop.ComputeDType(d).Size()) }

// The ways of tile.cuh by which rows come to shared memory, and what multiplies.
const (
	byChunks, acrossRows, alongDepth = "by_chunks", "across_rows", "along_depth"
	byFMA, byMMA, byTF32             = "by_fma", "by_mma", "by_tf32"
)

// Chunk is how many bytes tensor cores want to have together: what by_chunks copies
// at once.
const Chunk = 16

// tiling is a product of m left rows with n right ones, of depth k, many times.
type tiling struct {
	problem     string // the type, in C++
	dtype       ir.DType
	batch       int
	m, n, k     int
	left, right string // ways
	tf32        bool
	post        *Post
	// total is the number of results; result i is of channel i/inner mod channels.
	total, inner, channels int
	// operands is how many there are before those of post.
	operands int
	// twice asks the compiler for so few registers that a processor has two blocks of
	// the largest tiles, which is known not to spill them.
	twice bool

	// What choose finds: the tile and the parts of the depth.
	bm, bn, parts int
}

// shapes are the tiles, in the order in which they are preferred. Sums of 8 bytes
// have registers for the last ones only.
var shapes = [][2]int{{128, 128}, {128, 64}, {64, 128}, {128, 32}, {32, 128}, {64, 64}}

const (
	smallShapes = 3
	// maxDepthParts bounds the parts of the depth, maxPartBytes what the sums of all of
	// them may take; a part has leastSteps at least.
	maxDepthParts = 64
	maxPartBytes  = 64 << 20
	leastSteps    = 4
	// warpsBusy is how many warps a processor needs to be busy.
	warpsBusy = 8
)

// What things take, in cycles of a processor: a row of a step to come, a result to
// be written, a block to begin, one more launch, and a sum to be read again. They are
// about those of sm_80 and sm_90.
const (
	rowCycles, resultCycles, blockCycles, launchCycles, sumCycles = 0.5, 0.1, 3000, 4000, 0.5
)

// rate returns how many multiply-adds a processor does in a cycle.
func (t *tiling) rate(unit string) float64 {
	switch {
	case unit == byMMA:
		return 512
	case unit == byTF32:
		return 256
	case summedSize(t.dtype) > 4:
		return 32
	}
	return 128
}

// choose finds the tile and the parts with which the busiest processor is done
// first.
func (t *tiling) choose(dev Limits) {
	list := shapes
	if summedSize(t.dtype) > 4 {
		list = shapes[len(shapes)-smallShapes:]
	}
	deep := 64 / t.dtype.Size()
	steps := ceil(t.k, deep)
	cycles := float64(deep) / t.rate(t.unit(dev)) // of a result in a step
	best := math.Inf(1)
	for _, s := range list {
		blocks := t.batch * ceil(t.m, s[0]) * ceil(t.n, s[1])
		for parts := 1; parts <= maxDepthParts; parts = max(parts+1, parts*5/4) {
			if parts > 1 && (steps < leastSteps*parts || parts*t.total*summedSize(t.dtype) > maxPartBytes) {
				break
			}
			time := blockTime(s, ceil(blocks*parts, dev.Processors), ceil(steps, parts), cycles)
			if parts > 1 {
				time += launchCycles + sumCycles*float64(t.total*(parts+1))/float64(dev.Processors)
			}
			if time < best {
				best, t.bm, t.bn, t.parts = time, s[0], s[1], parts
			}
		}
	}
}

// blockTime returns how long a processor takes for some blocks.
func blockTime(shape [2]int, blocks, steps int, cycles float64) float64 {
	m, n := float64(shape[0]), float64(shape[1])
	each := float64(steps)*(cycles*m*n+rowCycles*(m+n)) + resultCycles*m*n + blockCycles
	warps := warpsOf(shape)
	idle := max(1, float64(warpsBusy)/float64(warps*min(blocks, ceil(warpsBusy, warps))))
	return float64(blocks) * each * idle
}

// warpsOf returns the warps of a block, TileForm::warps of tile.cuh.
func warpsOf(shape [2]int) int {
	rows := 32
	if shape[0] >= 64 && shape[0]*shape[1] >= 8192 {
		rows = 64
	}
	return shape[0] / rows * (shape[1] / 32)
}

// tiled adds the launches of a tiling. rest are the slots of the frame between the
// numbers of tiles and the tail.
func (r *routine) tiled(t *tiling, frame string, s, rest *slots) {
	if t.total == 0 {
		return
	}
	t.choose(r.dev)
	if t.parts > 1 {
		r.alloc(t.parts * t.total * summedSize(t.dtype))
	}
	tail := t.post.tail(t.total, t.parts, t.inner, t.channels, t.operands)
	down, across := ceil(t.m, t.bm), ceil(t.n, t.bn)
	s = s.num(t.batch, down, across).extend(rest).extend(tail)
	post := !t.post.empty()
	function := fmt.Sprintf("tiles<%s, TileForm<%d, %d, %s, %s, %s, %v>>", t.problem, t.bm, t.bn, t.left, t.right, t.unit(r.dev), post && t.parts == 1)
	r.launch(function, frame, s, [3]int{r.dev.blocks(t.batch * down * across * t.parts), 1, 1}, [3]int{32 * warpsOf([2]int{t.bm, t.bn}), 1, 1})
	if l := &r.Launches[len(r.Launches)-1]; t.twice && t.bm*t.bn == 128*128 {
		l.Source = func() string { return librarySource("__launch_bounds__(256, 2) "+l.Entry, frame, function) }
	}
	if t.parts > 1 {
		r.each(fmt.Sprintf("join_parts<%s, %v>", cxx.Stored(t.dtype), post), "Tail", (&slots{}).extend(tail), t.total)
	}
}

// unit returns what multiplies.
func (t *tiling) unit(dev Limits) string {
	switch {
	case !dev.Tensor:
	case t.dtype == ir.F16 || t.dtype == ir.BF16:
		return byMMA
	case t.dtype == ir.F32 && t.tf32:
		return byTF32
	}
	return byFMA
}

// way returns how rows come to shared memory that have so many elements from one to
// the next and within a row, begin at a multiple of align bytes, and of which each
// first element of others is a multiple of elements away from the first.
func way(dev Limits, d ir.DType, align, row, step int, others ...int) string {
	if step != 1 {
		return acrossRows
	}
	for _, n := range append(others, row) {
		if n*d.Size()%Chunk != 0 {
			return alongDepth
		}
	}
	if !dev.Tensor || align%Chunk != 0 {
		return alongDepth
	}
	return byChunks
}
