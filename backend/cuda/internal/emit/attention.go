package emit

import (
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// Attention is scaled_dot_product_attention for tensor cores, in the form of
// FlashAttention-2 (arXiv:2205.14135, 2307.08691): tiles of queries go over the
// keys and values by tiles, with the softmax of what they have seen so far, and
// scores are never in memory. Where few queries meet many keys, several blocks
// share the keys of a tile, and what they found is added up in their order.
//
// Its operands are out, the sums if there are any, query, key, value, and the mask
// if there is one.
type Attention struct {
	// DType is that of out, query, key and value: f16, bf16 or f32. Scores and sums
	// are f32s; f16s and bf16s are rounded to these before they meet values.
	DType ir.DType
	// Mask is bool or a float of up to 32 bits; Invalid if there is no mask.
	Mask ir.DType
	// TF32 lets f32s be rounded to TF32; otherwise each is two TF32s, whose products
	// miss 2⁻²² of f32's.
	TF32 bool
	// Batch has six dimensions at most, Heads among them.
	Batch                          []int
	Queries, Keys, Dim, ValueDim   int
	Scale                          float64
	Causal                         bool
	Out, Query, Key, Value, MaskAt Lie
	// Sums says that there is a dense f32 for each query in the operand behind out: the
	// logarithm to base 2 of the sum of its exponentials, +Inf if it sees nothing.
	Sums bool
	// Packed says that addresses are multiples of 16 bytes, and so are the strides of
	// rows and batch; columns lie beside each other.
	Packed bool
}

// Lie is how an operand of attention lies: strides in elements.
type Lie struct {
	Row, Col int
	Batch    []int
}

// attentionWidths are the lengths of rows that kernels are written for; others are
// filled up with zeros.
var attentionWidths = []int{32, 64, 96, 128, 192, 256}

// width returns the first of attentionWidths for rows of n elements; 0 if there is
// none.
func width(n int) int {
	for _, w := range attentionWidths {
		if n <= w {
			return w
		}
	}
	return 0
}

// Takes reports whether there is a kernel on a device.
func (g *Attention) Takes(dev Limits) bool {
	most := map[ir.DType]int{ir.F16: 256, ir.BF16: 256, ir.F32: 128}[g.DType]
	switch g.Mask {
	case ir.Invalid, ir.Bool, ir.F16, ir.BF16, ir.F32:
	default:
		return false
	}
	return dev.Tensor && g.Dim > 0 && max(g.Dim, g.ValueDim) <= most && len(g.Batch) <= 6
}

const (
	attentionThreads = 128 // attention_threads of attention.cuh
	// splitBlocks and splitKeys say when keys are shared: by so many blocks in all, of
	// so many keys at least.
	splitBlocks, splitKeys = 128, 256
)

// shape returns the rows of a block and the keys of a tile, as AttentionShape.
func (g *Attention) shape() (rows, keys int) {
	widest := max(width(g.Dim), width(g.ValueDim))
	bytes := widest * g.DType.Size()
	rows, keys = 64, 64
	if bytes <= 128 && g.Packed && g.Mask == ir.Invalid {
		rows = 128
	}
	switch {
	case widest > 192:
		keys = 16
	case bytes > 256:
		keys = 32
	}
	return rows, keys
}

// Plan returns how it is launched.
func (g *Attention) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	batch := numel(g.Batch)
	rows, tile := g.shape()
	blocks := batch * ceil(g.Queries, rows)
	if blocks == 0 || g.ValueDim == 0 {
		return &r.Plan
	}
	splits, share := 1, ceil(max(g.Keys, 1), tile)*tile
	if blocks < splitBlocks && g.Keys >= 2*splitKeys {
		share = ceil(ceil(g.Keys, min(ceil(splitBlocks, blocks), g.Keys/splitKeys)), tile) * tile
		splits = ceil(g.Keys, share)
	}
	first := 1
	sums := -1
	if g.Sums {
		sums, first = 1, 2
	}
	s := g.operands(&slots{}, 0, sums, first)
	if splits > 1 {
		s.at(Work, r.alloc(4*splits*batch*g.Queries*g.ValueDim)).at(Work, r.alloc(4*splits*batch*g.Queries))
	} else {
		s.num(0, 0)
	}
	g.sizes(s).num(splits, share)
	f := fmt.Sprintf("attention<%s, %s, %d, %d, %v>", g.products(), g.masks(), width(g.Dim), width(g.ValueDim), g.Packed)
	r.launch(f, "AttentionFrame", s, [3]int{dev.blocks(blocks * splits), 1, 1}, [3]int{attentionThreads, 1, 1})
	if splits > 1 {
		join := &slots{slices.Clone(s.words), slices.Clone(s.addresses)}
		r.each(fmt.Sprintf("attention_join<%s>", cxx.Stored(g.DType)), "AttentionFrame", join, batch*g.Queries*g.ValueDim)
	}
	return &r.Plan
}

// products names the way to multiply.
func (g *Attention) products() string {
	if g.DType == ir.F32 {
		return fmt.Sprintf("Singles<%v>", !g.TF32)
	}
	return fmt.Sprintf("Pairs<%s>", cxx.Stored(g.DType))
}

func (g *Attention) masks() string {
	if g.Mask == ir.Invalid {
		return "Never"
	}
	return cxx.Stored(g.Mask)
}

// operands adds what an AttentionFrame begins with: of the operands with the numbers
// of out, of the sums, or -1 if there are none, and of query; the rest follow.
func (g *Attention) operands(s *slots, out, sums, query int) *slots {
	s.at(out, 0).lie(g.Out)
	for i, l := range []Lie{g.Query, g.Key, g.Value} {
		s.at(query+i, 0).lie(l)
	}
	if g.Mask != ir.Invalid {
		s.at(query+3, 0).lie(g.MaskAt)
	} else {
		s.num(0).lie(Lie{})
	}
	if sums >= 0 {
		return s.at(sums, 0)
	}
	return s.num(0)
}

// lie adds the strides of a Strided.
func (s *slots) lie(l Lie) *slots { return s.num(l.Row, l.Col).six(l.Batch) }

// six adds an array of six, filled up with 0.
func (s *slots) six(values []int) *slots {
	var all [6]int
	copy(all[:], values)
	return s.num(all[:]...)
}

// sizes adds what an AttentionFrame has behind addresses, up to the splits.
func (g *Attention) sizes(s *slots) *slots {
	s.num(len(g.Batch)).six(g.Batch).num(numel(g.Batch), g.Queries, g.Keys, g.Dim, g.ValueDim)
	causal := 0
	if g.Causal {
		causal = 1
	}
	s.num(causal)
	s.words = append(s.words, math.Float64bits(g.Scale*math.Log2E))
	return s
}
