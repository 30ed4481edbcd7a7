package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

func init() {
	lowerings[aten.Convolution] = func(c *call) {
		d := c.Operands[0].DType()
		if c.l.addsWindows(c.Instr) {
			if d == ir.F32 {
				addWindows[float32](c)
			} else {
				addWindows[float64](c)
			}
			return
		}
		if f, ok := convolutions[d]; ok {
			f(c)
			return
		}
		widened(convolution[float32, float32])(c) // the 8-bit floats
	}
}

var convolutions = byType[lowerFunc]{
	ir.F32: convolution[float32, float32], ir.F64: convolution[float64, float64],
	ir.BF16: convolution[gemm.BF16, float32], ir.F16: convolution[gemm.F16, float32],
}

// packCost is the time of packing one element of a filter in nanoseconds.
const packCost = 0.5

// convRun is a step that convolves. It shares its work out itself; operands are
// bound when it runs.
type convRun[T conv.Element, A conv.Float] struct {
	mem       *memory
	in, flt   plan.Value
	bias      operand
	hasBias   bool
	affine    *affine[T, A]
	residual  plan.Value
	hasAddend bool
	out       operand
	packed    operand // filters
	call      conv.Call[T, A]
	src       []T
	strides   [5]int // of src
	scale     []A    // of the output channels, or nil
	grain     int
	pack      func(lo, hi int)
	into      *conv.Weights[A] // what pack packs now
	asProduct *convProduct[T]  // or nil
	// steady says that the filters are an input which is likely to keep them packed, key what of.
	steady bool
	key    filtersKey
}

// filtersKey is what packed filters depend on besides the contents of the input.
type filtersKey struct {
	g       conv.Geometry
	form    conv.Form
	at      int
	strides [5]int
}

// keptFilters are packed filters, multiplied by factors of the output channels unless these are nil.
type keptFilters[A conv.Float] struct {
	weights *conv.Weights[A]
	scale   []A
}

// convolution emits one step.
func convolution[T conv.Element, A conv.Float](c *call) {
	g, n := convGeometry(c.Args)
	r := &convRun[T, A]{mem: c.l.mem, in: c.upward(c.Operands[0]), flt: c.upward(c.Operands[1])}
	r.call.Limiter = c.l.limiter
	reads := []operand{{buf: r.in.Buf}, {buf: r.flt.Buf}}
	if r.hasBias = len(c.Operands) > 2; r.hasBias {
		r.bias = c.dense(c.Operands[2])
		reads = append(reads, r.bias)
	}
	if c.Epilogue != nil {
		reads = append(reads, r.finish(c, c.Epilogue, g, n)...)
	}
	r.out = c.result()
	r.strides = filterStrides(r.flt, n)
	writes, run := []operand{r.out}, r.run
	r.steady = c.l.steadyFilters && r.flt.Buf < len(c.l.Program.Params)
	if r.asProduct = r.product(c, g, n); r.asProduct != nil {
		writes, run = append(writes, r.asProduct.columns), r.runProduct
	} else {
		r.plan(c, g, n)
		writes = append(writes, r.packed)
	}
	if r.affine != nil {
		r.affine.n = g.Groups * g.COut
		r.affine.scale, r.affine.shift = c.l.bytesTemp(sizeOf[A](), r.affine.n), c.l.bytesTemp(sizeOf[T](), r.affine.n)
		writes = append(writes, r.affine.scale, r.affine.shift)
	}
	c.emit(1, 1, writes, reads, run)
}

// plan makes ready for packed filters.
func (r *convRun[T, A]) plan(c *call, g conv.Geometry, n int) {
	y := conv.ChannelsFirst(g.Groups*g.COut, g.Out)
	g, x, strides := batchInKernel(c.met(g, n), imageLayout(r.in, n), r.strides)
	r.strides = strides
	r.call.Plan = conv.New[T, A](g, x, y, c.l.limiter.Threads(), !r.steady)
	w := conv.WeightsWithout[A](g, r.call.Plan.Form())
	r.packed = c.l.bytesTemp(sizeOf[A](), w.Len())
	r.call.Weights, r.call.FilterStrides = w, r.strides
	r.grain = c.l.grain(packCost * float64(w.Len()) / float64(max(w.Units(), 1)))
	r.pack = r.packUnits
	r.key = filtersKey{g, r.call.Plan.Form(), r.flt.View.Offset, r.strides}
	r.key.g.N, r.key.g.In, r.key.g.Out = 0, [3]int{}, [3]int{}
}

// finish has the convolution compute an epilogue. It returns the operands of the
// epilogue.
func (r *convRun[T, A]) finish(c *call, e *fuse.Epilogue, g conv.Geometry, n int) (reads []operand) {
	r.call.Activation.Kind = activationKinds[e.Act]
	if len(e.Links) > 0 {
		r.affine = &affine[T, A]{}
		for _, k := range e.Links {
			o := c.dense(c.l.Computed(k.ID))
			reads = append(reads, o)
			r.affine.terms = append(r.affine.terms, term{k.Op, o})
		}
	}
	if e.Residual != fuse.NoValue {
		r.residual, r.hasAddend = c.upward(c.l.Computed(e.Residual)), true
		if !even(imageLayout(r.residual, n), g) {
			r.residual = c.l.Copied(c.Instr, r.residual)
		}
		r.call.ResidualLayout = imageLayout(r.residual, n)
		reads = append(reads, operand{buf: r.residual.Buf})
	}
	return reads
}

// steadyFilters reports whether the filters of convolutions are likely to be the same for many runs: if
// they are parameters that no run overwrites, and no convolution has computed ones, as those of
// gradients do.
func steadyFilters(p *graph.Program, aliases []backend.Alias) bool {
	from := map[graph.ID]graph.ID{} // of views
	for i := range p.Instrs {
		in := &p.Instrs[i]
		switch {
		case plan.IsView(in.Op):
			from[in.Out] = in.Args[0]
		case in.Op == aten.Convolution:
			w := in.Args[1]
			for at, ok := from[w]; ok; at, ok = from[w] {
				w = at
			}
			if int(w) >= len(p.Params) || slices.ContainsFunc(aliases, func(a backend.Alias) bool { return a.Input == int(w) }) {
				return false
			}
		}
	}
	return true
}

// even reports whether the positions of an image of results are evenly spaced, and
// images of one channel, too: a convolution may take them for one row.
func even(l conv.Layout, g conv.Geometry) bool {
	s, d := &l.Spatial, &g.Out
	return (d[1] == 1 || s[1] == s[2]*d[2]) && (d[0] == 1 || s[0] == s[2]*d[2]*d[1]) &&
		(g.N == 1 || g.Groups*g.COut > 1 || l.Batch == s[2]*d[2]*d[1]*d[0])
}

func (r *convRun[T, A]) packUnits(lo, hi int) {
	conv.SetWeights(r.into, r.src, r.strides, lo, hi)
	if r.scale != nil {
		conv.ScaleWeights(r.into, r.scale, lo, hi)
	}
}

func (r *convRun[T, A]) run(_, _ int) {
	k := &r.call
	if k.Plan.Units() == 0 {
		return
	}
	r.bind()
	own := k.Weights
	if kept := r.kept(); kept != nil {
		k.Weights = kept
	} else {
		own.Use(elements[A](r.mem, r.packed))
		r.packFilters(own)
	}
	k.Run()
	k.Weights = own
	r.unbind()
}

// packFilters packs the filters of the run.
func (r *convRun[T, A]) packFilters(w *conv.Weights[A]) {
	r.into = w
	r.call.Limiter.For(w.Units(), r.grain, r.pack)
	r.into = nil
}

// kept returns the filters as the input keeps them packed; nil where it does not.
func (r *convRun[T, A]) kept() *conv.Weights[A] {
	if !r.steady {
		return nil
	}
	in := r.mem.steady(r.flt.Buf)
	if in == nil {
		return nil
	}
	if had := hostmem.Kept[filtersKey, keptFilters[A]](in, &r.key); had != nil {
		if !slices.Equal(had.scale, r.scale) {
			return nil // statistics that have changed
		}
		return had.weights
	}
	made := hostmem.Keep(in, r.key, int64(r.call.Weights.Bytes()), r.mem.limit, func() *keptFilters[A] {
		w := conv.NewWeights[A](r.key.g, r.key.form)
		r.packFilters(w)
		return &keptFilters[A]{w, slices.Clone(r.scale)}
	})
	if made == nil {
		return nil
	}
	return made.weights
}

// bind takes the operands of a run.
func (r *convRun[T, A]) bind() {
	k := &r.call
	k.X, k.Y = as[T](r.mem.bufs[r.in.Buf])[r.in.View.Offset:], elements[T](r.mem, r.out)
	if r.hasBias {
		k.Bias = elements[T](r.mem, r.bias)
	}
	if r.affine != nil {
		r.scale, k.Bias = r.affine.compute(r.mem, k.Bias)
	}
	if r.hasAddend {
		k.Residual = as[T](r.mem.bufs[r.residual.Buf])[r.residual.View.Offset:]
	}
	r.src = as[T](r.mem.bufs[r.flt.Buf])[r.flt.View.Offset:]
	k.Filters, k.FilterScale = r.src, r.scale
}

// unbind drops them.
func (r *convRun[T, A]) unbind() {
	k := &r.call
	k.X, k.Y, k.Bias, k.Residual, k.Filters, k.FilterScale, r.src, r.scale = nil, nil, nil, nil, nil, nil, nil, nil
}

// affine is a chain of arithmetic with one number for each of n channels, put
// together to a factor and a summand.
type affine[T conv.Element, A conv.Float] struct {
	n            int
	terms        []term
	scale, shift operand
}

// term is one step: numbers, or one for all channels.
type term struct {
	op ir.Op
	at operand
}

// compute returns the factors and the summands of a chain that begins with the
// given summands (nil for zeros). Without products there are no factors.
func (a *affine[T, A]) compute(m *memory, bias []T) (scale []A, shift []T) {
	scale, shift = elements[A](m, a.scale), elements[T](m, a.shift)
	scaled := false
	for _, t := range a.terms {
		scaled = scaled || t.op == aten.Mul || t.op == aten.Div
	}
	for i := range a.n {
		f, s := 1.0, 0.0
		if bias != nil {
			s = vec.Wide[float64](bias[i])
		}
		for _, t := range a.terms {
			data := elements[T](m, t.at)
			v := vec.Wide[float64](data[min(i, len(data)-1)])
			switch t.op {
			case aten.Add:
				s += v
			case aten.Sub:
				s -= v
			case aten.Mul:
				f, s = f*v, s*v
			case aten.Div:
				f, s = f/v, s/v
			}
		}
		scale[i], shift[i] = A(f), vec.Narrow[T](s)
	}
	if !scaled {
		scale = nil
	}
	return scale, shift
}

// convGeometry returns the geometry of a use of convolution, and its number of
// spatial dimensions.
func convGeometry(a ir.Args) (conv.Geometry, int) {
	g := ir.ConvOf(a)
	n := g.Spatial
	return conv.Geometry{
		N: g.Batch, Groups: g.Groups, CIn: g.In / g.Groups, COut: g.Out / g.Groups,
		In: spatial(g.InDims, n, 1), Kernel: spatial(g.Kernel, n, 1), Out: spatial(g.OutDims, n, 1),
		Stride: spatial(g.Stride, n, 1), Pad: spatial(g.Padding, n, 0), Dilation: spatial(g.Dilation, n, 1),
		Transposed: g.Transposed,
	}, n
}

// imageLayout returns the strides of an image with n spatial dimensions.
func imageLayout(v plan.Value, n int) conv.Layout {
	s := &v.View.Strides
	return conv.Layout{Batch: s[0], Channel: s[1], Spatial: spatial([3]int(s[2:5]), n, 0)}
}

// filterStrides returns the strides of filters with n spatial dimensions. Dimensions
// that the filters lack get the strides of dense filters.
func filterStrides(v plan.Value, n int) [5]int {
	s := &v.View.Strides
	k := spatial([3]int(s[2:5]), n, v.View.Strides[2]*v.View.Dims[2])
	return [5]int{s[0], s[1], k[0], k[1], k[2]}
}
