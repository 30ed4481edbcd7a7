package cpu

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/fft"
)

// Fourier transforms.

func init() {
	composites[aten.FftC2c], composites[aten.FftR2c], composites[aten.FftC2r] = true, true, true
	composites[aten.StftFrames] = true
	lowerings[aten.StftFrames] = singleOrDouble(frames[float32], frames[float64])
	lowerings[aten.FftLine] = func(c *call) {
		lowerTransform(c, fft.Complex, []int{c.Operands[0].Shape.Rank() - 1}, !c.Bool("forward"), c.Operands[0].Shape.Dim(-1), 1)
	}
	lowerings[aten.FftC2c] = func(c *call) {
		dims := c.Ints("dim")
		lowerTransform(c, fft.Complex, dims, !c.Bool("forward"), 0, c.fftScale(dims, c.Operands[0].Shape))
	}
	lowerings[aten.FftR2c] = func(c *call) {
		kind, dims := fft.RealToAll, c.Ints("dim")
		if c.Bool("onesided") {
			kind = fft.RealToHalf
		}
		lowerTransform(c, kind, dims, false, 0, c.fftScale(dims, c.Operands[0].Shape))
	}
	lowerings[aten.FftC2r] = func(c *call) {
		dims := c.Ints("dim")
		lowerTransform(c, fft.HalfToReal, dims, true, c.Int("last_dim_size"), c.fftScale(dims, c.Shapes[0]))
	}
}

// fftScale returns the factor of a normalization over dims, whose transforms are as long as they are
// in full.
func (c *call) fftScale(dims []int, full ir.Shape) float64 {
	n := 1.0
	for _, d := range dims {
		n *= float64(full.Dim(d))
	}
	return c.normalization(n)
}

// normalization returns the factor of a transform of n elements.
func (c *call) normalization(n float64) float64 {
	switch c.Int("normalization") {
	case 0:
		return 1
	case 1:
		return 1 / math.Sqrt(n)
	}
	return 1 / n
}

// lowerTransform transforms along each of dims; the last of them, if kind says so, from or to reals, to
// n of them in the latter case.
func lowerTransform(c *call, kind fft.Kind, dims []int, inverse bool, n int, scale float64) {
	if d := c.Operands[0].DType().Part(); d == ir.F64 {
		transforms[float64](c, kind, dims, inverse, n, scale)
	} else {
		transforms[float32](c, kind, dims, inverse, n, scale)
	}
}

// transformed is a tensor while it is transformed along one dimension after the other.
type transformed[T fft.Float] struct {
	*call
	at   operand // in floats
	dims []int
	left int     // transforms that are still to come; the last one makes the result
	rest float64 // the factor that the last one multiplies by
}

func transforms[T fft.Float](c *call, kind fft.Kind, dims []int, inverse bool, n int, scale float64) {
	shape := c.Operands[0].Shape
	x := c.dense(c.Operands[0])
	if shape.DType().IsComplex() {
		x.off, x.n = 2*x.off, 2*x.n
	}
	t := &transformed[T]{c, x, shape.Dims(), len(dims), scale}
	last := (dims[len(dims)-1] + shape.Rank()) % shape.Rank()
	switch kind {
	case fft.RealToHalf, fft.RealToAll:
		n = t.dims[last]
		t.along(last, kind, n, inverse)
		dims = dims[:len(dims)-1]
	case fft.HalfToReal:
		dims = dims[:len(dims)-1]
	}
	for _, d := range dims {
		d = (d + shape.Rank()) % shape.Rank()
		t.along(d, fft.Complex, t.dims[d], inverse)
	}
	if kind == fft.HalfToReal {
		t.along(last, kind, n, inverse)
	}
	if got := ir.MakeShape(c.Shapes[0].DType(), t.dims...); got != c.Shapes[0] {
		panic(fmt.Errorf("%w: transforms make %v, not %v", ir.ErrShape, got, c.Shapes[0]))
	}
}

// along emits the transform of one dimension to n elements.
func (t *transformed[T]) along(d int, kind fft.Kind, n int, inverse bool) {
	outer, have, inner := ir.MakeShape(ir.U8, t.dims...).Around(d)
	width := 2
	switch t.dims[d] = n; kind {
	case fft.RealToHalf:
		t.dims[d] = n/2 + 1
	case fft.HalfToReal:
		width = 1
	}
	scale := 1.0
	var out operand
	if t.left--; t.left == 0 {
		scale, out = t.rest, t.result()
		out.n = width * out.n
	} else {
		out = t.room(width * outer * t.dims[d] * inner)
	}
	in, to := fft.Layout{Inner: inner, Len: have}, fft.Layout{Inner: inner, Len: t.dims[d]}
	lines := outer * inner
	switch {
	case lines > 0 && inner == 1 && t.long(out, kind, n, have, lines, inverse, scale):
	case lines > 0 && t.chirped(fft.NewChirp[T](kind, n, lines, inverse, in, to, scale), out, t.at, lines):
	default:
		t.run(fft.New[T](kind, n, inverse, in, to, scale), out, lines, n, t.at)
	}
	t.at = out
}

// long emits the transform of lines that are better transformed in steps, if these are. Lines of
// reals are lines of half as many complex numbers, with a step behind or before.
func (t *transformed[T]) long(out operand, kind fft.Kind, n, have, lines int, inverse bool, scale float64) bool {
	size := n
	switch {
	case kind == fft.RealToHalf && n%2 == 0 && have == n, kind == fft.HalfToReal && n%2 == 0 && have == n/2+1:
		size = n / 2
	case kind != fft.Complex:
		return false
	}
	factor := scale
	if kind != fft.Complex {
		factor = 1
	}
	first, second, n1, n2, ok := fft.Long[T](size, lines, inverse, factor)
	var chirp *fft.Chirp[T]
	if !ok {
		line := fft.Layout{Inner: 1, Len: size}
		if chirp = fft.NewChirp[T](fft.Complex, size, lines, inverse, line, line, factor); chirp == nil {
			return false
		}
	}
	from, to := t.at, out
	if kind == fft.HalfToReal {
		from = t.room(2 * size * lines)
		t.reals(fft.NewReals[T](kind, n, scale), from, t.at, lines, n)
	} else if kind == fft.RealToHalf {
		to = t.room(2 * size * lines)
	}
	if !t.chirped(chirp, to, from, lines) {
		mid := t.room(2 * size * lines)
		t.run(first, mid, lines*n2, n1, from)
		t.run(second, to, lines*n1, n2, mid)
	}
	if kind == fft.RealToHalf {
		t.reals(fft.NewReals[T](kind, n, scale), out, to, lines, n)
	}
	return true
}

// chirped emits the transform of lines whose length has a large prime as a convolution in steps, unless c is
// nil.
func (t *transformed[T]) chirped(c *fft.Chirp[T], out, in operand, lines int) bool {
	if c == nil {
		return false
	}
	m, size := t.l.mem, c.Size()
	between := func(out, in operand, f func(dst, src []T, lo, hi int)) {
		units := c.Units(lines)
		t.emit(units, t.l.grain(2*float64(size*lines/units)), []operand{out}, []operand{in}, func(lo, hi int) {
			f(elements[T](m, out), elements[T](m, in), lo, hi)
		})
	}
	transform := func(in operand, inverse bool) operand {
		first, second, n1, n2, _ := fft.Long[T](size, lines, inverse, 1)
		mid, out := t.room(in.n), t.room(in.n)
		t.run(first, mid, lines*n2, n1, in)
		t.run(second, out, lines*n1, n2, mid)
		return out
	}
	x := t.room(2 * size * lines)
	between(x, in, c.Begin)
	y := transform(x, false)
	product := t.room(y.n)
	between(product, y, c.Convolve)
	between(out, transform(product, true), c.End)
	return true
}

// reals emits the step between reals and complex numbers.
func (t *transformed[T]) reals(r *fft.Reals[T], out, in operand, lines, n int) {
	m, units := t.l.mem, r.Units(lines)
	t.emit(units, t.l.grain(float64(n*lines/units)), []operand{out}, []operand{in}, func(lo, hi int) {
		r.Run(elements[T](m, out), elements[T](m, in), lo, hi)
	})
}

func (t *transformed[T]) room(floats int) operand { return t.l.bytesTemp(sizeOf[T](), floats) }

// scratchLimit is the size of scratch memory that a goroutine keeps; more is planned for, so that it
// counts.
const scratchLimit = 1 << 24

// frames emits the transforms of frames of signals times a window.
func frames[T fft.Float](c *call) {
	n, size := c.Operands[1].Shape.Dim(0), c.Operands[0].Shape.Dim(1)
	x, w, out := c.dense(c.Operands[0]), c.dense(c.Operands[1]), c.result()
	count := c.Shapes[0].Dim(2)
	kind := fft.RealToAll
	if c.Bool("onesided") {
		kind = fft.RealToHalf
	}
	out.n *= 2
	f := fft.NewFrames[T](kind, n, fft.Frames{Count: count, Hop: c.Int("hop_length"), Size: size},
		fft.Layout{Inner: count, Len: c.Shapes[0].Dim(1)}, c.normalization(float64(n)))
	t := &transformed[T]{call: c}
	t.run(f, out, count*c.Shapes[0].Dim(0), n, x, w)
}

// run emits a transform of so many lines, of in or, of frames, of in[0] times in[1].
func (t *transformed[T]) run(f *fft.Lines[T], out operand, lines, n int, in ...operand) {
	if lines == 0 { // needs no memory beside, however long they are
		t.emit(0, 1, []operand{out}, in, func(_, _ int) {})
		return
	}
	if !f.Fits() {
		panic(fmt.Errorf("%w: a Fourier transform of %d elements, which have a prime factor above 97: pad them with zeros or cut them", backend.ErrUnsupported, n))
	}
	m, room := t.l.mem, f.Scratch()
	run := func(scratch []T, lo, hi int) {
		if len(in) == 2 {
			f.RunFrames(elements[T](m, out), elements[T](m, in[0]), elements[T](m, in[1]), scratch, lines, lo, hi)
		} else {
			f.Run(elements[T](m, out), elements[T](m, in[0]), scratch, lines, lo, hi)
		}
	}
	if room*sizeOf[T]() > scratchLimit {
		scratch := t.room(room)
		t.emit(1, 1, []operand{out, scratch}, in, func(_, _ int) {
			run(elements[T](m, scratch), 0, fft.Blocks[T](lines))
		})
		return
	}
	blocks, grain := fft.Blocks[T](lines), t.l.grain(float64(n*fft.Lanes[T]())*(1+0.2*float64(bits.Len(uint(n)))))
	work := func(lo, hi int) {
		w := workers.Get().(*worker)
		run(scratchOf[T](w, room), lo, hi)
		workers.Put(w)
	}
	if f.InPlace() {
		t.emitOver(in[0], blocks, grain, out, in, work)
		return
	}
	t.emit(blocks, grain, []operand{out}, in, work)
}
