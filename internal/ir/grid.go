package ir

import (
	"fmt"
	"math"
	"slices"
)

// The modes of sampling, by ATen's numbers.
var (
	gridModes    = []string{"bilinear", "nearest", "bicubic"}
	gridPaddings = []string{"zeros", "border", "reflection"}
)

func init() {
	register("grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool align_corners=False) -> Tensor", Spec{
		Doc:      "input [N, C, …] of 2 or 3 spatial dimensions read at the places grid [N, …, 2 or 3], coordinates from -1 to 1 with that of the last dimension first. mode is bilinear, nearest or (in 2 dimensions) bicubic; padding_mode is zeros, border or reflection. Floating dtypes; f16 and bf16 compute in f32. As torch.nn.functional.grid_sample.",
		Category: Neural, Decompose: func(b *Builder, a Args) []Value {
			mode, padding := slices.Index(gridModes, a.Str("mode")), slices.Index(gridPaddings, a.Str("padding_mode"))
			if mode < 0 || padding < 0 {
				a.Fail(ErrArg, "mode is %q and padding_mode %q, must be of %v and %v", a.Str("mode"), a.Str("padding_mode"), gridModes, gridPaddings)
			}
			return gridSample(b, a, a.In[0].Rank()-2, mode, padding)
		},
	})
	for n := 2; n <= 3; n++ {
		name := fmt.Sprintf("grid_sampler_%dd", n)
		const modes = "int interpolation_mode, int padding_mode, bool align_corners"
		register(fmt.Sprintf("%s(Tensor input, Tensor grid, %s) -> Tensor", name, modes), Spec{
			Doc:      fmt.Sprintf("grid_sample of %d spatial dimensions; the modes are ATen's numbers. As at::%s.", n, name),
			Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
				mode, padding := a.Int("interpolation_mode"), a.Int("padding_mode")
				if mode < 0 || mode >= len(gridModes) || padding < 0 || padding >= len(gridPaddings) {
					a.Fail(ErrArg, "interpolation_mode is %d and padding_mode %d, must be from 0 to 2", mode, padding)
				}
				return gridSample(b, a, n, mode, padding)
			},
		})
		registerBackward(fmt.Sprintf("%s_backward(Tensor grad_output, Tensor input, Tensor grid, %s, int[] output_mask) -> (Tensor grad_input, Tensor grad_grid)", name, modes),
			fmt.Sprintf("The gradients of %s with respect to input and grid, as far as output_mask has a 1 for them; those that are not wanted are empty. As at::%s_backward.", name, name),
			func(b *Builder, a Args) []Value {
				return maskedGradients(b, a, name, []string{"input", "grid"}, outputMask(a, 2))
			})
	}
	register("affine_grid(Tensor theta, int[] size, bool align_corners=False) -> Tensor", Spec{
		Doc:      "The places, for grid_sample, of an image of size [N, C, H, W] or [N, C, D, H, W] after the affine maps theta [N, 2, 3] or [N, 3, 4]. Floating dtypes. As torch.nn.functional.affine_grid.",
		Category: Neural, Decompose: affineGrid,
	})
}

// gridTap is one pixel along an axis that each place reads: where, how much of it, and whether
// it is inside of the image.
type gridTap struct{ at, weight, inside Value }

// gridSampler reads n-dimensional images.
type gridSampler struct {
	*Builder
	n, mode, padding int
	align            bool
	join             func(x, y Value) Value // takes what the taps read together
	places           DType                  // what pixels are counted in
}

func gridSample(b *Builder, a Args, n, mode, padding int) []Value {
	x, grid := a.Tensor("input"), a.Tensor("grid")
	d := x.DType()
	if !d.IsFloat() || grid.DType() != d {
		a.Fail(ErrDType, "input and grid must have one floating dtype, got %v and %v", d, grid.DType())
	}
	if n < 2 || n > 3 || x.Rank() != n+2 || grid.Rank() != n+2 || grid.Dim(-1) != n || grid.Dim(0) != x.Dim(0) {
		a.Fail(ErrShape, "input must be [N, C, …] of 2 or 3 spatial dimensions and grid [N, …, 2 or 3], got %v and %v", x.Shape(), grid.Shape())
	}
	if mode == slices.Index(gridModes, "bicubic") && n != 2 {
		a.Fail(ErrArg, "bicubic sampling is for 2 spatial dimensions")
	}
	batch, channels := x.Dim(0), x.Dim(1)
	size, out := x.Shape().Dims()[2:], grid.Shape().Dims()[1:n+1]
	_, pixels := planesOf(x, n)
	places := batch
	for _, o := range out {
		places *= o
	}
	if pixels == 0 {
		a.Fail(ErrShape, "input must have non-empty spatial dimensions, got %v", x.Shape())
	}
	s := gridSampler{b, n, mode, padding, a.Bool("align_corners"), b.Add, I32}
	if pixels > math.MaxInt32 {
		s.places = I64
	}
	flat := b.Reshape(b.widen(grid), places, n)
	axes := make([][]gridTap, n)
	for i := range n { // the last axis comes first in the grid
		axes[i] = s.taps(b.Reshape(b.Slice(flat, 1, n-1-i, n-i, 1), places), size[i])
	}
	var y Value
	if s.places == I32 {
		y = s.sampled(b.Reshape(b.widen(x), batch, channels, pixels), axes, size)
	} else { // pixels become rows of channels, and places a list
		rows := b.Reshape(b.Transpose(b.Reshape(b.widen(x), batch, channels, pixels), 1, 2), batch*pixels, channels)
		image := b.Reshape(b.Expand(b.Unsqueeze(b.Mul(b.Iota(batch, I64), b.Const(pixels, I64)), 1), batch, places/max(batch, 1)), places)
		y = s.sum(rows, size, axes, gridTap{at: b.Full([]int{places}, 0, I64)}, image)
		y = b.Transpose(b.Reshape(y, batch, places/max(batch, 1), channels), 1, 2)
	}
	return []Value{b.Cast(b.Reshape(y, append([]int{batch, channels}, out...)...), d)}
}

// sampled is what places read of planes [N, C, pixels], [N, C, places of an image].
func (s *gridSampler) sampled(planes Value, axes [][]gridTap, size []int) Value {
	taps := axes[0]
	for i, axis := range axes[1:] {
		var all []gridTap
		for _, t := range taps {
			for _, next := range axis {
				all = append(all, s.both(t, next, size[i+1]))
			}
		}
		taps = all
	}
	batch, places := planes.Dim(0), taps[0].at.Shape().Numel()
	ats, weights := make([]Value, len(taps)), make([]Value, len(taps))
	for i, t := range taps {
		ats[i] = s.Where(t.inside, t.at, s.Const(-1, I32))
		weights[i] = t.weight
		if t.weight.IsNil() {
			weights[i] = s.Full([]int{places}, 1, planes.DType())
		}
	}
	joined := func(v []Value) Value {
		return s.Reshape(s.callNamed("stack", []any{v, 0}), len(taps), batch, places/max(batch, 1))
	}
	return s.callNamed("_sample_pixels", []any{planes, joined(ats), joined(weights)})
}

// both is the pixel of two taps, of which next is along an axis of the given size behind those of t.
func (s *gridSampler) both(t, next gridTap, size int) gridTap {
	next.at = s.Add(s.Mul(t.at, s.Const(size, s.places)), next.at)
	if !t.inside.IsNil() {
		next.inside = s.logicalAnd(t.inside, next.inside)
	}
	if !t.weight.IsNil() {
		next.weight = s.Mul(t.weight, next.weight)
	}
	return next
}

// sum joins what all combinations of the axes' taps read. t combines those of the axes in front.
func (s *gridSampler) sum(rows Value, size []int, axes [][]gridTap, t gridTap, image Value) Value {
	if len(axes) == 0 {
		value := s.IndexSelect(rows, 0, s.Add(image, s.Where(t.inside, t.at, s.Const(0, I64))))
		value = s.Where(s.Unsqueeze(t.inside, 1), value, s.Const(0, rows.DType()))
		if t.weight.IsNil() {
			return value
		}
		return s.Mul(value, s.Unsqueeze(t.weight, 1))
	}
	var y Value
	for i, next := range axes[0] {
		part := s.sum(rows, size[1:], axes[1:], s.both(t, next, size[0]), image)
		if i > 0 {
			part = s.join(y, part)
		}
		y = part
	}
	return y
}

// taps returns what places from -1 to 1 read along an axis.
func (s *gridSampler) taps(place Value, size int) []gridTap {
	c := func(v float64) Value { return s.Const(v, place.DType()) }
	x := s.Mul(s.Sub(s.Mul(s.Add(place, c(1)), c(float64(size))), c(1)), c(0.5))
	if s.align {
		x = s.Mul(s.Mul(s.Add(place, c(1)), c(0.5)), c(float64(size-1)))
	}
	tap := func(at, weight Value) gridTap { return s.tap(at, weight, size) }
	switch gridModes[s.mode] {
	case "nearest":
		return []gridTap{tap(s.round(s.far(s.padded(x, size))), Value{})}
	case "bicubic":
		x = s.far(x)
		first := s.floor(x)
		var taps []gridTap
		for j, w := range s.cubicWeights(s.Sub(x, first)) {
			at := s.far(s.padded(s.Add(first, c(float64(j-1))), size))
			taps = append(taps, tap(s.trunc(at), w))
		}
		return taps
	}
	return s.bilinear(s.padded(x, size), size)
}

// tap is the pixel at, of size along its axis, of which a place reads weight.
func (s *gridSampler) tap(at, weight Value, size int) gridTap {
	inside := s.logicalAnd(s.ge(at, s.Const(0, at.DType())), s.lt(at, s.Const(float64(size), at.DType())))
	return gridTap{s.Cast(at, s.places), weight, inside}
}

// bilinear returns the two pixels around a coordinate.
func (s *gridSampler) bilinear(x Value, size int) []gridTap {
	x = s.far(x)
	one := s.Const(1, x.DType())
	first := s.floor(x)
	t := s.Sub(x, first)
	return []gridTap{s.tap(first, s.Sub(one, t), size), s.tap(s.Add(first, one), t, size)}
}

// far puts what is no number, or beyond all images, outside.
func (s *gridSampler) far(x Value) Value {
	return s.Where(s.le(s.abs(x), s.Const(float64(1<<30), x.DType())), x, s.Const(-100.0, x.DType()))
}

// padded brings a coordinate into the image. At the edges and beyond it does not depend on the
// place: ATen has a gradient of 0 there.
func (s *gridSampler) padded(x Value, size int) Value {
	c := func(v float64) Value { return s.Const(v, x.DType()) }
	if gridPaddings[s.padding] == "reflection" {
		low, high := -0.5, float64(size)-0.5
		if s.align {
			low, high = 0, float64(size-1)
		}
		x = s.reflected(x, low, high-low)
	}
	if gridPaddings[s.padding] == "zeros" {
		return x
	}
	last := c(float64(size - 1))
	return s.Where(s.le(x, c(0)), c(0), s.Where(s.ge(x, last), last, x))
}

// reflected folds a coordinate into the span behind low.
func (s *gridSampler) reflected(x Value, low, span float64) Value {
	c := func(v float64) Value { return s.Const(v, x.DType()) }
	if span == 0 {
		return s.fullLike(x, 0)
	}
	x = s.Sub(x, c(low))
	x = s.Where(s.lt(x, c(0)), s.Neg(x), x)
	extra := s.fmod(x, c(span))
	odd := s.ne(s.fmod(s.floor(s.Div(x, c(span))), c(2)), c(0))
	return s.Add(s.Where(odd, s.Sub(c(span), extra), extra), c(low))
}

func affineGrid(b *Builder, a Args) []Value {
	theta, size := a.Tensor("theta"), a.Ints("size")
	n := len(size) - 2
	d := theta.DType()
	if !d.IsFloat() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	if n < 2 || n > 3 || theta.Shape() != MakeShape(d, size[0], n, n+1) || slices.Min(size) < 1 {
		a.Fail(ErrShape, "size must have 4 or 5 positive entries and theta the dimensions [N, 2, 3] or [N, 3, 4], got %v and %v", size, theta.Shape())
	}
	out := size[2:]
	wide := b.widen(theta)
	columns := make([]Value, n+1)
	for i := range n { // the last dimension comes first
		axis := n - 1 - i
		dims := make([]int, n+1)
		for j := range dims {
			dims[j] = 1
		}
		dims[axis] = out[axis]
		columns[i] = b.Expand(b.Reshape(b.centres(out[axis], wide.DType(), a.Bool("align_corners")), dims...), append(slices.Clone(out), 1)...)
	}
	columns[n] = b.Full(append(slices.Clone(out), 1), 1, wide.DType())
	cells := 1
	for _, o := range out {
		cells *= o
	}
	base := b.Reshape(b.Cat(columns, n), cells, n+1)
	grid := b.MatMul(base, b.Transpose(wide, 1, 2))
	return []Value{b.Cast(b.Reshape(grid, append(append([]int{size[0]}, out...), n)...), d)}
}

// centres are the coordinates of n pixels from -1 to 1: of their centres, or with the first and
// the last at the ends.
func (b *Builder) centres(n int, d DType, align bool) Value {
	step, first := 2/float64(n), 1/float64(n)-1
	if align {
		step, first = 2/math.Max(float64(n-1), 1), -1
		if n == 1 {
			first = 0
		}
	}
	return b.Add(b.Mul(b.Iota(n, d), b.Const(step, d)), b.Const(first, d))
}
