package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/attention"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/loop"
)

// The gradients of attention are a kernel that computes probabilities again, from the logarithms of the
// sums of exponentials. Attention keeps these, one number for each query, where its gradients are in the
// same Program; else they are computed first.

var attentionGradients = byType[lowerFunc]{
	ir.F32: attendBackwards[float32, float32], ir.F64: attendBackwards[float64, float64],
	ir.BF16: attendBackwards[gemm.BF16, float32], ir.F16: attendBackwards[gemm.F16, float32],
}

var maskGradients = byType[lowerFunc]{
	ir.F32: maskBackwards[float32, float32], ir.F64: maskBackwards[float64, float64],
	ir.BF16: maskBackwards[gemm.BF16, float32], ir.F16: maskBackwards[gemm.F16, float32],
}

// savedSums are the sums that an attention keeps.
type savedSums struct {
	instr *graph.Instr
	sums  operand
}

// meetsGradient reports whether the gradients of the attention are computed in this Program.
func (c *call) meetsGradient() bool {
	return slices.ContainsFunc(c.l.Users[c.Instr.Out], func(i int32) bool { return followsAttention(c.Instr, &c.l.Program.Instrs[i]) })
}

// followsAttention reports whether an instruction is the gradients of an attention.
func followsAttention(in, gradients *graph.Instr) bool {
	return gradients.Op == aten.AttentionBackward && gradients.Args[1] == in.Out && gradients.Attr == in.Attr && slices.Equal(gradients.Args[2:], in.Args)
}

func (l *lowering) keepSums(in *graph.Instr, sums operand) {
	if l.sums == nil {
		l.sums = map[graph.ID]savedSums{}
	}
	l.sums[in.Out] = savedSums{in, sums}
}

// meetsMaskGradient returns the value that is the gradient of the mask, if that is computed, too.
func (c *call) meetsMaskGradient() (graph.ID, bool) {
	for _, i := range c.l.Users[c.Instr.Args[0]] {
		if in := &c.l.Program.Instrs[i]; in.Op == aten.AttentionMaskBackward && in.Attr == c.Instr.Attr && slices.Equal(in.Args, c.Instr.Args) {
			if c.l.slopes == nil {
				c.l.slopes = map[graph.ID]operand{}
			}
			return in.Out, true
		}
	}
	return 0, false
}

// newSums has the run make its sums, in memory that is returned.
func (u *attentionRun[T, A]) newSums() operand {
	run := u.call
	run.LogSumExpStrides = [3]int{run.Heads * run.Queries, run.Queries, 1}
	return u.c.l.bytesTemp(sizeOf[A](), run.Batch*run.Heads*run.Queries)
}

// repeatsHeads reports whether query, key or value is repeated for more than shared heads.
func (c *call) repeatsHeads() bool {
	out, k, v := c.Operands[1].Shape, c.Operands[3].Shape, c.Operands[4].Shape
	lead := out.Dims()[:out.Rank()-2]
	shared := lead
	if c.Bool("enable_gqa") && len(lead) > 0 {
		if k.Dim(-3) != v.Dim(-3) {
			return true
		}
		shared = append(slices.Clone(lead[:len(lead)-1]), k.Dim(-3))
	}
	before := func(s ir.Shape) []int { return s.Dims()[:s.Rank()-2] }
	return !slices.Equal(before(c.Operands[2].Shape), lead) || !slices.Equal(before(k), shared) || !slices.Equal(before(v), shared)
}

func attendBackwards[T attention.Element, A attention.Float](c *call) {
	u := attended[T, A](c, c.Operands[2:], c.Operands[1].Shape)
	g := &attention.Gradient[T, A]{}
	results := []*headsResult[T]{
		newHeadsResult(c, &g.DQ, u.call.Heads, u.lead), newHeadsResult(c, &g.DK, u.call.KVHeads, u.shared), newHeadsResult(c, &g.DV, u.call.KVHeads, u.shared),
	}
	var writes, slopes []operand
	for _, r := range results {
		writes = append(writes, r.made)
	}
	if key, ok := c.meetsMaskGradient(); ok {
		slopes = append(slopes, c.l.bytesTemp(sizeOf[A](), u.scores()))
		c.l.slopes[key] = slopes[0]
	}
	u.emitGradient(g, append(writes, slopes...), func(m *memory) {
		for _, r := range results {
			if r.wanted {
				r.to.Data = elements[T](m, r.made)
			}
		}
		if len(slopes) > 0 {
			g.DMask = elements[A](m, slopes[0])
		}
	})
	for _, r := range results {
		if r.wanted && r.repeated {
			sumHeads[A](c, r)
		}
	}
}

// scores returns how many there are.
func (u *attentionRun[T, A]) scores() int {
	return u.call.Batch * u.call.Heads * u.call.Queries * u.call.Keys
}

// emitGradient adds a step that computes what bind asks for. The sums that it needs are kept or made.
func (u *attentionRun[T, A]) emitGradient(g *attention.Gradient[T, A], writes []operand, bind func(m *memory)) {
	c, run := u.c, u.call
	grad, out := c.heads(c.Operands[0], u.lead), c.heads(c.Operands[1], u.lead)
	before, kept := c.l.sums[c.Instr.Args[1]]
	sums := before.sums
	if kept && slices.Equal(before.instr.Args, c.Instr.Args[2:]) && before.instr.Attr == c.Instr.Attr {
		run.LogSumExpStrides = [3]int{run.Heads * run.Queries, run.Queries, 1}
	} else {
		sums = u.newSums()
		u.emit([]operand{sums}, func(m *memory) {
			run.LogSumExp = elements[A](m, sums)
			run.Run()
		})
	}
	u.emit(writes, func(m *memory) {
		bindHeads(m, &g.Grad, grad)
		bindHeads(m, &run.Out, out)
		run.LogSumExp = elements[A](m, sums)
		bind(m)
		g.Call = *run
		g.Run()
		*g = attention.Gradient[T, A]{DQ: g.DQ, DK: g.DK, DV: g.DV}
		g.DQ.Data, g.DK.Data, g.DV.Data = nil, nil, nil
	}, operand{buf: grad.Buf}, operand{buf: out.Buf}, sums)
}

// headsResult is the gradient of query, key or value.
type headsResult[T attention.Element] struct {
	to     *attention.Tensor[T] // what the kernel writes
	made   operand              // its memory
	wanted bool
	// An operand that is repeated has a gradient for each use, with the dimensions full before the last
	// two, which are then summed to result.
	repeated   bool
	full, dims []int
	result     operand
}

// newHeadsResult makes the next result, of an operand with so many heads in the kernel.
func newHeadsResult[T attention.Element](c *call, to *attention.Tensor[T], heads int, full []int) *headsResult[T] {
	i := len(c.Results)
	dims := c.Shapes[i].Dims()
	rows, cols := dims[len(dims)-2], dims[len(dims)-1]
	*to = attention.Dense[T](nil, heads, rows, cols)
	r := &headsResult[T]{to: to, wanted: !c.unused(i), full: full, dims: dims[:len(dims)-2]}
	if r.repeated = !slices.Equal(r.dims, full); r.repeated {
		r.result = c.result()
		r.made = c.l.bytesTemp(sizeOf[T](), ir.MakeShape(ir.F32, full...).Numel()*rows*cols)
		return r
	}
	var swapped bool
	if r.made, swapped = c.resultFor([2]int{3, 2}); swapped {
		to.Strides[1], to.Strides[2] = cols, heads*cols
	}
	return r
}

// sumHeads sums the gradients of all uses of an operand, which are of the type computed in.
func sumHeads[A attention.Float, T attention.Element](c *call, r *headsResult[T]) {
	m, uses := c.l.mem, ir.MakeShape(ir.F32, r.full...).Numel()
	each := r.made.n / max(uses, 1)
	c.emit(1, 1, []operand{r.result}, []operand{r.made}, func(_, _ int) {
		dst, src := elements[A](m, r.result), elements[A](m, r.made)
		clear(dst)
		for i := range uses {
			x := src[i*each:][:each]
			for j, at := 0, r.place(i)*each; j < each; j++ {
				dst[at+j] += x[j]
			}
		}
	})
}

// place returns which matrix of the operand the matrix i of its uses is.
func (r *headsResult[T]) place(i int) int {
	at, step := 0, 1
	for d := len(r.full) - 1; d >= 0; d-- {
		n := r.full[d]
		if own := d - len(r.full) + len(r.dims); own >= 0 {
			have := r.dims[own]
			at += i % n * have / n * step // shared heads are neighbours
			step *= have
		}
		i /= n
	}
	return at
}

// maskBackwards sums the gradients of scores to that of the mask, which is added to them. They were computed with
// those of query, key and value, if these were computed before.
func maskBackwards[T attention.Element, A attention.Float](c *call) {
	u := attended[T, A](c, c.Operands[2:], c.Operands[1].Shape)
	slopes, made := c.l.slopes[c.Instr.Out]
	if !made {
		slopes = c.l.bytesTemp(sizeOf[A](), u.scores())
		g := &attention.Gradient[T, A]{}
		u.emitGradient(g, []operand{slopes}, func(m *memory) { g.DMask = elements[A](m, slopes) })
	}
	wide := &call{c.Inner(nil, []ir.Shape{c.Shapes[0].WithDType(loop.ComputeDType(c.Shapes[0].DType()))}), c.l}
	dst, m := wide.result(), c.l.mem
	full := append(slices.Clone(u.lead), u.call.Queries, u.call.Keys)
	rows, steps := rowsOnto(full, c.Shapes[0].Dims())
	c.emit(1, 1, []operand{dst}, []operand{slopes}, func(_, _ int) {
		sumRows(elements[A](m, dst), elements[A](m, slopes), rows, steps, u.call.Keys)
	})
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], c.Shapes[0].DType()))
}

// rowsOnto returns the dimensions of rows, and how far apart each has its elements in a tensor that is repeated to
// full; the last is for elements of a row.
func rowsOnto(full, dims []int) (rows, steps []int) {
	steps = make([]int, len(full))
	step := 1
	for d, own := len(full)-1, len(dims)-1; own >= 0; d, own = d-1, own-1 {
		if dims[own] == full[d] {
			steps[d] = step
		}
		step *= dims[own]
	}
	return full[:len(full)-1], steps
}

// sumRows adds rows of n elements to where they belong.
func sumRows[A attention.Float](dst, src []A, rows, steps []int, n int) {
	clear(dst)
	if n == 0 {
		return
	}
	last := steps[len(rows)]
	for i := range len(src) / n {
		at := 0
		for d, r := len(rows)-1, i; d >= 0; d-- {
			at += r % rows[d] * steps[d]
			r /= rows[d]
		}
		row := src[i*n:][:n]
		switch x := any(row).(type) {
		case []float32:
			if last == 1 {
				to := any(dst).([]float32)[at:][:n]
				vec.Add(to, to, x)
				continue
			}
		}
		for j, v := range row {
			dst[at+j*last] += v
		}
	}
}
