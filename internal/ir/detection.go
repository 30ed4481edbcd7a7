package ir

import (
	"math"
	"slices"
)

// Ops of object detection, as torchvision defines them, from reads of images at places between pixels.

func init() {
	register("nms_static(Tensor dets, Tensor scores, float iou_threshold, *, int size, int fill_value=-1) -> Tensor", Spec{
		GoName: "NMSStatic", Category: Indexing,
		Doc: "The first size of the boxes dets [n, 4], from (x1, y1) to (x2, y2), that remain, by their places from the best of scores [n] on, when each is " +
			"left out that overlaps a better one by more than iou_threshold of what both cover; i64[size], with fill_value in the places that are left. " +
			"Floating dtypes. As torchvision.ops.nms, whose result's size depends on the data.",
		Decompose: decomposeNMS,
		NoGrad:    "the result is an index",
	})
	const regions = "Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio=-1, bool aligned=False"
	const doc = "Means of input [N, C, H, W] in pooled_height·pooled_width bins of each of the regions rois [K, 5], an image's number and the corners (x1, y1) and (x2, y2), " +
		"scaled by spatial_scale; [K, C, pooled_height, pooled_width]. A bin is read bilinearly at sampling_ratio² places, or where that is not above 0 at as many along a side as it " +
		"has pixels, rounded up; aligned takes pixels by their centres. No gradient flows to rois. "
	register("roi_align("+regions+") -> Tensor", Spec{
		GoName: "ROIAlign", Category: Neural,
		Doc:       doc + "Without a sampling_ratio a region larger than the image is an error at run time, since shapes do not depend on data. Floating dtypes. As torchvision.ops.roi_align.",
		Decompose: func(b *Builder, a Args) []Value { return regionBins(b, a, 0, "avg") },
	})
	register("_roi_align("+regions+", int max_samples=0, str mode='avg') -> Tensor", Spec{
		Category: Neural, Unlisted: true,
		Doc:       "roi_align for regions whose bins have at most max_samples pixels along a side, 0 for as many as the image has, and with mode max the largest of the weighted pixels that a bin reads.",
		Decompose: func(b *Builder, a Args) []Value { return regionBins(b, a, a.Int("max_samples"), a.Str("mode")) },
	})
	register("deform_conv2d(Tensor input, Tensor offset, Tensor weight, Tensor? bias=None, int[] stride=[1,1], int[] padding=[0,0], int[] dilation=[1,1], Tensor? mask=None) -> Tensor", Spec{
		GoName: "DeformConv2d", Category: Neural,
		Doc: "Convolution of input [N, C, H, W] with weight [O, C/groups, kH, kW] whose taps are read bilinearly at places moved by offset [N, 2·parts·kH·kW, oH, oW], pairs (y, x), and " +
			"multiplied by mask [N, parts·kH·kW, oH, oW]; channels are in equal parts, each with its own offsets. What lies outside counts as 0. Floating dtypes. As torchvision.ops.deform_conv2d.",
		Decompose: decomposeDeformConv,
	})
}

// decomposeNMS goes through the boxes from the best on. Each that still remains takes away those behind
// it that it overlaps, so memory is in proportion to the boxes, not to pairs of them.
func decomposeNMS(b *Builder, a Args) []Value {
	boxes, scores, size, fill := a.In[0], a.In[1], a.Int("size"), a.Int("fill_value")
	requireSameDType(a, "scores")
	n := 0
	switch d := boxes.DType(); {
	case !d.IsFloat():
		a.Fail(ErrDType, "not defined for %v operands", d)
	case boxes.Rank() != 2 || boxes.Dim(1) != 4 || scores.Shape() != MakeShape(d, boxes.Dim(0)):
		a.Fail(ErrShape, "dets must be [n, 4] and scores [n], got %v and %v", boxes.Shape(), scores.Shape())
	case size < 0:
		a.Fail(ErrArg, "size must not be negative, got %d", size)
	default:
		n = boxes.Dim(0)
	}
	if n == 0 {
		return []Value{b.Full([]int{size}, fill, I64)}
	}
	_, order := b.Sort(scores, 0, true)
	boxes = b.widen(b.IndexSelect(boxes, 0, order))
	edge := func(boxes Value, i int) Value {
		dims := boxes.Shape().Dims()
		return b.Reshape(b.Slice(boxes, -1, i, i+1, 1), dims[:len(dims)-1]...)
	}
	x1, y1, x2, y2 := edge(boxes, 0), edge(boxes, 1), edge(boxes, 2), edge(boxes, 3)
	area := b.Mul(b.Sub(x2, x1), b.Sub(y2, y1))
	places := b.Iota(n, I64)
	threshold := a.float("iou_threshold")
	last, _ := b.loop([]Value{b.Full([]int{n}, false, Bool)}, []Value{x1, y1, x2, y2, area, places}, []Value{x1, y1, x2, y2, area, places}, n, false,
		func(b *Builder, carry, best, all []Value) (next, results []Value) {
			zero := b.Const(0, area.DType())
			across := func(lo, hi int) Value {
				return b.maximum(b.Sub(b.minimum(best[hi], all[hi]), b.maximum(best[lo], all[lo])), zero)
			}
			shared := b.Mul(across(0, 2), across(1, 3))
			overlap := b.Div(shared, b.Sub(b.Add(best[4], all[4]), shared))
			taken := b.logicalAnd(b.gt(overlap, b.Const(threshold, area.DType())), b.gt(all[5], best[5]))
			gone := b.IndexSelect(carry[0], 0, b.Reshape(best[5], 1))
			return []Value{b.logicalOr(carry[0], b.logicalAnd(taken, b.logicalNot(gone)))}, nil
		})
	return []Value{b.front(b.logicalNot(last[0]), order, size, b.Const(fill, I64))}
}

// regionAxis is how the bins of the regions lie along an axis of the image: for each region, bin and
// sample the two pixels that it reads, and how many samples of a bin count.
type regionAxis struct {
	taps    []gridTap // [regions, bins, samples]
	used    Value     // whether a sample counts, of the same dimensions
	count   Value     // [regions], floating
	bins    int
	samples int
}

// regionAxis reads the regions' edges lo and hi, in pixels.
func (b *Builder) regionAxis(lo, hi Value, size, bins, ratio, most int, aligned bool) regionAxis {
	d, k := lo.DType(), lo.Dim(0)
	c := func(v float64) Value { return b.Const(v, d) }
	length := b.Sub(hi, lo)
	if !aligned {
		length = b.maximum(length, c(1))
	}
	bin := b.Div(length, c(float64(bins)))
	r := regionAxis{bins: bins, samples: ratio, count: b.Full([]int{k}, ratio, d)}
	beyond := Value{} // regions with more samples than there is room for
	if ratio <= 0 {
		if r.samples = most; most <= 0 {
			r.samples = max((size+bins-1)/bins, 1)
		}
		r.count = b.maximum(b.ceil(bin), c(0))
		beyond = b.gt(r.count, c(float64(r.samples)))
	}
	dims := []int{k, bins, r.samples}
	each := func(v Value) Value { return b.Reshape(v, k, 1, 1) }
	along := func(n int, shape ...int) Value { return b.Reshape(b.Iota(n, d), shape...) }
	r.used = b.Expand(b.lt(along(r.samples, 1, 1, r.samples), each(r.count)), dims...)
	step := b.Div(b.Add(along(r.samples, 1, 1, r.samples), c(0.5)), each(r.count))
	at := b.Add(each(lo), b.Mul(b.Add(along(bins, 1, bins, 1), step), each(bin)))
	inside := b.logicalAnd(b.ge(at, c(-1)), b.le(at, c(float64(size))))
	inside = b.logicalAnd(inside, r.used)
	at = b.minimum(b.maximum(b.Where(inside, at, c(0)), c(0)), c(float64(size-1)))
	first := b.floor(at)
	part := b.Sub(at, first)
	low := b.Cast(first, I64)
	high := b.minimum(b.Add(low, b.Const(1, I64)), b.Const(size-1, I64))
	if !beyond.IsNil() { // no pixel is there, which ends the run
		low = b.Where(b.Expand(each(beyond), dims...), b.Const(int64(1)<<40, I64), low)
		inside = b.logicalOr(inside, b.Expand(each(beyond), dims...))
	}
	r.taps = []gridTap{{low, b.Sub(c(1), part), inside}, {high, part, inside}}
	return r
}

// regionBins is roi_align.
func regionBins(b *Builder, a Args, most int, mode string) []Value {
	x, rois := a.Tensor("input"), a.Tensor("rois")
	d, height, width, ratio := x.DType(), a.Int("pooled_height"), a.Int("pooled_width"), a.Int("sampling_ratio")
	switch {
	case !d.IsFloat() || rois.DType() != d:
		a.Fail(ErrDType, "input and rois must have one floating dtype, got %v and %v", d, rois.DType())
	case x.Rank() != 4 || rois.Rank() != 2 || rois.Dim(1) != 5:
		a.Fail(ErrShape, "input must be [N, C, H, W] and rois [K, 5], got %v and %v", x.Shape(), rois.Shape())
	case height < 1 || width < 1:
		a.Fail(ErrArg, "pooled_height is %d and pooled_width %d, must be positive", height, width)
	case mode != "avg" && mode != "max":
		a.Fail(ErrArg, "mode is %q, must be avg or max", mode)
	case x.Dim(2) < 1 || x.Dim(3) < 1:
		a.Fail(ErrShape, "input must have non-empty spatial dimensions, got %v", x.Shape())
	}
	k, channels, size := rois.Dim(0), x.Dim(1), x.Shape().Dims()[2:]
	wide := b.callNamed("detach", []any{b.widen(rois)})
	column := func(i int) Value { return b.Reshape(b.Slice(wide, 1, i, i+1, 1), k) }
	edge := func(i int) Value {
		v := b.scale(column(i), a.float("spatial_scale"))
		if a.Bool("aligned") {
			v = b.Sub(v, b.Const(0.5, v.DType()))
		}
		return v
	}
	ys := b.regionAxis(edge(2), edge(4), size[0], height, ratio, most, a.Bool("aligned"))
	xs := b.regionAxis(edge(1), edge(3), size[1], width, ratio, most, a.Bool("aligned"))
	samples := ys.samples * xs.samples
	dims := []int{k, height, width, ys.samples, xs.samples}
	places := k * height * width * samples
	spread := func(v Value, shape ...int) Value { return b.Reshape(b.Expand(b.Reshape(v, shape...), dims...), places) }
	tall := func(v Value) Value { return spread(v, k, height, 1, ys.samples, 1) }
	broad := func(v Value) Value { return spread(v, k, 1, width, 1, xs.samples) }
	used := b.logicalAnd(tall(ys.used), broad(xs.used))
	s := gridSampler{Builder: b, n: 2, join: b.Add, places: I64}
	if mode == "max" {
		s.join = b.maximum
	}
	image := b.Mul(spread(b.Cast(column(0), I64), k, 1, 1, 1, 1), b.Const(size[0]*size[1], I64))
	y := s.sum(b.pixelRows(b.widen(x), 1), size, [][]gridTap{moved(ys.taps, tall), moved(xs.taps, broad)}, gridTap{at: b.Full([]int{places}, 0, I64)}, image)
	y = b.Reshape(y, k*height*width, samples, channels)
	count := b.Mul(ys.count, xs.count)
	each := func(v Value) Value {
		return b.Reshape(b.Expand(b.Reshape(v, k, 1), k, height*width), k*height*width, 1)
	}
	if mode == "max" {
		y = b.Amax(b.Where(b.Reshape(used, k*height*width, samples, 1), y, b.Const(math.Inf(-1), y.DType())), []int{1}, false)
		y = b.Where(each(b.gt(count, b.Const(0, count.DType()))), y, b.Const(0, y.DType()))
	} else {
		y = b.Div(b.Sum(y, []int{1}, false), each(b.maximum(count, b.Const(1, count.DType()))))
	}
	y = b.Permute(b.Reshape(y, k, height, width, channels), 0, 3, 1, 2)
	return []Value{b.Cast(y, d)}
}

// moved returns taps with all their tensors changed by f.
func moved(taps []gridTap, f func(Value) Value) []gridTap {
	out := slices.Clone(taps)
	for i, t := range out {
		out[i] = gridTap{f(t.at), f(t.weight), f(t.inside)}
	}
	return out
}

// pixelRows records images [N, C, H, W] as rows, one for each pixel, of the channels of each of parts
// equal groups: [N·parts·H·W, C/parts].
func (b *Builder) pixelRows(x Value, parts int) Value {
	n, channels, pixels := x.Dim(0), x.Dim(1)/parts, x.Dim(2)*x.Dim(3)
	return b.Reshape(b.Transpose(b.Reshape(x, n*parts, channels, pixels), 1, 2), n*parts*pixels, channels)
}

// deformable is the geometry of a use of deform_conv2d.
type deformable struct {
	batch, channels, groups, parts int
	kernel, stride, padding, step  [2]int
	size, out                      [2]int
}

func deformableOf(a Args) *deformable {
	x, offset, weight := a.Tensor("input"), a.Tensor("offset"), a.Tensor("weight")
	d := x.DType()
	operands := []Value{offset, weight}
	for _, name := range []string{"bias", "mask"} {
		if v := a.Tensor(name); !v.IsNil() {
			operands = append(operands, v)
		}
	}
	if !d.IsFloat() || slices.ContainsFunc(operands, func(v Value) bool { return v.DType() != d }) {
		a.Fail(ErrDType, "the operands must have one floating dtype, input is %v", d)
	}
	if x.Rank() != 4 || weight.Rank() != 4 || offset.Rank() != 4 || x.Shape().Numel() == 0 || weight.Shape().Numel() == 0 {
		a.Fail(ErrShape, "input, offset and weight must have 4 dimensions that are not 0, got %v, %v and %v", x.Shape(), offset.Shape(), weight.Shape())
	}
	g := &deformable{batch: x.Dim(0), channels: x.Dim(1), groups: x.Dim(1) / weight.Dim(1)}
	spatialInts(a, "stride", g.stride[:], 1)
	spatialInts(a, "padding", g.padding[:], 0)
	spatialInts(a, "dilation", g.step[:], 1)
	for i := range 2 {
		g.size[i], g.kernel[i] = x.Dim(2+i), weight.Dim(2+i)
		g.out[i] = (g.size[i]+2*g.padding[i]-g.step[i]*(g.kernel[i]-1)-1)/g.stride[i] + 1
	}
	taps := g.kernel[0] * g.kernel[1]
	g.parts = offset.Dim(1) / (2 * taps)
	mask, bias := a.Tensor("mask"), a.Tensor("bias")
	switch {
	case g.channels != g.groups*weight.Dim(1) || g.groups == 0 || weight.Dim(0)%g.groups != 0:
		a.Fail(ErrShape, "weight %v does not fit input %v", weight.Shape(), x.Shape())
	case g.out[0] < 1 || g.out[1] < 1:
		a.Fail(ErrShape, "the kernel of weight %v spans more than input %v and its padding", weight.Shape(), x.Shape())
	case g.parts == 0 || g.channels%g.parts != 0 || offset.Shape() != MakeShape(d, g.batch, 2*g.parts*taps, g.out[0], g.out[1]):
		a.Fail(ErrShape, "offset must be [%d, 2·parts·%d, %d, %d] with parts that divide the channels, got %v", g.batch, taps, g.out[0], g.out[1], offset.Shape())
	case !mask.IsNil() && mask.Shape() != MakeShape(d, g.batch, g.parts*taps, g.out[0], g.out[1]):
		a.Fail(ErrShape, "mask must be [%d, %d, %d, %d], got %v", g.batch, g.parts*taps, g.out[0], g.out[1], mask.Shape())
	case !bias.IsNil() && bias.Shape() != MakeShape(d, weight.Dim(0)):
		a.Fail(ErrShape, "bias must have the %d channels of the result, got %v", weight.Dim(0), bias.Shape())
	}
	return g
}

func decomposeDeformConv(b *Builder, a Args) []Value {
	g := deformableOf(a)
	x, weight := b.widen(a.Tensor("input")), b.widen(a.Tensor("weight"))
	taps, outs, outChannels := g.kernel[0]*g.kernel[1], g.out[0]*g.out[1], weight.Dim(0)
	dims := []int{g.batch, g.parts, g.kernel[0], g.kernel[1], g.out[0], g.out[1]}
	places := g.batch * g.parts * taps * outs
	offsets := b.Reshape(b.widen(a.Tensor("offset")), g.batch, g.parts, g.kernel[0], g.kernel[1], 2, g.out[0], g.out[1])
	s := gridSampler{Builder: b, n: 2, join: b.Add, places: I64}
	axes := make([][]gridTap, 2)
	for i := range 2 { // where the taps of an output lie, before they are moved
		shape := []int{1, 1, 1, 1, 1, 1}
		line := func(at, n int, first, step int) Value {
			shape := slices.Clone(shape)
			shape[at] = n
			return b.Reshape(b.Add(b.scale(b.Iota(n, x.DType()), float64(step)), b.Const(float64(first), x.DType())), shape...)
		}
		base := b.Add(line(2+i, g.kernel[i], -g.padding[i], g.step[i]), line(4+i, g.out[i], 0, g.stride[i]))
		at := b.Add(b.Reshape(b.Slice(offsets, 4, i, i+1, 1), dims...), base)
		axes[i] = s.bilinear(b.Reshape(at, places), g.size[i])
	}
	pixels := g.size[0] * g.size[1]
	image := b.Mul(b.Iota(g.batch*g.parts, I64), b.Const(pixels, I64))
	image = b.Reshape(b.Expand(b.Unsqueeze(image, 1), g.batch*g.parts, taps*outs), places)
	y := s.sum(b.pixelRows(x, g.parts), g.size[:], axes, gridTap{at: b.Full([]int{places}, 0, I64)}, image)
	y = b.Reshape(y, g.batch*g.parts, taps, outs, g.channels/g.parts)
	if mask := a.Tensor("mask"); !mask.IsNil() {
		y = b.Mul(y, b.Reshape(b.widen(mask), g.batch*g.parts, taps, outs, 1))
	}
	columns := b.Reshape(b.Permute(y, 0, 3, 1, 2), g.batch, g.groups, g.channels/g.groups*taps, outs)
	y = b.MatMul(b.Reshape(weight, g.groups, outChannels/g.groups, weight.Dim(1)*taps), columns)
	y = b.Reshape(y, g.batch, outChannels, g.out[0], g.out[1])
	if bias := a.Tensor("bias"); !bias.IsNil() {
		y = b.Add(y, b.Reshape(b.widen(bias), outChannels, 1, 1))
	}
	return []Value{b.Cast(y, a.Tensor("input").DType())}
}
