package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
)

// poolRows are the poolings.
var poolRows = map[string]*row{
	"MaxPool":           many(1, 1, maxPool),
	"AveragePool":       one(1, 1, averagePool),
	"LpPool":            one(1, 1, lpPool),
	"GlobalAveragePool": same(func(x *loris.Tensor) *loris.Tensor { return x.Mean(loris.Dim(spatialDims(x)...), loris.Keepdim(true)) }),
	"GlobalMaxPool":     same(func(x *loris.Tensor) *loris.Tensor { return x.Amax(loris.Dim(spatialDims(x)...), loris.Keepdim(true)) }),
	"GlobalLpPool": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return lpNorm(x, float64(c.int("p", 2)), func(t *loris.Tensor) *loris.Tensor { return sum(t, spatialDims(t), true) })
	}),
	"MaxUnpool": one(2, 3, maxUnpool),
}

func spatialDims(x *loris.Tensor) []int {
	var dims []int
	for i := 2; i < x.Rank(); i++ {
		dims = append(dims, i)
	}
	return dims
}

// outSizes are the numbers of windows along each dimension. With ceil_mode a window may reach beyond
// the padding, but must begin before it.
func (w window) outSizes(spatial []int, ceil bool) []int {
	outs := make([]int, len(spatial))
	for i, size := range spatial {
		room := size + w.before[i] + w.after[i] - (w.kernel[i]-1)*w.dilation[i] - 1
		if room < 0 {
			continue
		}
		outs[i] = room/w.stride[i] + 1
		if ceil && room%w.stride[i] != 0 && outs[i]*w.stride[i] < size+w.before[i] {
			outs[i]++
		}
	}
	return outs
}

// poolWindow reads the geometry of a pooling, with the ends padded as far as its windows reach.
func (c *call) poolWindow(v *value) (w window, outs, over []int) {
	if v.rank() < 3 {
		c.fail("%v has no dimensions to pool", v)
	}
	spatial := v.dims[2:]
	w = c.geometry(spatial, c.list("kernel_shape"))
	if auto := c.text("auto_pad", "NOTSET"); auto == "VALID" {
		w.before, w.after = make([]int, len(spatial)), make([]int, len(spatial))
	}
	outs = w.outSizes(spatial, c.bool("ceil_mode", false))
	over = make([]int, len(spatial))
	for i, size := range spatial {
		if outs[i] == 0 {
			c.fail("the window %v is larger than %v with its padding", w.kernel, v)
		}
		over[i] = max((outs[i]-1)*w.stride[i]+(w.kernel[i]-1)*w.dilation[i]+1-size-w.before[i]-w.after[i], 0)
	}
	return w, outs, over
}

// windows returns x with two dimensions in place of each spatial one: the windows, and what each sees.
// The windows lie within x.
func (c *call) windows(x *loris.Tensor, w window, outs []int) *loris.Tensor {
	for i := len(outs) - 1; i >= 0; i-- {
		c.table(outs[i], w.kernel[i])
		index := make([]int64, 0, outs[i]*w.kernel[i])
		for o := range outs[i] {
			for k := range w.kernel[i] {
				index = append(index, int64(o*w.stride[i]+k*w.dilation[i]))
			}
		}
		dims := x.IndexSelect(2+i, c.tensor(hostInts(index...)))
		x = dims.Unflatten(2+i, outs[i], w.kernel[i])
	}
	return x
}

// insides are the dimensions of windows' result that a window sees.
func insides(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = 3 + 2*i
	}
	return dims
}

// widened pads x as far as the windows reach.
func widened(x *loris.Tensor, w window, over []int, fill any) *loris.Tensor {
	var list []int
	for i := len(over) - 1; i >= 0; i-- {
		list = append(list, w.before[i], w.after[i]+over[i])
	}
	if !slices.ContainsFunc(list, func(v int) bool { return v != 0 }) {
		return x
	}
	return x.ConstantPadNd(list, fill)
}

func maxPool(c *call, in []*value) []*value {
	v := in[0]
	x := c.tensor(v)
	w, outs, over := c.poolWindow(v)
	n := len(outs)
	if c.node.wants(1) {
		return c.maxPoolIndices(v, w, outs, over)
	}
	even := slices.Equal(w.before, w.after) && !slices.ContainsFunc(over, func(o int) bool { return o > 0 })
	for i := range n {
		even = even && w.before[i] <= w.kernel[i]/2
	}
	padding := w.before
	if !even || !x.DType().IsFloat() {
		x, padding = widened(x, w, over, lowest(x.DType())), make([]int, n)
	}
	if !x.DType().IsFloat() {
		return []*value{out(v.elem, c.windows(x, w, outs).Amax(loris.Dim(insides(n)...)))}
	}
	y, _ := x.MaxPoolWithIndices(w.kernel, w.stride, padding, w.dilation, false)
	return []*value{out(v.elem, y)}
}

// wants reports whether output i of a node is used.
func (n *node) wants(i int) bool { return i < len(n.out) && n.out[i] != "" }

// maxPoolIndices also returns where each largest element lies in the whole input.
func (c *call) maxPoolIndices(v *value, w window, outs, over []int) []*value {
	x := c.tensor(v)
	n := len(outs)
	spatial := v.dims[2:]
	m := c.run.make
	// The place of every element, in the order that the attribute asks for, moves with it.
	place := m.Arange(0, product(spatial), 1).Reshape(spatial...)
	if c.bool("storage_order", false) {
		back := make([]int, n)
		turned := make([]int, n)
		for i := range n {
			back[i], turned[i] = n-1-i, spatial[n-1-i]
		}
		place = m.Arange(0, product(spatial), 1).Reshape(turned...).Permute(back...)
	}
	lead := append([]int{1, 1}, spatial...)
	wide := c.windows(widened(x, w, over, lowest(x.DType())), w, outs)
	where := c.windows(widened(place.Reshape(lead...), w, over, 0), w, outs)
	order := []int{0, 1}
	for i := range n {
		order = append(order, 2+2*i)
	}
	order = append(order, insides(n)...)
	dims := append(append([]int{}, v.dims[:2]...), outs...)
	wide = wide.Permute(order...).Reshape(append(slices.Clone(dims), product(w.kernel))...)
	where = where.Permute(order...).Reshape(append(append([]int{1, 1}, outs...), product(w.kernel))...)
	best := wide.Argmax(loris.Dim(-1), loris.Keepdim(true))
	whole := append(slices.Clone(dims), product(w.kernel))
	index := where.Expand(whole...).Gather(-1, best).Squeeze(loris.Dim(-1))
	outer := m.Arange(0, v.dims[0]*v.dims[1], 1).Mul(product(spatial))
	index = index.Add(outer.Reshape(append([]int{v.dims[0], v.dims[1]}, slices.Repeat([]int{1}, n)...)...))
	return []*value{out(v.elem, wide.Gather(-1, best).Squeeze(loris.Dim(-1))), out(tInt64, index)}
}

func averagePool(c *call, in []*value) *value {
	v := in[0]
	x := c.tensor(v)
	w, outs, over := c.poolWindow(v)
	n := len(outs)
	if n == 2 && slices.Equal(w.before, w.after) && slices.Max(over) == 0 && slices.Max(w.dilation) == 1 && w.before[0] <= w.kernel[0]/2 && w.before[1] <= w.kernel[1]/2 {
		return out(v.elem, x.AvgPool2d(w.kernel, loris.Stride(w.stride...), loris.Padding(w.before...), loris.CountIncludePad(c.bool("count_include_pad", false))))
	}
	total := sum(c.windows(widened(x, w, over, 0), w, outs), insides(n), false)
	// How many elements a window sees: of the input, or of the input and its padding.
	ones := x.Select(0, 0).Select(0, 0).FullLike(1).Unsqueeze(0).Unsqueeze(0)
	if c.bool("count_include_pad", false) {
		ones = widened(ones, window{before: w.before, after: w.after}, make([]int, n), 1)
		w.before, w.after = make([]int, n), make([]int, n)
	}
	count := sum(c.windows(widened(ones, w, over, 0), w, outs), insides(n), false)
	return out(v.elem, total.Div(count))
}

// lpNorm is the p-norm whose sums are total's.
func lpNorm(x *loris.Tensor, p float64, total func(*loris.Tensor) *loris.Tensor) *loris.Tensor {
	switch p {
	case 1:
		return total(x.Abs())
	case 2:
		return total(x.Mul(x)).Sqrt()
	}
	return total(x.Abs().Pow(p)).Pow(1 / p)
}

func lpPool(c *call, in []*value) *value {
	v := in[0]
	w, outs, over := c.poolWindow(v)
	p := float64(c.int("p", 2))
	if a := c.attr("p"); a != nil && c.node.version < 2 {
		p = c.float("p", 2)
	}
	wide := c.windows(widened(c.tensor(v), w, over, 0), w, outs)
	return out(v.elem, lpNorm(wide, p, func(t *loris.Tensor) *loris.Tensor { return sum(t, insides(len(outs)), false) }))
}

// maxUnpool puts elements back to where MaxPool found them.
func maxUnpool(c *call, in []*value) *value {
	v := in[0]
	n := v.rank() - 2
	w := c.geometry(v.dims[2:], c.list("kernel_shape"))
	natural := make([]int, n)
	for i := range n {
		natural[i] = (v.dims[2+i]-1)*w.stride[i] + w.kernel[i] - w.before[i] - w.after[i]
	}
	inner := product(natural)
	dims := append(slices.Clone(v.dims[:2]), natural...)
	total := product(dims)
	flat := c.tensor(v).Reshape(v.numel())
	index := c.tensor(in[1]).Reshape(v.numel())
	want := dims
	if s := opt(in, 2); s != nil {
		want = c.intList(s)
	}
	if len(want) != v.rank() {
		c.fail("output shape %v does not fit %v", want, v)
	}
	if inner == 0 || total == 0 {
		c.fail("the result of %v would be empty", v)
	}
	y := flat.Select(0, 0).ZerosLike().Expand(total).Scatter(0, index, flat).Reshape(dims...)
	if !slices.Equal(want, dims) {
		var list []int
		for i := n - 1; i >= 0; i-- {
			list = append(list, 0, want[2+i]-natural[i])
		}
		y = y.ConstantPadNd(list, 0)
	}
	return out(v.elem, y)
}
