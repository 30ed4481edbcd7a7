package conv

import (
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// finish turns the unit's sums, n of each position's step columns, into
// outputs: the residual, the activation, and the output's type and layout.
func (c *Call[T, A]) finish(w *worker[A], u *unit, channel, n, step int) {
	p := c.Plan
	y := c.origin(&p.y, u, channel)
	yRow, yCol := u.ph.dims[1].step*p.y.Spatial[1], u.ph.dims[2].step*p.y.Spatial[2]
	res := 0
	r := &c.ResidualLayout
	if c.Residual != nil {
		res = c.origin(r, u, channel)
	}
	rRow, rCol := u.ph.dims[1].step*r.Spatial[1], u.ph.dims[2].step*r.Spatial[2]
	if c.Residual == nil {
		vec.Apply(c.Activation, w.sums)
	}
	for img := range u.nn {
		for row := range u.hn {
			sums := w.sums[(img*u.hn+row)*u.wn*step:][:u.wn*step]
			if c.Residual != nil {
				addResidual(sums, c.Residual[res+img*r.Batch+row*rRow:], c.Scale, n, step, u.wn, rCol, r.Channel)
				vec.Apply(c.Activation, sums)
			}
			out := c.Y[y+img*p.y.Batch+row*yRow:]
			if p.y.Channel == 1 {
				for i := range u.wn {
					vec.Store(out[i*yCol:], sums[i*step:][:n])
				}
				continue
			}
			w.line = grow(w.line, u.wn)
			for k := range n {
				storeColumn(out[k*p.y.Channel:], w.line, sums[k:], step, yCol)
			}
		}
	}
}

// addResidual adds a row of the residual to the sums.
func addResidual[A Float, T Element](sums []A, res []T, scale float64, n, step, cols, colStep, channelStep int) {
	f := A(scale)
	if scale == 0 {
		f = 1
	}
	for i := range cols {
		s := sums[i*step:][:n]
		at := i * colStep
		for k := range s {
			s[k] += f * vec.Wide[A](res[at])
			at += channelStep
		}
	}
}

// storeColumn stores one channel of a row of outputs.
func storeColumn[A Float, T Element](out []T, line, sums []A, step, yCol int) {
	at := 0
	for i := range line {
		line[i] = sums[at]
		at += step
	}
	if yCol == 1 {
		vec.Store(out, line)
		return
	}
	for i, v := range line {
		out[i*yCol] = vec.Narrow[T](v)
	}
}
