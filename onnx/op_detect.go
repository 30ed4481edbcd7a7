package onnx

import (
	"math"
	"slices"
	"sort"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
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

// roiAlign averages bilinear samples in the bins of regions. Where the regions decide how many, it waits
// for them; gradients flow to the image only.
func roiAlign(c *call, in []*value) *value {
	x, n := c.tensor(in[0]), in[2].numel()
	if x.Rank() != 4 || in[1].rank() != 2 || in[1].dims[0] != n || in[1].dims[1] != 4 {
		c.fail("an image %v, regions %v, batches %v", in[0], in[1], in[2])
	}
	r := importer.ROIAlign{
		Scale: c.float("spatial_scale", 1), Height: c.int("output_height", 1), Width: c.int("output_width", 1),
		Ratio:   c.int("sampling_ratio", 0),
		Aligned: c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel" && c.node.version >= 16,
		Mode:    c.text("mode", "avg"),
	}
	if r.Ratio <= 0 && n > 0 {
		if c.run.ctx == nil {
			c.contents(in[1]) // says that Forward cannot wait
		}
		c.run.sync(c.node)
	}
	regions := c.tensor(in[1])
	regions = loris.Cat([]*loris.Tensor{c.tensor(in[2]).Cast(regions.DType()).Reshape(n, 1), regions}, loris.Dim(1))
	y, err := r.Record(c.run.ctx, c.run.make.Session(), x, regions)
	if err != nil {
		panic(&fault{err: err})
	}
	return out(in[0].elem, y)
}

// deformConv reads each tap of a convolution at an offset of its own, bilinearly.
func deformConv(c *call, in []*value) *value {
	x, weight, offset := c.tensor(in[0]), c.tensor(in[1]), c.tensor(in[2])
	if x.Rank() != 4 || weight.Rank() != 4 || offset.Rank() != 4 {
		c.unsupported("other than two spatial dimensions")
	}
	w := c.geometry(x.Dims()[2:], weight.Dims()[2:])
	groups, parts := c.int("group", 1), c.int("offset_group", 1)
	if x.Dim(1) != weight.Dim(1)*groups || offset.Dim(1) != 2*parts*product(w.kernel) {
		c.fail("image %v, weight %v and offset %v do not fit", in[0], in[1], in[2])
	}
	x, padding := c.even(x, w, 0)
	opts := []loris.DeformConv2dOption{loris.Stride(w.stride...), loris.Padding(padding...), loris.Dilation(w.dilation...)}
	if bias := c.maybe(opt(in, 3)); bias != nil {
		opts = append(opts, loris.Bias(bias))
	}
	if mask := c.maybe(opt(in, 4)); mask != nil {
		opts = append(opts, loris.TapMask(mask))
	}
	return out(in[0].elem, x.DeformConv2d(offset.Cast(x.DType()), weight, opts...))
}
