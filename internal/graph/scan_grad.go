package graph

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// scanGradient runs the loop backwards: a loop in the other direction over the values that were carried
// into each element, whose body is the gradient of the body. Where these were kept for every m-th
// element only, it goes through pieces of m elements and computes those of a piece again.
func scanGradient(b *ir.Builder, a ir.Args, out, grad []ir.Value) []ir.Value {
	l := LoopOf(a)
	k, y := len(l.Init), l.Results()
	if l.Every == 0 {
		again := *l
		again.Every = 1
		out = again.Record(b)
	}
	grads := make([]ir.Value, len(a.In))
	r := newReverse(l, grad)
	if r == nil {
		return grads
	}
	st := reverseState{carry: make([]ir.Value, len(r.carry)), sums: make([]ir.Value, len(r.consts))}
	for i, j := range r.carry {
		if st.carry[i] = grad[j]; st.carry[i].IsNil() {
			st.carry[i] = b.Full(l.Init[j].Shape().Dims(), 0, l.Init[j].DType())
		}
	}
	for i, j := range r.consts {
		st.sums[i] = b.Full(l.Consts[j].Shape().Dims(), 0, wideOf(l.Consts[j].DType()))
	}
	var dys []ir.Value
	for _, j := range r.results {
		dys = append(dys, grad[k+j])
	}
	var dkept []ir.Value
	for _, i := range r.kept {
		dkept = append(dkept, grad[k+y+r.carry[i]])
	}
	var dxs []ir.Value
	if r.whole {
		dxs = r.pass(b, &st, l.Length, l.Reverse, out[k+y:], l.Xs, append(dys, dkept...), l.Consts)
	} else {
		dxs = r.pieces(b, &st, l, out[k+y:], dys, dkept)
	}
	for i, j := range r.carry {
		grads[j] = st.carry[i]
	}
	for i, j := range r.xs {
		grads[k+j] = dxs[i]
	}
	for i, j := range r.consts {
		grads[k+len(l.Xs)+j] = b.Cast(st.sums[i], l.Consts[j].DType())
	}
	return grads
}

// wideOf is the dtype in which the gradients of a constant are summed up.
func wideOf(d ir.DType) ir.DType {
	if d == ir.F16 || d == ir.BF16 {
		return ir.F32
	}
	return d
}

// reverse is the gradient of a loop's body. The lists are positions among the carried values, the
// sequences, the constants and the results.
type reverse struct {
	body              *Program // of the loop
	k, x              int      // carried values and sequences of the loop
	carry, xs, consts []int    // those that have gradients
	results           []int    // those whose gradients are given
	kept              []int    // those of carry for whose kept values gradients are given
	whole             bool     // all values carried into elements were kept
	gradient          *Program
	products          []*factors // for each of consts, nil for one whose gradients the loop sums up
}

// factors says that a constant's gradient is a product left × right in each element, both results of the
// gradient. The sum over all elements is one product, of which each is a part.
type factors struct {
	left, right int  // positions among the results of the gradient, after those of xs
	transposed  bool // the gradient is the product's transpose
}

// reverseState is what is carried from one part of the way back to the next.
type reverseState struct{ carry, sums []ir.Value }

// newReverse differentiates the body; nil if nothing has a gradient. The Program's parameters are the gradients of carried values and the sums
// for the constants without factors, then the carried values, the sequences, the gradients of the
// results and of kept values, and the constants.
func newReverse(l *Loop, grad []ir.Value) *reverse {
	r := &reverse{body: l.Body, k: len(l.Init), x: len(l.Xs), whole: l.Every <= 1 || l.Length == 0}
	b := &ir.Builder{Lines: ir.LinesOff}
	leaf := func(s ir.Shape) ir.Value { return ir.NewLeaf(&ParamLeaf{}, s, ir.Device{}).Out(0) }
	params := NewParams(l.Body.Params)
	var outs, cotangents, wrt []ir.Value
	var at []int
	bodyOuts := l.Body.Build(b, params)
	for i, v := range params {
		if !v.DType().HasGradient() {
			continue
		}
		if i < r.k {
			r.carry = append(r.carry, i)
			outs, cotangents = append(outs, bodyOuts[i]), append(cotangents, leaf(v.Shape()))
		}
		wrt, at = append(wrt, v), append(at, i)
	}
	for i, j := range r.carry {
		if at := len(bodyOuts) + j; at < len(grad) && !grad[at].IsNil() {
			r.kept = append(r.kept, i)
		}
	}
	for j, g := range grad[r.k:len(bodyOuts)] {
		if v := bodyOuts[r.k+j]; !g.IsNil() && v.DType().HasGradient() {
			r.results = append(r.results, j)
			outs, cotangents = append(outs, v), append(cotangents, leaf(v.Shape()))
		}
	}
	if len(wrt) == 0 || len(outs) == 0 {
		return nil
	}
	var grads []ir.Value
	for i, g := range Grad(b, new(Walker), outs, cotangents, wrt) {
		switch j := at[i] - r.k; {
		case j < 0:
		case isConst(g, 0): // no influence
			continue
		case j < r.x:
			r.xs = append(r.xs, j)
		default:
			r.consts = append(r.consts, j-r.x)
		}
		grads = append(grads, g)
	}
	r.assemble(b, params, cotangents, grads)
	return r
}

// assemble makes the Program of the gradients.
func (r *reverse) assemble(b *ir.Builder, params, cotangents, grads []ir.Value) {
	nc, nx := len(r.carry), len(r.xs)
	next := slices.Clone(grads[:nc])
	results := grads[nc : nc+nx : nc+nx]
	in := cotangents[:nc:nc]
	r.products = make([]*factors, len(r.consts))
	for i := range r.consts {
		g := grads[nc+nx+i]
		if f, left, right := productOf(g); f != nil {
			f.left, f.right = len(results)-nx, len(results)-nx+1
			results = append(results, left, right)
			r.products[i] = f
			continue
		}
		sum := ir.NewLeaf(&ParamLeaf{}, g.Shape().WithDType(wideOf(g.DType())), ir.Device{}).Out(0)
		in = append(in, sum)
		next = append(next, b.Add(sum, b.Cast(g, sum.DType())))
	}
	in = append(in, params[:r.k+r.x]...)
	in = append(in, cotangents[nc:]...)
	if r.whole {
		for _, i := range r.kept {
			more := ir.NewLeaf(&ParamLeaf{}, next[i].Shape(), ir.Device{}).Out(0)
			next[i] = b.Add(next[i], more)
			in = append(in, more)
		}
	}
	in = append(in, params[r.k+r.x:]...)
	for i, v := range in {
		l := v.Node.Leaf().(*ParamLeaf)
		l.Index, l.Name = i, fmt.Sprintf("p%d", i)
	}
	r.gradient = FromValues("gradient", in, append(next, results...))
}

// productOf finds out whether a gradient is a product of two matrices, perhaps transposed, that have
// fewer elements together than the gradient has.
func productOf(g ir.Value) (f *factors, left, right ir.Value) {
	f = &factors{}
	if g.Node.Op() == aten.Permute && g.Rank() == 2 {
		dims := g.Node.Args().Ints("dims")
		f.transposed = (dims[0]+2)%2 == 1
		g = g.Node.Inputs()[0]
	}
	if g.Node.Op() != aten.MatMul || g.Rank() != 2 {
		return nil, left, right
	}
	left, right = g.Node.Inputs()[0], g.Node.Inputs()[1]
	if left.Rank() != 2 || right.Rank() != 2 || left.Shape().Numel()+right.Shape().Numel() >= g.Shape().Numel() || !g.DType().IsFloat() {
		return nil, left, right
	}
	return f, left, right
}

// pass records the way back through length elements, from the values carried into each, and returns the
// gradients of the sequences.
func (r *reverse) pass(b *ir.Builder, st *reverseState, length int, reversed bool, kept, xs, dys, consts []ir.Value) []ir.Value {
	init := append([]ir.Value(nil), st.carry...)
	for i := range r.consts {
		if r.products[i] == nil {
			init = append(init, st.sums[i])
		}
	}
	seq := slices.Concat(kept, xs, dys)
	back := Loop{Init: init, Xs: seq, Consts: consts, Body: r.gradient, Length: length, Reverse: !reversed, Every: 1}
	out := back.Record(b)
	st.carry = out[:len(r.carry):len(r.carry)]
	sums := out[len(r.carry):len(init)]
	results := out[len(init):][:back.Results()]
	parts := results[len(r.xs):]
	next := make([]ir.Value, len(st.sums))
	for i, f := range r.products {
		if f == nil {
			next[i], sums = sums[0], sums[1:]
		} else {
			next[i] = b.Add(st.sums[i], b.Cast(f.sum(b, parts[f.left], parts[f.right]), st.sums[i].DType()))
		}
	}
	st.sums = next
	return results[:len(r.xs)]
}

// sum is the sum of the products of all elements, of [n, rows, k] and [n, k, columns].
func (f *factors) sum(b *ir.Builder, left, right ir.Value) ir.Value {
	n, rows, k, cols := left.Dim(0), left.Dim(1), left.Dim(2), right.Dim(2)
	l := b.Reshape(b.Permute(left, 1, 0, 2), rows, n*k)
	p := b.Call1(aten.MatMul, []any{l, b.Reshape(right, n*k, cols)})
	if f.transposed {
		p = b.Transpose(p, 0, 1)
	}
	return p
}

// pieces is pass through a loop that kept the values carried into every m-th element.
func (r *reverse) pieces(b *ir.Builder, st *reverseState, l *Loop, kept, dys, dkept []ir.Value) []ir.Value {
	m := l.Every
	whole := l.Length / m
	cut := func(vs []ir.Value, from, to int) []ir.Value {
		out := make([]ir.Value, len(vs))
		for i, v := range vs {
			out[i] = b.Slice(v, 0, from, to, 1)
		}
		return out
	}
	dxs := make([][]ir.Value, len(r.xs))
	if at := whole * m; at < l.Length {
		last := func(vs []ir.Value) []ir.Value {
			out := cut(vs, whole, whole+1)
			for i, v := range out {
				out[i] = b.Reshape(v, v.Shape().Dims()[1:]...)
			}
			return out
		}
		for i, v := range r.piece(b, st, l.Length-at, last(kept), cut(l.Xs, at, l.Length), cut(dys, at, l.Length), last(dkept), l.Consts) {
			dxs[i] = []ir.Value{v}
		}
	}
	if whole > 0 {
		for i, v := range r.wholePieces(b, st, whole, m, cut(kept, 0, whole), cut(l.Xs, 0, whole*m), cut(dys, 0, whole*m), cut(dkept, 0, whole), l.Consts) {
			dxs[i] = append([]ir.Value{v}, dxs[i]...)
		}
	}
	out := make([]ir.Value, len(dxs))
	for i, parts := range dxs {
		out[i] = b.Cat(parts, 0)
	}
	return out
}

// piece computes the values carried into each element of a piece again and goes back through it.
func (r *reverse) piece(b *ir.Builder, st *reverseState, m int, start, xs, dys, dstart, consts []ir.Value) []ir.Value {
	forth := Loop{Init: start, Xs: xs, Consts: consts, Body: r.body, Length: m, Every: 1}
	out := forth.Record(b)
	dxs := r.pass(b, st, m, false, out[len(out)-r.k:], xs, dys, consts)
	for k, i := range r.kept {
		st.carry[i] = b.Add(st.carry[i], dstart[k])
	}
	return dxs
}

// wholePieces is piece for n pieces of m elements each, as a loop over them.
func (r *reverse) wholePieces(b *ir.Builder, st *reverseState, n, m int, starts, xs, dys, dstarts, consts []ir.Value) []ir.Value {
	inPieces := func(vs []ir.Value) []ir.Value {
		out := make([]ir.Value, len(vs))
		for i, v := range vs {
			out[i] = b.Reshape(v, append([]int{n, m}, v.Shape().Dims()[1:]...)...)
		}
		return out
	}
	init := slices.Concat(st.carry, st.sums)
	seq := slices.Concat(starts, inPieces(xs), inPieces(dys), dstarts)
	c := &ir.Builder{Lines: ir.LinesOff}
	var params []ir.Value
	stand := func(vs []ir.Value, drop int) []ir.Value {
		out := make([]ir.Value, len(vs))
		for i, v := range vs {
			s := v.Shape().WithDims(v.Shape().Dims()[drop:]...)
			out[i] = ir.NewLeaf(&ParamLeaf{Index: len(params), Name: fmt.Sprintf("p%d", len(params))}, s, ir.Device{}).Out(0)
			params = append(params, out[i])
		}
		return out
	}
	in, each, all := stand(init, 0), stand(seq, 1), stand(consts, 0)
	inner := reverseState{in[:len(st.carry)], in[len(st.carry):]}
	ks, kx := len(starts), len(starts)+len(xs)
	ky := kx + len(dys)
	dxs := r.piece(c, &inner, m, each[:ks], each[ks:kx], each[kx:ky], each[ky:], all)
	body := FromValues("piece", params, slices.Concat(inner.carry, inner.sums, dxs))
	out := (&Loop{Init: init, Xs: seq, Consts: consts, Body: body, Length: n, Reverse: true, Every: 1}).Record(b)
	st.carry, st.sums = out[:len(st.carry):len(st.carry)], out[len(st.carry):len(init)]
	results := out[len(init):][:len(dxs)]
	for i, v := range results {
		results[i] = b.Reshape(v, append([]int{n * m}, v.Shape().Dims()[2:]...)...)
	}
	return results
}
