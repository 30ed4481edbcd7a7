package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	lowerings[aten.Convolution] = convolution
	lowerings[aten.MaxPoolWithIndices] = maxPool
}

// spatial fills in the leading dimensions that kernels over three want.
func spatial(src []int, lead int) [3]int {
	out := [3]int{lead, lead, lead}
	copy(out[3-len(src):], src)
	return out
}

// convolution is a product by the library where it is one of matrices in memory,
// and else a kernel, which reads image and filters where they lie unless other
// places are worth a copy.
func convolution(c *call) {
	g := ir.ConvOf(c.Args)
	if c.pointwiseProduct(g) {
		return
	}
	x, f := c.Operands[0], c.filters(g, c.Operands[1])
	if c.lastChannels(g) {
		x, f = c.withChannelsLast(x, 1), c.withChannelsLast(f, 2)
	}
	n := g.Spatial
	e := emit.Convolution{
		DType: g.DType, Images: g.Batch, Groups: g.Groups, Channels: g.In / g.Groups, Results: g.Out / g.Groups,
		Transposed: g.Transposed, TF32: c.l.opt.TF32,
		XImage: x.View.Strides[0], XChannel: x.View.Strides[1], XAt: spatial(x.View.Strides[2:2+n], 0),
		FGroup: f.View.Strides[0], FResult: f.View.Strides[1], FInput: f.View.Strides[2], FAt: spatial(f.View.Strides[3:3+n], 0),
		XAlign: aligned(Alignment, x), FAlign: aligned(Alignment, f),
		Window: emit.Window{
			In: spatial(g.InDims[:n], 1), Out: spatial(g.OutDims[:n], 1), Kernel: spatial(g.Kernel[:n], 1),
			Stride: spatial(g.Stride[:n], 1), Pad: spatial(g.Padding[:n], 0), Dilation: spatial(g.Dilation[:n], 1),
		},
	}
	values := []plan.Value{x, f}
	if len(c.Operands) > 2 {
		e.Post.Links = append(e.Post.Links, emit.Link{Op: aten.Add, Vector: true})
		values = append(values, c.Dense(c.Operands[2]))
	}
	c.withPost(&e.Post, values, func() *emit.Plan { return e.Plan(c.l.opt.Limits) })
}

// filters sees the filters as [groups, results, channels, taps...]. They are
// [results, channels of a group, taps...], transposed [channels, results of a group,
// taps...].
func (c *call) filters(g *ir.Conv, f plan.Value) plan.Value {
	taps := f.Shape.Dims()[2:]
	dims := append([]int{g.Groups, f.Shape.Dim(0) / g.Groups, f.Shape.Dim(1)}, taps...)
	view, _ := f.View.Reshape(dims) // to split a dimension is always possible
	if g.Transposed {
		order := []int{0, 2, 1, 3, 4, 5}[:len(dims)]
		dims[1], dims[2] = dims[2], dims[1]
		view = view.Permute(order)
	}
	return f.As(f.Shape.WithDims(dims...), view)
}

// lastChannels reports whether tensor cores compute a convolution, which want the
// channels of each position together.
func (c *call) lastChannels(g *ir.Conv) bool {
	narrow := g.DType == ir.F16 || g.DType == ir.BF16
	if !c.l.opt.Limits.Tensor || !narrow && !(g.DType == ir.F32 && c.l.opt.TF32) {
		return false
	}
	return g.Out/g.Groups > emit.FewResults && g.In/g.Groups*g.DType.Size()%emit.Chunk == 0
}

// withChannelsLast returns a value whose dimension of that number has its elements
// side by side, and everything else at multiples of what is copied at once.
func (c *call) withChannelsLast(v plan.Value, dim int) plan.Value {
	r := v.View.Rank
	good := aligned(emit.Chunk, v) == emit.Chunk && v.View.Strides[dim] == 1
	for d := range r {
		good = good && (d == dim || v.View.Dims[d] == 1 || v.View.Strides[d]*v.Size()%emit.Chunk == 0)
	}
	if good {
		return v
	}
	order, back := make([]int, 0, r), make([]int, r)
	for d := range r {
		if d != dim {
			back[d] = len(order)
			order = append(order, d)
		}
	}
	back[dim] = r - 1
	turned := v.View.Permute(append(order, dim))
	v = c.Copied(v.As(v.Shape.WithDims(turned.Dims[:r]...), turned))
	view := v.View.Permute(back)
	return v.As(v.Shape.WithDims(view.Dims[:r]...), view)
}

// pointwiseProduct has the library compute a convolution with one tap and steps of
// one: the filters times the positions of each image.
func (c *call) pointwiseProduct(g *ir.Conv) bool {
	n := g.Spatial
	if c.l.opt.Product == nil || g.Groups != 1 || g.Transposed || len(c.Operands) > 2 || c.Shapes[0].Numel() == 0 || g.In == 0 || !c.libraryFinishes() {
		return false
	}
	positions := 1
	for d := range n {
		if g.Kernel[d] != 1 || g.Stride[d] != 1 || g.Padding[d] != 0 {
			return false
		}
		positions *= g.InDims[d]
	}
	x, ok := c.Operands[0].View.Reshape([]int{g.Batch, g.In, positions})
	if !ok {
		return false
	}
	f, _ := c.Operands[1].View.Reshape([]int{g.Out, g.In}) // without dimensions of size 1
	b := &batch{m: g.Out, n: positions, k: g.In, dims: []int{g.Batch}}
	b.y = c.Operands[0].As(c.Operands[0].Shape.WithDims(g.Batch, g.In, positions), x)
	b.x = spread(c.Operands[1].As(c.Operands[1].Shape.WithDims(g.Out, g.In), f), b.dims)
	return c.libraryProduct(b)
}

// libraryFinishes reports whether the library can do what follows a product, apart
// from vectors.
func (c *call) libraryFinishes() bool {
	if c.Epilogue == nil {
		return true
	}
	act := c.Epilogue.Act
	return len(c.Epilogue.Links) == 0 && (act == fuse.Identity || act == fuse.ReLU || act == fuse.GELUTanh) && c.Shapes[0].DType() != ir.F64
}

func maxPool(c *call) {
	p := ir.PoolOf(c.Args)
	n := p.Spatial
	x := c.Dense(c.Operands[0])
	g := emit.MaxPool{DType: x.DType(), Batch: 1, Window: emit.Window{
		In: spatial(p.InDims[:n], 1), Out: spatial(p.OutDims[:n], 1), Kernel: spatial(p.Kernel[:n], 1),
		Stride: spatial(p.Stride[:n], 1), Pad: spatial(p.Padding[:n], 0), Dilation: spatial(p.Dilation[:n], 1),
	}}
	for _, d := range x.Shape.Dims()[:x.Shape.Rank()-n] {
		g.Batch *= d
	}
	values := c.Result()
	c.kernels(g.Plan(c.l.opt.Limits), 2, values, c.Result(), x)
}
