package ref

import (
	"github.com/loris-ml/loris/internal/aten"
)

func init() {
	kernels[aten.Full] = full
	kernels[aten.Arange] = arange
	kernels[aten.Linspace] = linspace
}

func full(c *call) {
	out := c.out[0]
	for i := range out.numel() {
		switch v := c.Get("fill_value").(type) {
		case int64:
			out.setInt(i, v)
		case float64:
			out.setFloat(i, v)
		}
	}
}

func arange(c *call) {
	out := c.out[0]
	startF, startI := c.Number("start")
	stepF, stepI := c.Number("step")
	for i := range out.numel() {
		if out.dtype().IsFloat() {
			out.setFloat(i, startF+float64(i)*stepF)
		} else {
			out.setInt(i, startI+int64(i)*stepI)
		}
	}
}

func linspace(c *call) {
	out := c.out[0]
	start, startI := c.Number("start")
	end, endI := c.Number("end")
	if !out.dtype().IsFloat() {
		start, end = float64(startI), float64(endI)
	}
	n := c.Int("steps")
	step := (end - start) / float64(n-1)
	for i := range n {
		switch {
		case n == 1:
			out.setFloat(i, start)
		case i < n/2:
			out.setFloat(i, start+float64(i)*step)
		default:
			out.setFloat(i, end-float64(n-1-i)*step)
		}
	}
}
