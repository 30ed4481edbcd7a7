package onnx

import (
	"math"
	"slices"

	"github.com/loris-ml/loris"
)

// resizeRows are the ops that resample images.
var resizeRows = map[string]*row{
	"Resize":   one(1, 4, resize),
	"Upsample": one(1, 2, upsample),
}

// resampling says how a tensor is resized.
type resampling struct {
	mode, nearest, coordinates string
	smaller                    string // what nearest is for axes that become shorter, if not that
	cubic                      float64
	exclude, antialias         bool
	extrapolation              float64
}

// axisScale is what becomes of one axis.
type axisScale struct {
	size       int
	scale      float64
	start, end float64 // of the region of interest, as parts of the axis
}

func upsample(c *call, in []*value) *value {
	scales := c.floatList("scales")
	if s := opt(in, 1); s != nil {
		scales = c.floats(s)
	}
	if len(scales) != in[0].rank() {
		c.fail("scales %v do not fit %v", scales, in[0])
	}
	axes := make([]axisScale, len(scales))
	for i, s := range scales {
		axes[i] = axisScale{size: scaled(in[0].dims[i], s), scale: s}
	}
	return c.resample(in[0], axes, resampling{mode: c.text("mode", "nearest"), nearest: "floor", coordinates: "asymmetric"})
}

func resize(c *call, in []*value) *value {
	v := in[0]
	r := resampling{
		mode: c.text("mode", "nearest"), nearest: c.text("nearest_mode", "round_prefer_floor"),
		coordinates: c.text("coordinate_transformation_mode", "half_pixel"), cubic: c.float("cubic_coeff_a", -0.75),
		exclude: c.bool("exclude_outside", false), antialias: c.bool("antialias", false), extrapolation: c.float("extrapolation_value", 0),
	}
	var roi, scales, sizes *value
	if c.node.version < 11 {
		r.nearest, r.smaller, r.coordinates = "floor", "ceil", "asymmetric"
		scales = opt(in, 1)
	} else {
		roi, scales, sizes = opt(in, 1), opt(in, 2), opt(in, 3)
	}
	which := c.list("axes")
	if which == nil {
		for i := range v.rank() {
			which = append(which, i)
		}
	}
	axes := make([]axisScale, v.rank())
	for i, d := range v.dims {
		axes[i] = axisScale{size: d, scale: 1, end: 1}
	}
	switch {
	case sizes != nil && sizes.numel() > 0:
		c.toSizes(v, axes, which, c.intList(sizes))
	case scales != nil && scales.numel() == len(which):
		for i, s := range c.floats(scales) {
			a := c.axis(which[i], v.rank())
			axes[a].scale, axes[a].size = s, scaled(v.dims[a], s)
		}
	default:
		c.fail("neither scales nor sizes fit %v", v)
	}
	if roi != nil && r.coordinates == "tf_crop_and_resize" {
		parts := c.floats(roi)
		if len(parts) != 2*len(which) {
			c.fail("the region %v does not fit %v", parts, v)
		}
		for i, a := range which {
			a = c.axis(a, v.rank())
			axes[a].start, axes[a].end = parts[i], parts[i+len(which)]
		}
	}
	return c.resample(v, axes, r)
}

// scaled returns the length of an axis of n elements. Scales are f32, so 0.7 is a little less than it
// says: the product is rounded to f32, too, and 10 elements become 7.
func scaled(n int, scale float64) int { return int(float32(scale) * float32(n)) }

// toSizes sets sizes, keeping the ratio of the axes where the node asks for it.
func (c *call) toSizes(v *value, axes []axisScale, which, sizes []int) {
	if len(sizes) != len(which) {
		c.fail("sizes %v do not fit %v", sizes, v)
	}
	var all []float64
	for i, a := range which {
		a = c.axis(a, v.rank())
		which[i] = a
		axes[a].size = sizes[i]
		axes[a].scale = float64(sizes[i]) / float64(v.dims[a])
		all = append(all, axes[a].scale)
	}
	keep := c.text("keep_aspect_ratio_policy", "stretch")
	if keep == "stretch" {
		return
	}
	common := slices.Min(all)
	if keep == "not_smaller" {
		common = slices.Max(all)
	}
	for _, a := range which {
		axes[a].scale, axes[a].size = common, int(common*float64(v.dims[a])+0.5)
	}
}

// resample goes through the axes that change, one after the other.
func (c *call) resample(v *value, axes []axisScale, r resampling) *value {
	t := c.tensor(v)
	d := t.DType()
	if r.mode != "nearest" && d != loris.F64 {
		t = t.Cast(loris.F32)
	}
	var outside []*loris.Tensor
	for i, a := range axes {
		if a.size < 0 || v.dims[i] == 0 || a.scale <= 0 {
			c.fail("%v cannot be scaled by %v to %d elements", v, a.scale, a.size)
		}
		if a.size == v.dims[i] && a.scale == 1 && r.coordinates != "tf_crop_and_resize" {
			continue
		}
		if r.antialias && a.scale < 1e-3 {
			c.unsupported("smoothing at the scale %v", a.scale)
		}
		c.table(a.size, 3+r.reach(a.scale))
		taps := make([]tap, a.size)
		beyond := make([]int64, a.size)
		for x := range taps {
			at := c.coordinate(x, v.dims[i], a, r.coordinates)
			if r.coordinates == "tf_crop_and_resize" && (at < 0 || at > float64(v.dims[i]-1)) {
				beyond[x] = 1
			}
			taps[x] = c.tap(at, v.dims[i], a.scale, r)
		}
		t = c.gathered(t, i, taps)
		if slices.Contains(beyond, 1) {
			shape := slices.Repeat([]int{1}, v.rank())
			shape[i] = a.size
			outside = append(outside, c.tensor(hostOf(tBool, shape, beyond)))
		}
	}
	for _, mask := range outside {
		t = loris.Where(mask, t.FullLike(r.extrapolation), t)
	}
	return out(v.elem, t.Cast(d))
}

// coordinate returns where in the input an element of the output lies. It computes in f32 as
// PyTorch and onnxruntime do: which element is the nearest one depends on it.
func (c *call) coordinate(i int, size int, a axisScale, mode string) float64 {
	x, scale, last := float32(i), float32(a.scale), float32(size-1)
	start, end, one := float32(a.start), float32(a.end), a.size == 1
	halfPixel := float32((x+0.5)/scale) - 0.5
	switch mode {
	case "align_corners":
		if one {
			return 0
		}
		return float64(float32(x*last) / float32(a.size-1))
	case "asymmetric":
		return float64(x / scale)
	case "tf_crop_and_resize":
		if one {
			return float64(float32(0.5*(start+end)) * last)
		}
		return float64(float32(start*last) + float32(float32(x*(end-start))*last)/float32(a.size-1))
	case "pytorch_half_pixel":
		if one {
			return 0
		}
		return float64(halfPixel)
	case "half_pixel":
		return float64(halfPixel)
	case "half_pixel_symmetric":
		adjustment := float32(a.size) / float32(scale*float32(size))
		offset := float32(float32(size) / 2 * (1 - adjustment))
		return float64(offset + float32((x+0.5)/scale) - 0.5)
	}
	c.unsupported("the coordinates %q", mode)
	return 0
}

// tap are the elements that one output element is made of.
type tap struct {
	first   int
	weights []float64
}

// reach is about how many elements an output element is made of.
func (r resampling) reach(scale float64) int {
	n := map[string]int{"nearest": 1, "cubic": 4}[r.mode]
	if n == 0 {
		n = 2
	}
	if r.antialias && scale < 1 {
		n = int(float64(n)/scale) + 2
	}
	return n
}

func (c *call) tap(at float64, size int, scale float64, r resampling) tap {
	if r.mode == "nearest" {
		if r.smaller != "" && scale < 1 {
			return tap{first: c.nearest(at, r.smaller)}
		}
		return tap{first: c.nearest(at, r.nearest)}
	}
	// The element to the left is strictly before the place, so that the ratio is in (0, 1].
	base := int(math.Ceil(at)) - 1
	ratio := at - float64(base)
	shrink := 1.0
	if r.antialias {
		shrink = math.Min(scale, 1)
	}
	reach, kernel := 1.0, triangle
	if r.mode == "cubic" {
		reach, kernel = 2, func(x float64) float64 { return cubicWeight(x, r.cubic) }
	} else if r.mode != "linear" && r.mode != "bilinear" {
		c.unsupported("mode %q", r.mode)
	}
	from := int(math.Floor(-reach/shrink)) + 1
	t := tap{first: base + from}
	sum := 0.0
	for i := from; i < 2-from; i++ {
		w := kernel((float64(i) - ratio) * shrink)
		if r.exclude && (base+i < 0 || base+i >= size) {
			w = 0
		}
		t.weights = append(t.weights, w)
		sum += w
	}
	if r.antialias || r.exclude {
		for i := range t.weights {
			t.weights[i] /= sum
		}
	}
	return t
}

func triangle(x float64) float64 { return math.Max(0, 1-math.Abs(x)) }

func cubicWeight(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

func (c *call) nearest(at float64, mode string) int {
	switch mode {
	case "round_prefer_floor":
		return int(math.Ceil(at - 0.5))
	case "round_prefer_ceil":
		return int(math.Floor(at + 0.5))
	case "floor":
		return int(math.Floor(at))
	case "ceil":
		return int(math.Ceil(at))
	}
	c.unsupported("nearest_mode %q", mode)
	return 0
}

// gathered makes the elements of an axis of their taps.
func (c *call) gathered(t *loris.Tensor, axis int, taps []tap) *loris.Tensor {
	if len(taps) == 0 {
		return t.Narrow(axis, 0, 0)
	}
	size := t.Dim(axis)
	var sum *loris.Tensor
	for k := range max(len(taps[0].weights), 1) {
		index := make([]int64, len(taps))
		weights := make([]float64, len(taps))
		for x, p := range taps {
			index[x] = int64(min(max(p.first+k, 0), size-1))
			if p.weights != nil {
				weights[x] = p.weights[k]
			}
		}
		part := t.IndexSelect(axis, c.tensor(hostInts(index...)))
		if taps[0].weights != nil {
			shape := slices.Repeat([]int{1}, t.Rank())
			shape[axis] = len(taps)
			part = part.Mul(c.tensor(foldedFloats(elemOf(t.DType()), shape, weights)))
		}
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}
