//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// attentionDecompositions are PyTorch's kinds of attention for CUDA, which differ in their
// layouts and in what they return besides. What they compute is ir's.
var attentionDecompositions = map[string]decomposeFunc{
	"_scaled_dot_product_flash_attention": func(v values) (*decomposition, error) {
		a := attending{v: v, causal: causalIf(v.bool("is_causal", false)), extras: flashExtras}
		return a.decomposition()
	},
	"_scaled_dot_product_cudnn_attention": func(v values) (*decomposition, error) {
		a := attending{v: v, mask: "attn_bias", causal: causalIf(v.bool("is_causal", false)), extras: scalarExtras, column: true}
		return a.decomposition()
	},
	"_scaled_dot_product_fused_attention_overrideable": func(v values) (*decomposition, error) {
		a := attending{v: v, mask: "attn_bias", causal: causalIf(v.bool("is_causal", false)), extras: scalarExtras}
		return a.decomposition()
	},
	"_scaled_dot_product_efficient_attention": func(v values) (*decomposition, error) {
		a := attending{v: v, mask: "attn_bias", causal: causalIf(v.bool("is_causal", false)), extras: efficientExtras, padded: true, heads: true}
		return a.decomposition()
	},
	"_efficient_attention_forward": func(v values) (*decomposition, error) {
		a := attending{v: v, mask: "bias", causal: causality(v.int("custom_mask_type", 0)), extras: efficientExtras, padded: true, rows: true}
		if v.has("cu_seqlens_q") || v.has("seqlen_k") || v.has("window_size") {
			return nil, errNoDecomposition
		}
		return a.decomposition()
	},
	"_flash_attention_forward":                    flashForward(false),
	"_flash_attention_forward_no_dropout_inplace": flashForward(true),

	"_scaled_dot_product_flash_attention_for_cpu_backward": attentionSlopes("attn_mask", true),
	"_scaled_dot_product_flash_attention_backward":         attentionSlopes("", false),
	"_scaled_dot_product_cudnn_attention_backward":         attentionSlopes("attn_bias", false),
	"_scaled_dot_product_efficient_attention_backward": func(v values) (*decomposition, error) {
		wanted := v.ints("grad_input_mask")
		return slopes(v, &attending{v: v, mask: "attn_bias", causal: causalIf(v.bool("is_causal", false)), heads: true}, len(wanted) == 4 && wanted[3] != 0)
	},
	"_scaled_dot_product_fused_attention_overrideable_backward": func(v values) (*decomposition, error) {
		wanted := v.ints("grad_input_mask")
		return slopes(v, &attending{v: v, mask: "attn_bias", causal: causalIf(v.bool("is_causal", false))}, len(wanted) == 4 && wanted[3] != 0)
	},
	"_flash_attention_backward": func(v values) (*decomposition, error) {
		a, err := flashOf(v, "cum_seq_q", "cum_seq_k")
		if err != nil {
			return nil, err
		}
		return slopes(v, a, false)
	},
	"_efficient_attention_backward": func(v values) (*decomposition, error) {
		if v.has("cu_seqlens_q") || v.has("window_size") || v.bool("shared_storage_dqdkdv", false) {
			return nil, errNoDecomposition
		}
		a := &attending{v: v, mask: "bias", causal: causality(v.int("custom_mask_type", 0)), rows: true}
		return slopes(v, a, v.bool("bias_requires_grad", false))
	},
}

// causality is which keys a query sees.
type causality int

const (
	seesAll   causality = iota
	fromFirst           // as many as its number, counted from the first
	fromLast            // counted from the last
)

func causalIf(yes bool) causality {
	if yes {
		return fromFirst
	}
	return seesAll
}

// What attention returns besides.
type attentionExtras int

const (
	noExtras        attentionExtras = iota
	flashExtras                     // lengths, the generator's state of two u64, one more, an empty mask
	scalarExtras                    // lengths, and seed and offset as i64
	efficientExtras                 // the same without the places of lengths that there are not
	rawExtras                       // of flash attention without lengths
)

// attending is one call of attention.
type attending struct {
	v           values
	mask        string // the argument that is added to the scores, or says which count
	causal      causality
	left, right int // how far before and behind its place a query sees; negative for all
	windowed    bool
	extras      attentionExtras
	rows        bool   // operands are [batch, rows, heads, width] or, of sequences in a row, [rows, heads, width]
	column      bool   // the logarithms have a last dimension of 1
	padded      bool   // they are wanted if compute_log_sumexp says so, padded to 32
	heads       bool   // results have the heads of a place side by side
	ends        [2]int // operands that have where sequences in a row end; 0 for none
	into        *tensor
}

func flashOf(v values, q, k string) (*attending, error) {
	a := &attending{v: v, rows: true, extras: rawExtras, left: v.int("window_size_left", -1), right: v.int("window_size_right", -1)}
	a.windowed = a.left >= 0 || a.right >= 0
	if v.bool("is_causal", false) {
		a.causal = fromLast
	}
	for _, name := range []string{"seqused_k", "alibi_slopes", "block_table", "q_descale"} {
		if v.has(name) {
			return nil, errNoDecomposition
		}
	}
	if v.has(q) != v.has(k) {
		return nil, errNoDecomposition
	}
	if t, ok := v["query"].(*tensor); ok && (t.ndim == 3) != v.has(q) {
		return nil, errNoDecomposition
	}
	return a, nil
}

func flashForward(inPlace bool) decomposeFunc {
	return func(v values) (*decomposition, error) {
		a, err := flashOf(v, "cum_seq_q", "cum_seq_k")
		if err != nil {
			return nil, err
		}
		if inPlace {
			a.extras = noExtras
			if a.into, err = v.tensor("out"); err != nil {
				return nil, err
			}
		}
		return a.decomposition()
	}
}

// operands reads query, key, value and what says which scores count.
func (a *attending) operands() ([]*tensor, error) {
	if a.v.float("dropout_p", 0) != 0 {
		return nil, fmt.Errorf("%w: dropout of %v inside attention", errUnimplemented, a.v.float("dropout_p", 0))
	}
	in, err := a.v.tensors("query", "key", "value")
	if err != nil {
		return nil, err
	}
	if q, k, x := in[0], in[1], in[2]; q.ndim < 3 || q.ndim > 4 || k.ndim != q.ndim || x.ndim != q.ndim || sameDTypes(in...) != nil {
		return nil, fmt.Errorf("%w: attention of %v, %v and %v", ir.ErrShape, sizesOf(q), sizesOf(k), sizesOf(x))
	}
	if t, ok := a.v[a.mask].(*tensor); ok {
		in = append(in, t)
	} else {
		a.mask = ""
	}
	if a.rows && in[0].ndim == 3 {
		ends, err := a.v.tensors("cum_seq_q", "cum_seq_k")
		if err != nil {
			return nil, err
		}
		a.ends = [2]int{len(in), len(in) + 1}
		in = append(in, ends...)
	}
	return in, nil
}

func (a *attending) what(name string) []byte {
	return fmt.Append([]byte(name), " ", a.mask, a.causal, " ", a.left, " ", a.right, a.windowed, a.rows, a.column, a.padded, a.ends, a.v["scale"], a.v["compute_log_sumexp"])
}

// inside returns an operand as [batch, heads, rows, width].
func (a *attending) inside(b *ir.Builder, x ir.Value) ir.Value {
	if x.Rank() == 3 {
		x = b.Unsqueeze(x, 0)
	}
	if a.rows {
		x = b.Permute(x, 0, 2, 1, 3)
	}
	return x
}

// outside undoes inside for a value like an operand of so many dimensions.
func (a *attending) outside(b *ir.Builder, x ir.Value, rank int) ir.Value {
	if a.rows {
		x = b.Permute(x, 0, 2, 1, 3)
	}
	if rank == 3 {
		x = b.Reshape(x, x.Shape().Dims()[1:]...)
	}
	return x
}

// sequence returns the sequence that each of n places is in, where in it, and how
// long it is.
func sequence(b *ir.Builder, ends ir.Value, n int) (number, at, length ir.Value) {
	ends = b.Cast(ends, ir.I64)
	i, count := b.Iota(n, ir.I64), ends.Dim(0)-1
	number = b.Sub(behind(b, b.Slice(ends, 0, 0, count, 1), i), b.Const(1, ir.I64))
	from := b.IndexSelect(ends, 0, number)
	to := b.IndexSelect(ends, 0, b.Add(number, b.Const(1, ir.I64)))
	return number, b.Sub(i, from), b.Sub(to, from)
}

// sees is which scores count, [queries, keys]; the zero Value for all.
func (a *attending) sees(b *ir.Builder, in []ir.Value, l, s int) ir.Value {
	var ok ir.Value
	and := func(x ir.Value) {
		if ok.IsNil() {
			ok = x
		} else {
			ok = b.Call1(aten.LogicalAnd, []any{ok, x})
		}
	}
	i, j := b.Iota(l, ir.I64), b.Iota(s, ir.I64)
	ahead := b.Const(0, ir.I64) // of the key that is at the place of a query
	if a.causal != fromFirst {
		ahead = b.Const(s-l, ir.I64)
	}
	if a.ends[0] > 0 {
		qn, qi, ql := sequence(b, in[a.ends[0]], l)
		kn, kj, kl := sequence(b, in[a.ends[1]], s)
		and(b.Binary(aten.Eq, b.Unsqueeze(qn, 1), kn))
		i, j, ahead = qi, kj, b.Sub(kl, b.Unsqueeze(ql, 1))
	}
	at := b.Add(b.Unsqueeze(i, 1), ahead)
	if a.causal != seesAll {
		and(b.Binary(aten.Le, b.Expand(j, s), at))
	}
	if a.windowed && a.right >= 0 {
		and(b.Binary(aten.Le, j, b.Add(at, b.Const(a.right, ir.I64))))
	}
	if a.windowed && a.left >= 0 {
		and(b.Binary(aten.Ge, j, b.Sub(at, b.Const(a.left, ir.I64))))
	}
	return ok
}

// scale is what the products are multiplied by.
func (a *attending) scale(width int) float64 { return a.v.float("scale", 1/math.Sqrt(float64(width))) }

// masked returns what ir's attention is given for a mask: the given one, which
// scores count, or both as one; the zero Value for none. plain says that causal is
// for ir to do.
func (a *attending) masked(b *ir.Builder, in []ir.Value, l, s int) (mask ir.Value, plain bool) {
	square := a.causal == fromLast && l == s && a.ends[0] == 0
	if a.mask == "" && !a.windowed && a.ends[0] == 0 && (a.causal == fromFirst || square) {
		return mask, true
	}
	mask = a.sees(b, in, l, s)
	if a.mask != "" {
		given := in[3]
		switch {
		case mask.IsNil():
			mask = given
		case given.DType() == ir.Bool:
			mask = b.Call1(aten.LogicalAnd, []any{mask, given})
		default:
			mask = b.Where(mask, given, b.Const(math.Inf(-1), given.DType()))
		}
	}
	return mask, false
}

// attend records attention of operands that are inside.
func (a *attending) attend(b *ir.Builder, in []ir.Value, q, k, x ir.Value) ir.Value {
	mask, plain := a.masked(b, in, q.Dim(2), k.Dim(2))
	args := []any{q, k, x, nil, plain}
	if !mask.IsNil() {
		args[3] = mask
	}
	gqa := k.Dim(1) != q.Dim(1)
	return b.Call(lookup("scaled_dot_product_attention"), args, ir.A("scale", a.scale(q.Dim(3))), ir.A("enable_gqa", gqa))[0]
}

// logSums is the logarithm of the sum of the exponentials of each query's scores,
// [batch, heads, queries].
func (a *attending) logSums(b *ir.Builder, in []ir.Value, q, k ir.Value) ir.Value {
	d := wide(q.DType())
	q, k = b.Cast(q, d), b.Cast(k, d)
	if n := q.Dim(1) / k.Dim(1); n > 1 {
		k = do(b, "repeat_interleave", k, n, 1)
	}
	scores := b.MatMul(b.Mul(q, num(b, a.scale(q.Dim(3)), q)), b.Transpose(k, -2, -1))
	mask, plain := a.masked(b, in, q.Dim(2), k.Dim(2))
	if plain {
		mask = a.sees(b, in, q.Dim(2), k.Dim(2))
	}
	switch {
	case mask.IsNil():
	case mask.DType() == ir.Bool:
		scores = b.Where(mask, scores, num(b, math.Inf(-1), scores))
	default:
		scores = b.Add(scores, b.Cast(mask, d))
	}
	return b.Cast(do(b, "logsumexp", scores, []int{-1}), ir.F32)
}

// decomposition is the forward direction.
func (a *attending) decomposition() (*decomposition, error) {
	in, err := a.operands()
	if err != nil {
		return nil, err
	}
	r := &decomposition{what: a.what("attention"), in: in, into: nil}
	if a.into != nil {
		r.into = []*tensor{a.into}
	}
	r.strides = func(i int, s ir.Shape) []int64 {
		switch {
		case i > 0:
			return nil
		case a.heads:
			return headStrides(s.Dims())
		}
		return orderedLike(in[0], s.Dims())
	}
	a.describe(r)
	rank := int(in[0].ndim)
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		q, k, x := a.inside(b, in[0]), a.inside(b, in[1]), a.inside(b, in[2])
		out := a.outside(b, a.attend(b, in, q, k, x), rank)
		var sums ir.Value
		switch n := q.Dim(2); {
		case a.padded && !a.v.bool("compute_log_sumexp", false):
			sums = b.Full([]int{q.Dim(0), q.Dim(1), 0}, 0, ir.F32)
		case a.padded && n%32 != 0:
			sums = a.logSums(b, in, q, k)
			sums = b.PadConst(sums, []int{0, 32 - n%32}, b.Const(math.Inf(1), ir.F32))
		default:
			sums = a.logSums(b, in, q, k)
		}
		if a.column {
			sums = b.Unsqueeze(sums, 3)
		}
		if a.ends[0] > 0 {
			sums = b.Reshape(sums, sums.Shape().Dims()[1:]...)
		}
		return []ir.Value{out, sums}
	}
	return r, nil
}

// describe adds what the kind of attention returns besides.
func (a *attending) describe(r *decomposition) {
	q, k := sizesOf(r.in[0]), sizesOf(r.in[1])
	rows := len(q) - 2
	if a.rows {
		rows = len(q) - 3
	}
	lengths := []int64{q[rows], k[rows]}
	one, two := []zeroTensor{{C.LORI_I64, nil}, {C.LORI_I64, nil}}, []zeroTensor{{C.LORI_U64, []int64{2}}, {C.LORI_U64, nil}}
	debug := zeroTensor{int32(r.in[0].dtype), []int64{0}}
	switch a.extras {
	case flashExtras:
		r.numbers, r.zeros, r.places = lengths, append(two, debug), []int{0, 1, 4, 5, 6}
	case scalarExtras:
		r.numbers, r.zeros, r.places = lengths, one, []int{0, 1, 4, 5}
	case efficientExtras:
		r.zeros = one
		if a.rows {
			r.numbers = lengths
		}
	case rawExtras:
		r.zeros = append(two, debug)
	}
}

// headStrides are those of [batch, heads, rows, width] whose heads of a place lie
// side by side.
func headStrides(dims []int) []int64 {
	n, rows, width := int64(dims[1]), int64(dims[2]), int64(dims[3])
	return []int64{rows * n * width, width, n * width, 1}
}

// orderedLike are dense strides with the dimensions in the order that t has.
func orderedLike(t *tensor, dims []int) []int64 {
	from, order := stridesOf(t), make([]int, len(dims))
	for i := range order {
		order[i] = i
	}
	if len(from) != len(dims) {
		return nil
	}
	far := func(d int) int64 {
		if from[d] == 0 {
			return math.MaxInt64
		}
		return from[d]
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case far(x) < far(y):
			return -1
		case far(x) > far(y):
			return 1
		}
		return y - x // of equal ones the later is nearer
	})
	out, step := make([]int64, len(dims)), int64(1)
	for _, d := range order {
		out[d] = step
		step *= int64(max(dims[d], 1))
	}
	return out
}

func attentionSlopes(mask string, heads bool) decomposeFunc {
	return func(v values) (*decomposition, error) {
		return slopes(v, &attending{v: v, mask: mask, causal: causalIf(v.bool("is_causal", false)), heads: heads}, false)
	}
}

// slopes is the gradient of attention by its operands, and by the mask if that is
// wanted.
func slopes(v values, a *attending, bias bool) (*decomposition, error) {
	in, err := a.operands()
	if err != nil {
		return nil, err
	}
	g, err := v.tensor("grad_out")
	if err != nil {
		return nil, err
	}
	bias = bias && a.mask != ""
	n := len(in)
	r := &decomposition{what: append(a.what("attention backward"), fmt.Sprint(" ", bias, a.heads)...), in: append(in, g)}
	r.strides = func(i int, s ir.Shape) []int64 {
		switch {
		case i == 3: // rows are padded to 16
			dims := s.Dims()
			dims[len(dims)-1] = (dims[len(dims)-1] + 15) / 16 * 16
			return rowMajor(int64s(dims))
		case a.heads:
			return headStrides(s.Dims())
		}
		return denseLike(in[i])
	}
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		q, k, x := a.inside(b, in[0]), a.inside(b, in[1]), a.inside(b, in[2])
		y := a.attend(b, in[:n], q, k, x)
		wrt := in[:3:3]
		if bias {
			wrt = append(wrt, in[3])
		}
		return gradient(b, y, a.inside(b, in[n]), wrt...)
	}
	return r, nil
}

// gradient records the gradients of y by some values.
func gradient(b *ir.Builder, y, by ir.Value, wrt ...ir.Value) []ir.Value {
	return graph.Grad(b, new(graph.Walker), []ir.Value{y}, []ir.Value{b.Cast(by, y.DType())}, wrt)
}
