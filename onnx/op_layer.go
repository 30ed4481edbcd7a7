package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
)

// layerRows are products and convolutions.
var layerRows = map[string]*row{
	"MatMul": one(2, 2, matMul),
	"Gemm":   one(2, 3, gemm),
	"Conv": one(2, 3, func(c *call, in []*value) *value {
		return out(in[0].elem, c.conv(c.tensor(in[0]), c.tensor(in[1]), c.maybe(opt(in, 2))))
	}),
	"ConvTranspose": one(2, 3, convTranspose),
	"Einsum":        one(1, -1, einsum),
	"MatMulInteger": one(2, 4, matMulInteger),
	"ConvInteger":   one(2, 4, convInteger),
	"QLinearMatMul": one(8, 8, qLinearMatMul),
	"QLinearConv":   one(8, 9, qLinearConv),
	"Det":           same((*loris.Tensor).Det),
	"Col2Im":        one(3, 3, col2Im),
	"AffineGrid":    one(2, 2, affineGrid),
	"GridSample":    one(2, 2, gridSample),
}

// maybe returns the tensor of an input that may be left out.
func (c *call) maybe(v *value) *loris.Tensor {
	if v == nil || v.empty {
		return nil
	}
	return c.tensor(v)
}

func matMul(c *call, in []*value) *value {
	if in[0].elem != in[1].elem {
		c.fail("the operands are %v and %v, of one type they must be", in[0], in[1])
	}
	return out(in[0].elem, c.wrap(in[0].elem, c.tensor(in[0]).MatMul(c.tensor(in[1]))))
}

func gemm(c *call, in []*value) *value {
	a, b := c.tensor(in[0]), c.tensor(in[1])
	if a.Rank() != 2 || b.Rank() != 2 {
		c.fail("matrices are expected, not %v and %v", in[0], in[1])
	}
	transA, transB := c.bool("transA", false), c.bool("transB", false)
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	bias := c.maybe(opt(in, 2))
	if transA {
		a = a.Transpose(0, 1)
	}
	if alpha == 1 && beta == 1 && transB && bias != nil && bias.Rank() == 1 && bias.Dim(0) == b.Dim(0) && a.DType().IsFloat() {
		return out(in[0].elem, a.Linear(b, loris.Bias(bias)))
	}
	if transB {
		b = b.Transpose(0, 1)
	}
	y := a.MatMul(b)
	if alpha != 1 {
		y = y.Mul(c.factor(y, alpha))
	}
	if bias != nil {
		if beta != 1 {
			bias = bias.Mul(c.factor(bias, beta))
		}
		y = y.Add(bias)
	}
	return out(in[0].elem, y)
}

// factor is a number that multiplies a tensor; of integers it must be one.
func (c *call) factor(t *loris.Tensor, v float64) any {
	if t.DType().IsFloat() {
		return v
	}
	if v != float64(int(v)) {
		c.unsupported("the factor %v for integers", v)
	}
	return int(v)
}

// window is the geometry of a convolution or pooling.
type window struct {
	kernel, stride, dilation []int
	before, after            []int // padding
}

// geometry reads the attributes of a window over the last dimensions of x.
func (c *call) geometry(spatial, kernel []int) window {
	n := len(spatial)
	if len(kernel) != n || n == 0 {
		c.fail("a window of %v does not fit %d dimensions", kernel, n)
	}
	w := window{kernel: kernel, stride: c.list("strides"), dilation: c.list("dilations"), before: make([]int, n), after: make([]int, n)}
	ones := slices.Repeat([]int{1}, n)
	if w.stride == nil {
		w.stride = ones
	}
	if w.dilation == nil {
		w.dilation = ones
	}
	pads := c.list("pads")
	if len(w.stride) != n || len(w.dilation) != n || pads != nil && len(pads) != 2*n {
		c.fail("strides %v, dilations %v and pads %v do not fit %d dimensions", w.stride, w.dilation, pads, n)
	}
	for i := range n {
		if w.stride[i] < 1 || w.dilation[i] < 1 || w.kernel[i] < 1 {
			c.fail("strides %v, dilations %v, window %v", w.stride, w.dilation, w.kernel)
		}
	}
	switch auto := c.text("auto_pad", "NOTSET"); auto {
	case "SAME_UPPER", "SAME_LOWER":
		for i, size := range spatial {
			outSize := (size + w.stride[i] - 1) / w.stride[i]
			total := max((outSize-1)*w.stride[i]+(w.kernel[i]-1)*w.dilation[i]+1-size, 0)
			w.before[i], w.after[i] = total/2, total-total/2
			if auto == "SAME_LOWER" {
				w.before[i], w.after[i] = w.after[i], w.before[i]
			}
		}
	case "NOTSET", "":
		if pads != nil {
			w.before, w.after = pads[:n], pads[n:]
		}
	}
	return w
}

// conv records a convolution with the node's attributes. Padding that differs at the two ends is
// added first.
func (c *call) conv(x, weight, bias *loris.Tensor) *loris.Tensor {
	if x.Rank() != weight.Rank() || x.Rank() < 3 {
		c.fail("the weight %v does not fit %v", weight.Shape(), x.Shape())
	}
	kernel := weight.Dims()[2:]
	if k := c.list("kernel_shape"); k != nil && !slices.Equal(k, kernel) {
		c.fail("kernel_shape %v contradicts the weight %v", k, weight.Shape())
	}
	w := c.geometry(x.Dims()[2:], kernel)
	groups := c.int("group", 1)
	x, padding := c.even(x, w, 0)
	return x.Convolution(weight, bias, w.stride, padding, w.dilation, false, make([]int, len(kernel)), groups)
}

// even adds what padding the ends of a dimension have more than each other; what is left is equal.
func (c *call) even(x *loris.Tensor, w window, fill any) (*loris.Tensor, []int) {
	if slices.Equal(w.before, w.after) && (len(w.before) == 0 || slices.Min(w.before) >= 0) {
		return x, w.before
	}
	var list []int
	for i := len(w.before) - 1; i >= 0; i-- {
		list = append(list, w.before[i], w.after[i])
	}
	return x.ConstantPadNd(list, fill), make([]int, len(w.before))
}

func convTranspose(c *call, in []*value) *value {
	x, weight := c.tensor(in[0]), c.tensor(in[1])
	n := x.Rank() - 2
	if n < 1 || weight.Rank() != x.Rank() {
		c.fail("the weight %v does not fit %v", weight.Shape(), x.Shape())
	}
	kernel := weight.Dims()[2:]
	w := c.geometry(x.Dims()[2:], kernel)
	extra := c.list("output_padding")
	if extra == nil {
		extra = make([]int, n)
	}
	if len(extra) != n {
		c.fail("output_padding %v does not fit %d dimensions", extra, n)
	}
	c.transposedPadding(x.Dims()[2:], &w, extra)
	// The whole result, of which the padding at both ends is cut off.
	y := x.Convolution(weight, nil, w.stride, make([]int, n), w.dilation, true, make([]int, n), c.int("group", 1))
	var list []int
	for i := n - 1; i >= 0; i-- {
		list = append(list, -w.before[i], extra[i]-w.after[i])
	}
	if slices.ContainsFunc(list, func(v int) bool { return v != 0 }) {
		y = y.ConstantPadNd(list, 0)
	}
	if bias := c.maybe(opt(in, 2)); bias != nil {
		y = y.Add(padRank(bias, n))
	}
	return out(in[0].elem, y)
}

// transposedPadding finds the padding of a transposed convolution from the size that its result
// shall have.
func (c *call) transposedPadding(spatial []int, w *window, extra []int) {
	want := c.list("output_shape")
	if len(want) == len(spatial)+2 {
		want = want[2:]
	}
	auto := c.text("auto_pad", "NOTSET")
	same := auto == "SAME_UPPER" || auto == "SAME_LOWER"
	if want == nil && !same {
		return
	}
	if want == nil {
		for i, s := range spatial {
			want = append(want, s*w.stride[i])
		}
	}
	if len(want) != len(spatial) {
		c.fail("output_shape %v does not fit %d dimensions", want, len(spatial))
	}
	w.before, w.after = make([]int, len(spatial)), make([]int, len(spatial))
	for i, s := range spatial {
		total := w.stride[i]*(s-1) + extra[i] + (w.kernel[i]-1)*w.dilation[i] + 1 - want[i]
		if total < 0 { // more than the convolution gives: the rest is at the end
			w.before[i], w.after[i] = 0, total
			continue
		}
		half := total / 2
		if auto == "SAME_UPPER" {
			w.before[i], w.after[i] = half, total-half
		} else {
			w.before[i], w.after[i] = total-half, half
		}
	}
}

func einsum(c *call, in []*value) *value {
	return out(in[0].elem, loris.Einsum(c.text("equation", ""), c.tensors(in)))
}

// centered returns integers less their zero point as f32 of i32, which products of 8 bits are exact in
// as long as sums stay below 2²⁴; products compute in i32.
func (c *call) centered(v, zero *value, shape func(z *loris.Tensor) *loris.Tensor) *loris.Tensor {
	t := c.tensor(v).Cast(loris.I32)
	if zero == nil {
		return t
	}
	z := c.tensor(zero).Cast(loris.I32)
	if zero.numel() > 1 {
		z = shape(z)
	} else {
		z = z.Reshape()
	}
	return t.Sub(z)
}

// byRow lays zero points or scales of a left operand along its rows.
func byRow(z *loris.Tensor) *loris.Tensor {
	if z.Rank() == 1 {
		return z.Unsqueeze(1)
	}
	return z
}

func asIs(z *loris.Tensor) *loris.Tensor { return z }

// byChannel lays zero points or scales of a weight along its first dimension.
func byChannel(rank int) func(z *loris.Tensor) *loris.Tensor {
	return func(z *loris.Tensor) *loris.Tensor { return padRank(z, rank-1) }
}

func matMulInteger(c *call, in []*value) *value {
	a, b := c.centered(in[0], opt(in, 2), byRow), c.centered(in[1], opt(in, 3), asIs)
	return out(tInt32, a.MatMul(b))
}

func convInteger(c *call, in []*value) *value {
	x := c.centered(in[0], opt(in, 2), asIs)
	w := c.centered(in[1], opt(in, 3), byChannel(in[1].rank()))
	// Convolution computes in floats: in f64 every sum of 8-bit products is exact.
	return out(tInt32, c.conv(x.Cast(loris.F64), w.Cast(loris.F64), nil).Cast(loris.I32))
}

// requantized scales sums of products to the result's type.
func (c *call) requantized(y, scale *loris.Tensor, outScale, zero *value) *value {
	lo, hi := zero.elem.limits()
	t := toF32(y).Mul(toF32(scale)).Div(toF32(c.tensor(outScale))).Round().Add(toF32(c.tensor(zero)))
	if !zero.elem.integer() {
		return c.cast(out(tFloat, t), zero.elem)
	}
	return out(zero.elem, t.Clamp(lo, hi).Cast(loris.I32).Cast(zero.elem.dtype()))
}

func qLinearMatMul(c *call, in []*value) *value {
	a, b := c.centered(in[0], in[2], byRow), c.centered(in[3], in[5], asIs)
	scale := byRow(c.tensor(in[1])).Mul(c.tensor(in[4]))
	return c.requantized(a.MatMul(b), scale, in[6], in[7])
}

func qLinearConv(c *call, in []*value) *value {
	x := c.centered(in[0], in[2], asIs)
	w := c.centered(in[3], in[5], byChannel(in[3].rank()))
	y := c.conv(x.Cast(loris.F64), w.Cast(loris.F64), nil)
	if bias := c.maybe(opt(in, 8)); bias != nil {
		y = y.Add(padRank(bias.Cast(loris.F64), in[0].rank()-2))
	}
	scale := c.tensor(in[1])
	ws := c.tensor(in[4])
	if in[4].numel() > 1 {
		ws = padRank(ws, in[0].rank()-2)
	} else {
		ws = ws.Reshape()
	}
	return c.requantized(y, scale.Reshape().Mul(ws), in[6], in[7])
}
