package ref

import "github.com/loris-ml/loris/ir"

func init() {
	kernels[ir.OpFull] = full
	kernels[ir.OpArange] = arange
	kernels[ir.OpLinspace] = linspace
}

// number returns a number attribute as float64 and, truncated, as int64.
func number(c *call, name string) (f float64, i int64) {
	switch v := c.Get(name).(type) {
	case int64:
		return float64(v), v
	case float64:
		return v, int64(v)
	}
	panic("a number is an int64 or a float64")
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
	startF, startI := number(c, "start")
	stepF, stepI := number(c, "step")
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
	start, startI := number(c, "start")
	end, endI := number(c, "end")
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
