package cpu

import (
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// columnCost is the time of writing one element of the columns in nanoseconds.
const columnCost = 0.5

// convProduct is a convolution as the product of the filters, which are read where
// they lie, and the columns of one image. Packing the filters of each run would cost as
// much as the convolution where they have more elements than the columns.
type convProduct[T gemm.Element] struct {
	g       conv.Geometry
	columns operand
	grain   int
	options gemm.Options[T]
	x       []T
	image   conv.Layout
	data    []T // of columns
	body    func(lo, hi int)
}

// product returns the run as a product, or nil if it is better not one.
func (r *convRun[T, A]) product(c *call, g conv.Geometry, n int) *convProduct[T] {
	k, out := g.Kernel[0]*g.Kernel[1]*g.Kernel[2], g.Out[0]*g.Out[1]*g.Out[2]
	want := g.Filters()
	want[0] = r.strides[0]
	if r.steady {
		return nil
	}
	if _, same := any([]T(nil)).([]A); !same && r.affine != nil || g.N != 1 || g.Groups != 1 || g.Transposed || out == 0 || g.COut < out || r.strides != want {
		return nil
	}
	p := &convProduct[T]{g: g, columns: c.l.bytesTemp(sizeOf[T](), g.CIn*k*out), image: imageLayout(r.in, n)}
	p.grain = c.l.grain(columnCost * float64(k*out))
	p.options.Act, p.options.Limiter = r.call.Activation.Kind, r.call.Limiter
	p.body = func(lo, hi int) { conv.Columns(p.data, p.x, &p.g, p.image, lo, hi) }
	return p
}

// runProduct is run for a convolution that is a product.
func (r *convRun[T, A]) runProduct(_, _ int) {
	p, k := r.asProduct, &r.call
	r.bind()
	o := &p.options
	o.RowBias = k.Bias
	o.RowScale, _ = any(r.scale).([]T) // narrow ones have none
	p.x, p.data = k.X, elements[T](r.mem, p.columns)
	k.Limiter.For(p.g.CIn, p.grain, p.body)
	m, n, depth := p.g.COut, p.g.Out[0]*p.g.Out[1]*p.g.Out[2], p.g.CIn*p.g.Kernel[0]*p.g.Kernel[1]*p.g.Kernel[2]
	if r.hasAddend {
		l := &k.ResidualLayout
		o.Residual = gemm.Matrix[T]{Data: k.Residual, Rows: m, Cols: n, RowStride: l.Channel, ColStride: l.Spatial[2]}
	}
	filters := gemm.Matrix[T]{Data: r.src, Rows: m, Cols: depth, RowStride: r.strides[0], ColStride: 1}
	gemm.Mul(gemm.Dense(k.Y, m, n), filters, gemm.Dense(p.data, depth, n), o)
	r.unbind()
	p.x, p.data, o.RowBias, o.RowScale, o.Residual = nil, nil, nil, nil, gemm.Matrix[T]{}
}
