package conv

import (
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// finish turns the unit's sums, n of each position's step columns, into
// outputs: the residual, the activation, and the output's type and layout.
func (c *Call[T, A]) finish(w *worker[A], u *unit, channel, n, step int) {
	p := c.Plan
	y := c.origin(&p.y, u, channel)
	yRow, yCol := u.ph.dims[1].step*p.y.Spatial[1], u.ph.dims[2].step*p.y.Spatial[2]
	if c.scales() {
		c.scaleSums(w, u, channel, n, step)
	}
	res := 0
	r := &c.ResidualLayout
	if c.Residual != nil {
		res = c.origin(r, u, channel)
	} else if _, _, clamped := c.Activation.Clamp(); !clamped || c.scales() {
		vec.Apply(c.Activation, w.sums)
	}
	rRow, rCol := u.ph.dims[1].step*r.Spatial[1], u.ph.dims[2].step*r.Spatial[2]
	// Members whose outputs alternate may have one more together than the result has.
	rows, wide := u.hn, u.wn*len(u.ph.members)
	cols := min(wide, p.g.Out[2]-u.w*len(u.ph.members))
	adjoin := c.Residual == nil || rCol == 1 && rRow == cols
	if adjoin && p.y.Channel != 1 && yCol == 1 && yRow == cols && cols == wide {
		rows, cols, wide = 1, rows*cols, rows*wide // adjoining rows of a plane are one
	}
	yDepth, rDepth := u.ph.dims[0].step*p.y.Spatial[0], u.ph.dims[0].step*r.Spatial[0]
	for plane := range u.nn * u.dn {
		img, d := plane/u.dn, plane%u.dn
		for row := range rows {
			sums := w.sums[(plane*rows+row)*wide*step:][:cols*step]
			if c.Residual != nil {
				c.addRow(w, sums, c.Residual[res+img*r.Batch+d*rDepth+row*rRow:], n, step, cols, rCol)
			}
			out := c.Y[y+img*p.y.Batch+d*yDepth+row*yRow:]
			if p.y.Channel == 1 {
				for i := range cols {
					vec.Store(out[i*yCol:], sums[i*step:][:n])
				}
			} else {
				storePlanes(w, out, sums, n, step, cols, p.y.Channel, yCol)
			}
		}
	}
}

// addRow adds a row of the residual to the sums and applies the activation.
func (c *Call[T, A]) addRow(w *worker[A], sums []A, res []T, n, step, cols, colStep int) {
	channel := c.ResidualLayout.Channel
	wide, same := any(res).([]A)
	if !same || colStep != 1 || c.Scale != 0 && c.Scale != 1 {
		addResidual(sums, res, c.Scale, n, step, cols, colStep, channel)
		vec.Apply(c.Activation, sums)
		return
	}
	w.line = grow(w.line, cols*step)
	gemm.Transpose(w.line, step, wide, channel, n, cols)
	relu := c.Activation.Kind == vec.ReLU
	gemm.AddRow(sums, w.line[:len(sums)], relu)
	if !relu {
		vec.Apply(c.Activation, sums)
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

// storePlanes stores n channels of a row of cols outputs.
func storePlanes[A Float, T Element](w *worker[A], out []T, sums []A, n, step, cols, channel, col int) {
	if wide, ok := any(out).([]A); ok && col == 1 {
		gemm.Transpose(wide, channel, sums, step, cols, n)
		return
	}
	w.line = grow(w.line, n*cols)
	gemm.Transpose(w.line, cols, sums, step, cols, n)
	for k := range n {
		line := w.line[k*cols:][:cols]
		if col == 1 {
			vec.Store(out[k*channel:], line)
			continue
		}
		for i, v := range line {
			out[k*channel+i*col] = vec.Narrow[T](v)
		}
	}
}
