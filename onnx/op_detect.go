package onnx

import (
	"math"
	"slices"
	"sort"

	"github.com/loris-ml/loris"
)

// detectRows are the ops of object detection.
var detectRows = map[string]*row{
	"NonMaxSuppression": one(2, 5, nonMaxSuppression),
	"RoiAlign":          one(3, 3, roiAlign),
	"DeformConv":        one(3, 5, deformConv),
}

// box is a rectangle by its corners.
type box struct{ y1, x1, y2, x2 float64 }

func (b box) area() float64 { return (b.y2 - b.y1) * (b.x2 - b.x1) }

// overlap is the area that two boxes share, as a part of what they cover together.
func (b box) overlap(o box) float64 {
	h := math.Min(b.y2, o.y2) - math.Max(b.y1, o.y1)
	w := math.Min(b.x2, o.x2) - math.Max(b.x1, o.x1)
	if h <= 0 || w <= 0 {
		return 0
	}
	return h * w / (b.area() + o.area() - h*w)
}

// nonMaxSuppression chooses boxes by their scores. How many there are depends on the data, so it waits
// for boxes and scores.
func nonMaxSuppression(c *call, in []*value) *value {
	if in[0].rank() != 3 || in[1].rank() != 3 || in[0].dims[2] != 4 || in[0].dims[1] != in[1].dims[2] || in[0].dims[0] != in[1].dims[0] {
		c.fail("boxes %v do not fit scores %v", in[0], in[1])
	}
	limit, iou, least := 0, 0.0, math.Inf(-1)
	if v := opt(in, 2); v != nil && !v.empty {
		limit = c.oneInt(v)
	}
	if v := opt(in, 3); v != nil && !v.empty {
		iou = c.oneFloat(v)
	}
	if v := opt(in, 4); v != nil && !v.empty {
		least = c.oneFloat(v)
	}
	corners, scores := c.floats(in[0]), c.floats(in[1])
	n, classes := in[0].dims[1], in[1].dims[1]
	var chosen []int64
	for b := range in[0].dims[0] {
		boxes := c.boxes(corners[b*n*4 : (b+1)*n*4])
		for k := range classes {
			s := scores[(b*classes+k)*n : (b*classes+k+1)*n]
			for _, i := range suppress(boxes, s, limit, iou, least) {
				chosen = append(chosen, int64(b), int64(k), int64(i))
			}
		}
	}
	return hostIntsOf([]int{len(chosen) / 3, 3}, chosen)
}

func (c *call) boxes(v []float64) []box {
	boxes := make([]box, len(v)/4)
	centred := c.int("center_point_box", 0) == 1
	for i := range boxes {
		p := v[4*i : 4*i+4]
		b := box{math.Min(p[0], p[2]), math.Min(p[1], p[3]), math.Max(p[0], p[2]), math.Max(p[1], p[3])}
		if centred { // centre and size, x first
			b = box{p[1] - p[3]/2, p[0] - p[2]/2, p[1] + p[3]/2, p[0] + p[2]/2}
		}
		boxes[i] = b
	}
	return boxes
}

// suppress returns the boxes of one class from the best on, without those that overlap a better one.
func suppress(boxes []box, scores []float64, limit int, iou, least float64) []int {
	var order, kept []int
	for i, s := range scores {
		if s > least {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return scores[order[a]] > scores[order[b]] })
	for _, i := range order {
		if len(kept) >= limit {
			break
		}
		if !slices.ContainsFunc(kept, func(k int) bool { return boxes[k].overlap(boxes[i]) > iou }) {
			kept = append(kept, i)
		}
	}
	return kept
}

// roiSamples are the places that the bins of regions read: four pixels each, with their weights.
type roiSamples struct {
	rois    []int // in the order of the regions
	count   int   // samples in a bin
	places  []int64
	weights []float64
}

// roiAlign averages bilinear samples in the bins of regions. Where the samples lie is decided while
// recording, so it waits for the regions; gradients flow to the image only.
func roiAlign(c *call, in []*value) *value {
	x := c.tensor(in[0])
	n := in[2].numel()
	if x.Rank() != 4 || in[1].rank() != 2 || in[1].dims[0] != n || in[1].dims[1] != 4 {
		c.fail("an image %v, regions %v, batches %v", in[0], in[1], in[2])
	}
	channels, height, width := x.Dim(1), x.Dim(2), x.Dim(3)
	outH, outW := c.int("output_height", 1), c.int("output_width", 1)
	if outH < 1 || outW < 1 || height < 1 || width < 1 {
		c.fail("bins of %d by %d", outH, outW)
	}
	half := c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel" && c.node.version >= 16
	regions, batches, scale := c.floats(in[1]), c.ints(in[2]), c.float("spatial_scale", 1)
	groups := map[[2]int]*roiSamples{}
	var order [][2]int
	for r := range n {
		if batches[r] < 0 || int(batches[r]) >= x.Dim(0) {
			c.fail("region %d is of image %d of %d", r, batches[r], x.Dim(0))
		}
		var edge [4]float64
		for i := range edge {
			edge[i] = regions[4*r+i] * scale
			if half {
				edge[i] -= 0.5
			}
		}
		w, h := edge[2]-edge[0], edge[3]-edge[1]
		if !half {
			w, h = math.Max(w, 1), math.Max(h, 1)
		}
		grid := [2]int{c.int("sampling_ratio", 0), c.int("sampling_ratio", 0)}
		if grid[0] <= 0 {
			grid = [2]int{max(int(math.Ceil(h/float64(outH))), 0), max(int(math.Ceil(w/float64(outW))), 0)}
		}
		if grid[0]*grid[1] > 1<<16 {
			c.fail("region %d asks for %d by %d samples in each bin", r, grid[0], grid[1])
		}
		c.table(n, outH, outW, grid[0], grid[1], 4)
		g := groups[grid]
		if g == nil {
			g = &roiSamples{count: grid[0] * grid[1]}
			groups[grid] = g
			order = append(order, grid)
		}
		g.rois = append(g.rois, r)
		g.sample(edge, h/float64(outH), w/float64(outW), [2]int{outH, outW}, grid, height, width, int(batches[r])*height*width)
	}
	flat := x.Permute(1, 0, 2, 3).Reshape(channels, x.Dim(0)*height*width)
	var parts []*loris.Tensor
	var place []int64
	for _, grid := range order {
		c.table(n, outH, outW, grid[0], grid[1], 4)
		g := groups[grid]
		parts = append(parts, c.pooledRois(flat, g, outH*outW))
		for _, r := range g.rois {
			place = append(place, int64(r))
		}
	}
	if len(parts) == 0 {
		return out(in[0].elem, x.Narrow(0, 0, 0).Select(3, 0).Select(2, 0).Reshape(0, channels, 1, 1).Expand(0, channels, outH, outW))
	}
	y := loris.Cat(parts, loris.Dim(0))
	back := make([]int64, n)
	for at, r := range place {
		back[r] = int64(at)
	}
	return out(in[0].elem, y.IndexSelect(0, c.tensor(hostInts(back...))).Reshape(n, channels, outH, outW))
}

// sample appends the samples of one region.
func (g *roiSamples) sample(edge [4]float64, binH, binW float64, bins, grid [2]int, height, width, base int) {
	for ph := range bins[0] {
		for pw := range bins[1] {
			for iy := range grid[0] {
				for ix := range grid[1] {
					y := edge[1] + float64(ph)*binH + (float64(iy)+0.5)*binH/float64(grid[0])
					x := edge[0] + float64(pw)*binW + (float64(ix)+0.5)*binW/float64(grid[1])
					g.bilinear(y, x, height, width, base)
				}
			}
		}
	}
}

func (g *roiSamples) bilinear(y, x float64, height, width, base int) {
	if !(y >= -1 && y <= float64(height) && x >= -1 && x <= float64(width)) {
		g.places = append(g.places, 0, 0, 0, 0)
		g.weights = append(g.weights, 0, 0, 0, 0)
		return
	}
	y, x = math.Min(math.Max(y, 0), float64(height-1)), math.Min(math.Max(x, 0), float64(width-1))
	y0, x0 := int(y), int(x)
	y1, x1 := min(y0+1, height-1), min(x0+1, width-1)
	fy, fx := y-float64(y0), x-float64(x0)
	for _, p := range [4][2]int{{y0, x0}, {y0, x1}, {y1, x0}, {y1, x1}} {
		g.places = append(g.places, int64(base+p[0]*width+p[1]))
	}
	g.weights = append(g.weights, (1-fy)*(1-fx), (1-fy)*fx, fy*(1-fx), fy*fx)
}

// pooledRois is [regions, channels, bins] of regions with the same number of samples.
func (c *call) pooledRois(flat *loris.Tensor, g *roiSamples, bins int) *loris.Tensor {
	n, channels := len(g.rois), flat.Dim(0)
	if g.count == 0 {
		return flat.Narrow(1, 0, 1).Mul(0).Unsqueeze(0).Expand(n, channels, bins)
	}
	e := elemOf(flat.DType())
	read := flat.IndexSelect(1, c.tensor(hostInts(g.places...))).Reshape(channels, n, bins, g.count, 4)
	read = read.Mul(c.tensor(foldedFloats(e, []int{n, bins, g.count, 4}, g.weights)))
	if c.text("mode", "avg") == "max" {
		read = read.Amax(loris.Dim(3, 4))
	} else {
		read = read.Sum(loris.Dim(3, 4)).Div(g.count)
	}
	return read.Permute(1, 0, 2)
}

// deformConv reads each tap of a convolution at an offset of its own, bilinearly.
func deformConv(c *call, in []*value) *value {
	x, weight, offset := c.tensor(in[0]), c.tensor(in[1]), c.tensor(in[2])
	if x.Rank() != 4 || weight.Rank() != 4 || offset.Rank() != 4 {
		c.unsupported("other than two spatial dimensions")
	}
	w := c.geometry(x.Dims()[2:], weight.Dims()[2:])
	groups, parts := c.int("group", 1), c.int("offset_group", 1)
	taps := product(w.kernel)
	n, channels, height, width := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	oh, ow := offset.Dim(2), offset.Dim(3)
	if groups < 1 || parts < 1 || channels%parts != 0 || channels != weight.Dim(1)*groups || weight.Dim(0)%groups != 0 ||
		offset.Dim(0) != n || offset.Dim(1) != 2*parts*taps || !slices.Equal(w.outSizes(x.Dims()[2:], false), []int{oh, ow}) {
		c.fail("image %v, weight %v and offset %v do not fit", in[0], in[1], in[2])
	}
	d := x.DType()
	kh, kw := w.kernel[0], w.kernel[1]
	c.table(kh, oh)
	c.table(kw, ow)
	at := func(i, outs int) *loris.Tensor { // where the taps lie along a dimension: [taps along it, outputs]
		var v []float64
		for k := range w.kernel[i] {
			for o := range outs {
				v = append(v, float64(o*w.stride[i]-w.before[i]+k*w.dilation[i]))
			}
		}
		return c.tensor(foldedFloats(elemOf(d), []int{w.kernel[i], outs}, v))
	}
	moved := offset.Cast(d).Reshape(n, parts, kh, kw, 2, oh, ow)
	ys := moved.Select(4, 0).Add(at(0, oh).Reshape(kh, 1, oh, 1))
	xs := moved.Select(4, 1).Add(at(1, ow).Reshape(kw, 1, ow))
	read := c.readAt(x.Reshape(n*parts, channels/parts, height*width), ys.Reshape(n*parts, 1, taps*oh*ow), xs.Reshape(n*parts, 1, taps*oh*ow), height, width)
	read = read.Reshape(n, parts, channels/parts, taps, oh*ow)
	if mask := c.maybe(opt(in, 4)); mask != nil {
		read = read.Mul(mask.Reshape(n, parts, 1, taps, oh*ow))
	}
	columns := read.Reshape(n, groups, channels/groups*taps, oh*ow)
	y := weight.Reshape(groups, weight.Dim(0)/groups, weight.Dim(1)*taps).MatMul(columns)
	y = y.Reshape(n, weight.Dim(0), oh, ow)
	if bias := c.maybe(opt(in, 3)); bias != nil {
		y = y.Add(channelwise(bias, 4))
	}
	return out(in[0].elem, y)
}

// readAt reads images [N, C, height·width] bilinearly at places [N, 1, P]; what is outside counts as 0.
func (c *call) readAt(flat, ys, xs *loris.Tensor, height, width int) *loris.Tensor {
	y0, x0 := ys.Floor(), xs.Floor()
	fy, fx := ys.Sub(y0), xs.Sub(x0)
	var sum *loris.Tensor
	for _, corner := range [4][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}} {
		y, x := y0.Add(corner[0]), x0.Add(corner[1])
		wy, wx := fy, fx
		if corner[0] == 0 {
			wy = fy.Neg().Add(1)
		}
		if corner[1] == 0 {
			wx = fx.Neg().Add(1)
		}
		inside := y.Ge(0).LogicalAnd(y.Lt(height)).LogicalAnd(x.Ge(0)).LogicalAnd(x.Lt(width))
		weight := wy.Mul(wx).Mul(inside.Cast(flat.DType()))
		place := y.Clamp(0, height-1).Mul(width).Add(x.Clamp(0, width-1)).Cast(loris.I64)
		part := flat.Gather(2, place.Expand(flat.Dim(0), flat.Dim(1), place.Dim(2))).Mul(weight)
		if sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}
