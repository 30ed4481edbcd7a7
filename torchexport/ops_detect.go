package torchexport

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
)

// detectionOps are torchvision's ops of object detection.
var detectionOps = map[string]func(c *call) []any{
	"torchvision.nms": func(c *call) []any {
		kept, err := loris.NMS(c.wait(), c.value("dets"), c.value("scores"), c.floatOr("iou_threshold", 0))
		c.check(err)
		return one(kept)
	},
	"torchvision.roi_align": func(c *call) []any {
		r := importer.ROIAlign{
			Scale: c.floatOr("spatial_scale", 1), Height: c.int("pooled_height"), Width: c.int("pooled_width"),
			Ratio: c.intOr("sampling_ratio", -1), Aligned: c.boolOr("aligned", false), Mode: "avg",
		}
		y, err := r.Record(c.ctx, c.s, c.value("input"), c.value("rois"))
		c.check(err)
		return one(y)
	},
	"torchvision.deform_conv2d": func(c *call) []any {
		pair := func(name string) []int { return []int{c.int(name + "_h"), c.int(name + "_w")} }
		var mask *loris.Tensor
		if c.boolOr("use_mask", false) {
			mask = c.value("mask")
		}
		return one(c.do("deform_conv2d", c.value("input"), c.value("offset"), c.value("weight"), c.value("bias"),
			pair("stride"), pair("pad"), pair("dilation"), mask))
	},
}

// uniqueOps find the different elements, or slices, of a tensor. How many there are depends on data.
var uniqueOps = map[string]func(c *call) []any{
	"aten._unique2": func(c *call) []any {
		x := c.value("self")
		values, inverse, counts, err := loris.Unique(c.wait(), x)
		c.check(err)
		return c.asked(values, inverse, counts)
	},
	"aten.unique_dim": func(c *call) []any {
		x, dim := c.value("self"), c.dimOf("dim")
		rows := slicesAlong(x, dim)
		order := c.do("arange", 0, rows.Dim(0), 1, ir.I64)
		for i := rows.Dim(1) - 1; i >= 0; i-- { // sort is stable, so the first column decides in the end
			_, by := rows.Select(1, i).IndexSelect(0, order).Sort()
			order = order.IndexSelect(0, by)
		}
		return c.runs(x, dim, rows.IndexSelect(0, order), order)
	},
	"aten.unique_consecutive": func(c *call) []any {
		x, dim := c.value("self"), 0
		if _, ok := c.arg("dim"); ok {
			dim = c.dimOf("dim")
		} else {
			x = x.Flatten()
		}
		rows := slicesAlong(x, dim)
		return c.runs(x, dim, rows, nil)
	},
}

// dimOf returns a dimension of self, counted from the front.
func (c *call) dimOf(name string) int {
	rank, dim := c.value("self").Rank(), c.int(name)
	if dim < -rank || dim >= rank {
		panic(misuse(c.n.target, "dimension %d of %v", dim, c.value("self").Shape()))
	}
	return (dim + rank) % rank
}

// slicesAlong returns the slices of x along dim as rows.
func slicesAlong(x *loris.Tensor, dim int) *loris.Tensor {
	n := x.Dim(dim)
	return x.Transpose(0, dim).Reshape(n, x.Numel()/max(n, 1))
}

// runs returns the first slice along dim of each run of equal ones among rows, the run that each slice
// of x is in, and how long each is. Rows are those slices in the order that is given, nil for their own.
func (c *call) runs(x *loris.Tensor, dim int, rows, order *loris.Tensor) []any {
	n := rows.Dim(0)
	first := c.do("full", []int{min(n, 1)}, true, ir.Bool)
	if n > 1 {
		first = loris.Cat([]*loris.Tensor{first, rows.Narrow(0, 1, n-1).Ne(rows.Narrow(0, 0, n-1)).Any(loris.Dim(1))})
	}
	places := c.nonzero(first).Squeeze(loris.Dim(1))
	k := places.Dim(0)
	counts := places
	if k > 0 {
		ends := loris.Cat([]*loris.Tensor{places.Narrow(0, 1, k-1), c.do("full", []int{1}, n, ir.I64)})
		counts = ends.Sub(places)
	}
	inverse := first.Cumsum(0).Sub(1)
	if order != nil {
		inverse = inverse.ZerosLike().Scatter(0, order, inverse)
		places = order.IndexSelect(0, places)
	}
	return c.asked(x.IndexSelect(dim, places), inverse, counts)
}

// asked returns the results of a unique op, empty ones where the call does not ask for them.
func (c *call) asked(values, inverse, counts *loris.Tensor) []any {
	none := c.do("full", []int{0}, 0, ir.I64)
	if !c.boolOr("return_inverse", false) {
		inverse = none
	}
	if !c.boolOr("return_counts", false) {
		counts = none
	}
	return many(values, inverse, counts)
}
