//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// trainEvals are the gradients of the ops that networks spend their time in.
var trainEvals = map[string]evalFunc{
	"convolution_backward":                                 convBackward,
	"_scaled_dot_product_flash_attention_for_cpu_backward": attentionBackward,
}

// heads are the operands of attention: batch, heads, positions, features.
type heads struct {
	batch, n, rows, width int
	data                  []float64
}

func headsOf(v values, name string) (*tensor, heads, error) {
	t, a, err := argument[float64](v, name)
	if err != nil {
		return nil, heads{}, err
	}
	if len(a.dims) != 4 {
		return nil, heads{}, fmt.Errorf("%w: %q of attention is %v", ir.ErrShape, name, a.dims)
	}
	return t, heads{a.dims[0], a.dims[1], a.dims[2], a.dims[3], a.data}, nil
}

// head returns the rows of one head, as a matrix.
func (h heads) head(i int) matrix {
	return matrix{h.rows, h.width, h.data[i*h.rows*h.width:][:h.rows*h.width]}
}

// attentionBackward is the gradient of attention, which it computes again from
// the logarithm of the sums.
func attentionBackward(v values) ([]*tensor, error) {
	if v.float("dropout_p", 0) != 0 {
		return nil, fmt.Errorf("%w: attention with dropout", errUnimplemented)
	}
	names := [...]string{"query", "key", "value", "out", "grad_out"}
	var ts [len(names)]*tensor
	var hs [len(names)]heads
	for i, name := range names {
		var err error
		if ts[i], hs[i], err = headsOf(v, name); err != nil {
			return nil, err
		}
	}
	_, lse, err := argument[float64](v, "logsumexp")
	if err != nil {
		return nil, err
	}
	q, k, val, out, grad := hs[0], hs[1], hs[2], hs[3], hs[4]
	n := q.batch * q.n
	sameHeads := k.batch == q.batch && val.batch == q.batch && k.n == q.n && val.n == q.n
	if !sameHeads || k.width != q.width || k.rows != val.rows || len(out.data) != n*q.rows*val.width ||
		len(grad.data) != len(out.data) || len(lse.data) != n*q.rows {
		return nil, fmt.Errorf("%w: attention's gradient of %v, %v and %v", ir.ErrShape, sizesOf(ts[0]), sizesOf(ts[1]), sizesOf(ts[2]))
	}
	bias := array[float64]{}
	if m, ok := v["attn_mask"].(*tensor); ok {
		if bias, err = expanded[float64](m, []int{q.batch, q.n, q.rows, k.rows}); err != nil {
			return nil, err
		}
	}
	scale := v.float("scale", 1/math.Sqrt(float64(q.width)))
	var grads [3]array[float64]
	for i, h := range hs[:3] {
		grads[i] = array[float64]{make([]float64, len(h.data)), []int{h.batch, h.n, h.rows, h.width}}
	}
	for h := range n {
		p := newMatrix(q.rows, k.rows)
		for i := range q.rows {
			last := k.rows
			if v.bool("is_causal", false) {
				last = min(i+1, k.rows)
			}
			for j := range last {
				s := scale * dot(q.head(h).row(i), k.head(h).row(j))
				if bias.data != nil {
					s += bias.data[(h*q.rows+i)*k.rows+j]
				}
				p.set(i, j, math.Exp(s-lse.data[h*q.rows+i]))
			}
		}
		g := grad.head(h)
		addTo(grads[2].data[h*k.rows*val.width:], multiply(p.transposed(), g), 1)
		slope := multiply(g, val.head(h).transposed())
		for i := range q.rows {
			mean := dot(g.row(i), out.head(h).row(i))
			for j, x := range slope.row(i) {
				slope.set(i, j, p.at(i, j)*(x-mean))
			}
		}
		addTo(grads[0].data[h*q.rows*q.width:], multiply(slope, k.head(h)), scale)
		addTo(grads[1].data[h*k.rows*k.width:], multiply(slope.transposed(), q.head(h)), scale)
	}
	outs := make([]*tensor, 3)
	for i := range outs {
		if outs[i], err = saveHeads(grads[i], dtypeOf(ts[i])); err != nil {
			return all(err, outs...)
		}
	}
	return outs, nil
}

// saveHeads is save with the heads of a position side by side, as PyTorch's
// attention has them.
func saveHeads(a array[float64], d ir.DType) (*tensor, error) {
	n, rows, width := int64(a.dims[1]), int64(a.dims[2]), int64(a.dims[3])
	t, err := newStrided(ir.MakeShape(d, a.dims...), []int64{rows * n * width, width, n * width, 1})
	if err != nil {
		return nil, err
	}
	if err := storeAll(t, a); err != nil {
		release(t)
		return nil, err
	}
	return t, nil
}

func dot(x, y []float64) float64 {
	var s float64
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

func addTo(to []float64, m matrix, by float64) {
	for i, x := range m.a {
		to[i] += by * x
	}
}

// convShape is what a convolution's gradient loops over, three dimensions deep.
type convShape struct {
	batch, groups, in, out         int // channels of a group
	x, y, k, stride, pad, dilation box
}

// place returns the place in the larger image of a tap at a place of the smaller one.
func (c *convShape) place(y, tap box) (box, bool) {
	var x box
	for d := range x {
		x[d] = y[d]*c.stride[d] - c.pad[d] + tap[d]*c.dilation[d]
		if x[d] < 0 || x[d] >= c.x[d] {
			return x, false
		}
	}
	return x, true
}

// taps calls fn for every product of a convolution with the positions of its
// operands. A transposed convolution is one from the output to the input.
func (c *convShape) taps(fn func(x, w, y int)) {
	for b := range c.batch {
		for g := range c.groups {
			for o := range c.out {
				for i := range c.in {
					yAt := ((b*c.groups+g)*c.out + o) * c.y.volume()
					xAt := ((b*c.groups+g)*c.in + i) * c.x.volume()
					wAt := ((g*c.out+o)*c.in + i) * c.k.volume()
					each(box{}, c.y, func(y box) {
						each(box{}, c.k, func(tap box) {
							if x, ok := c.place(y, tap); ok {
								fn(xAt+c.x.at(x), wAt+c.k.at(tap), yAt+c.y.at(y))
							}
						})
					})
				}
			}
		}
	}
}

// convBackward is the gradient of a convolution by its input, weights and bias,
// as far as they are wanted.
func convBackward(v values) ([]*tensor, error) {
	xt, x, err := argument[float64](v, "input")
	if err != nil {
		return nil, err
	}
	wt, w, err := argument[float64](v, "weight")
	if err != nil {
		return nil, err
	}
	_, g, err := argument[float64](v, "grad_output")
	if err != nil {
		return nil, err
	}
	c, err := convShapeOf(v, x.dims, w.dims, g.dims)
	if err != nil {
		return nil, err
	}
	wanted := v.ints("output_mask")
	if len(wanted) != 3 {
		return nil, fmt.Errorf("%w: a mask %v of three gradients", ir.ErrArg, wanted)
	}
	gx, gw := array[float64]{make([]float64, len(x.data)), x.dims}, array[float64]{make([]float64, len(w.data)), w.dims}
	if v.bool("transposed", false) {
		c.taps(func(to, tap, from int) {
			gx.data[from] += g.data[to] * w.data[tap]
			gw.data[tap] += g.data[to] * x.data[from]
		})
	} else {
		c.taps(func(from, tap, to int) {
			gx.data[from] += g.data[to] * w.data[tap]
			gw.data[tap] += g.data[to] * x.data[from]
		})
	}
	gb := array[float64]{make([]float64, g.dims[1]), g.dims[1:2]}
	plane := product(g.dims[2:])
	for i, y := range g.data {
		gb.data[i/plane%g.dims[1]] += y
	}
	makers := make([]func() (*tensor, error), 3)
	for i, a := range []array[float64]{gx, gw, gb} {
		makers[i] = newUndefined
		if wanted[i] != 0 {
			makers[i] = func() (*tensor, error) { return save(a, dtypeOf(xt)) }
		}
	}
	outs, err := several(makers...)
	if err != nil {
		return nil, err
	}
	if channelsLast(xt) || channelsLast(wt) {
		return lastChannels(outs, wanted)
	}
	return outs, nil
}

// lastChannels relays images and filters with their channels innermost.
func lastChannels(outs []*tensor, there []int64) ([]*tensor, error) {
	for i := range outs[:2] {
		if there[i] == 0 {
			continue
		}
		to, err := relaid(outs[i])
		if err != nil {
			outs[i] = nil
			return all(err, outs...)
		}
		outs[i] = to[0]
	}
	return outs, nil
}

// convShapeOf checks the operands. x and y are the images of a convolution; a
// transposed one has them exchanged.
func convShapeOf(v values, x, w, y []int) (*convShape, error) {
	n := len(x) - 2
	if n < 1 || n > 3 || len(w) != n+2 || len(y) != n+2 {
		return nil, fmt.Errorf("%w: a convolution of %v with %v to %v", ir.ErrShape, x, w, y)
	}
	if v.bool("transposed", false) {
		x, y = y, x
	}
	c := &convShape{batch: x[0], groups: v.int("groups", 1)}
	if c.groups < 1 || x[1]%c.groups != 0 || y[1]%c.groups != 0 || y[0] != x[0] || w[0] != y[1] || w[1]*c.groups != x[1] {
		return nil, fmt.Errorf("%w: a convolution of %v with %v to %v in %d groups", ir.ErrShape, x, w, y, c.groups)
	}
	c.in, c.out = x[1]/c.groups, y[1]/c.groups
	_, c.x, _ = images(x, n)
	_, c.y, _ = images(y, n)
	_, c.k, _ = images(w, n)
	var err error
	for _, p := range []struct {
		name      string
		otherwise int
		to        *box
	}{{"stride", 1, &c.stride}, {"padding", 0, &c.pad}, {"dilation", 1, &c.dilation}} {
		if *p.to, err = perAxis(v.ints(p.name), n, p.otherwise); err != nil {
			return nil, err
		}
	}
	return c, nil
}
