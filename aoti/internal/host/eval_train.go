//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// trainEvals are the gradients of the ops that networks spend their time in.
var trainEvals = map[string]evalFunc{
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
