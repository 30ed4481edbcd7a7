package kernels

// Pool is the geometry of pooling over three spatial dimensions (fewer are
// padded with leading ones).
type Pool struct {
	In, Kernel, Out       [3]int
	Stride, Pad, Dilation [3]int
}

// MaxPool pools planes lo..hi-1: values get the greatest element under each
// window, and indices where in its plane the first of them is; a NaN, the last
// one, wins. A window that holds nothing but padding gives least and index 0.
func MaxPool[T Number](values []T, indices []int64, x []T, g *Pool, least T, lo, hi int) {
	in := g.In[0] * g.In[1] * g.In[2]
	out := g.Out[0] * g.Out[1] * g.Out[2]
	for plane := lo; plane < hi; plane++ {
		src := x[plane*in : (plane+1)*in]
		v, ix := values[plane*out:(plane+1)*out], indices[plane*out:(plane+1)*out]
		o := 0
		for o0 := range g.Out[0] {
			for o1 := range g.Out[1] {
				for o2 := range g.Out[2] {
					v[o], ix[o] = maxWindow(src, g, [3]int{o0, o1, o2}, least)
					o++
				}
			}
		}
	}
}

func maxWindow[T Number](src []T, g *Pool, o [3]int, least T) (T, int64) {
	var from, to [3]int
	for d := range o {
		s := o[d]*g.Stride[d] - g.Pad[d]
		to[d] = min(s+(g.Kernel[d]-1)*g.Dilation[d]+1, g.In[d])
		for s < 0 {
			s += g.Dilation[d]
		}
		from[d] = s
	}
	best := least
	for d := range from {
		if from[d] >= to[d] {
			return best, 0
		}
	}
	at := (from[0]*g.In[1]+from[1])*g.In[2] + from[2]
	for i0 := from[0]; i0 < to[0]; i0 += g.Dilation[0] {
		for i1 := from[1]; i1 < to[1]; i1 += g.Dilation[1] {
			row := (i0*g.In[1] + i1) * g.In[2]
			for i2 := from[2]; i2 < to[2]; i2 += g.Dilation[2] {
				if x := src[row+i2]; x > best || x != x {
					best, at = x, row+i2
				}
			}
		}
	}
	return best, int64(at)
}
