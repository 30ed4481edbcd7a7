package ref

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() { kernels[aten.MatMul] = matmul }

// matmul sees a vector as a row on the left and a column on the right; the
// dimensions before the matrix broadcast.
func matmul(c *call) {
	x, y, out := c.in[0], c.in[1], c.out[0]
	xs, ys := x.shape.Dims(), y.shape.Dims()
	if len(xs) == 1 {
		xs = []int{1, xs[0]}
	}
	if len(ys) == 1 {
		ys = []int{ys[0], 1}
	}
	m, k, n := xs[len(xs)-2], xs[len(xs)-1], ys[len(ys)-1]
	xb := ir.MakeShape(x.dtype(), xs[:len(xs)-2]...)
	yb := ir.MakeShape(y.dtype(), ys[:len(ys)-2]...)
	batch, _ := ir.BroadcastDims(xb, yb)
	each(batch, func(idx []int, b int) {
		xo, yo, oo := at(xb, idx)*m*k, at(yb, idx)*k*n, b*m*n
		for i := range m {
			for j := range n {
				dot(out, oo+i*n+j, k, x, xo+i*k, 1, y, yo+j, n)
			}
		}
	})
}

// dot sets element o of out to the inner product of k elements of x and y that
// begin and step as given.
func dot(out tensor, o, k int, x tensor, xo, xstep int, y tensor, yo, ystep int) {
	if out.dtype().IsFloat() {
		acc := 0.0
		for p := range k {
			acc += x.float(xo+p*xstep) * y.float(yo+p*ystep)
		}
		out.setFloat(o, acc)
		return
	}
	acc := int64(0)
	for p := range k {
		acc += x.int(xo+p*xstep) * y.int(yo+p*ystep)
	}
	out.setInt(o, acc)
}
