package onnx

import "github.com/loris-ml/loris"

func col2Im(c *call, in []*value) *value {
	x := c.tensor(in[0])
	size, block := c.intList(in[1]), c.intList(in[2])
	w := c.geometry(size, block)
	n, per := len(size), product(block)
	if x.Rank() != 3 || x.Dim(1)%per != 0 {
		c.fail("columns %v do not fit a block %v", in[0], block)
	}
	batch, channels := x.Dim(0), x.Dim(1)/per
	outs := w.outSizes(size, false)
	if product(outs) != x.Dim(2) {
		c.fail("columns %v do not fit %v blocks", in[0], outs)
	}
	// Where each element of a column lies in the padded image.
	padded := make([]int, n)
	for i := range n {
		padded[i] = size[i] + w.before[i] + w.after[i]
	}
	place := c.run.make.Arange(0, product(padded), 1).Reshape(append([]int{1, 1}, padded...)...)
	wide := c.windows(place, w, outs)
	order := append([]int{0, 1}, insides(n)...)
	for i := range n {
		order = append(order, 2+2*i)
	}
	index := wide.Permute(order...).Reshape(1, 1, per*x.Dim(2)).Expand(batch, channels, per*x.Dim(2))
	src := x.Reshape(batch, channels, per*x.Dim(2))
	y := src.Select(2, 0).ZerosLike().Unsqueeze(2).Expand(batch, channels, product(padded)).ScatterAdd(2, index, src)
	y = y.Reshape(append([]int{batch, channels}, padded...)...)
	var crop []int
	for i := n - 1; i >= 0; i-- {
		crop = append(crop, -w.before[i], -w.after[i])
	}
	return out(in[0].elem, y.ConstantPadNd(crop, 0))
}

func affineGrid(c *call, in []*value) *value {
	return out(in[0].elem, loris.AffineGrid(c.tensor(in[0]), c.intList(in[1]), loris.AlignCorners(c.bool("align_corners", false))))
}

func gridSample(c *call, in []*value) *value {
	x, grid := c.tensor(in[0]), c.tensor(in[1])
	mode := map[string]string{"linear": "bilinear", "cubic": "bicubic", "bilinear": "bilinear", "bicubic": "bicubic", "nearest": "nearest"}[c.text("mode", "linear")]
	if mode == "" {
		c.unsupported("mode %q", c.text("mode", ""))
	}
	return out(in[0].elem, x.GridSample(grid.Cast(x.DType()), loris.InterpolateMode(mode), loris.PaddingMode(c.text("padding_mode", "zeros")), loris.AlignCorners(c.bool("align_corners", false))))
}
