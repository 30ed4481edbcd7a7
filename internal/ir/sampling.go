package ir

// The ops that sampling images at places of a list, and its gradients, consist of: backends have kernels
// for them. A place has taps, each a pixel and its weight; a pixel below 0 is none.
func init() {
	register("_sample_pixels(Tensor x, Tensor at, Tensor weights) -> Tensor", Spec{
		Doc:      "The sums over the taps of weights [taps, n, places] times the pixels at [taps, n, places] of planes x [n, c, pixels], [n, c, places]. Pixels below 0 count for nothing. f32 or f64; at is i32.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			x, at, weights := a.In[0], a.In[1], a.In[2]
			p := b.pixelTaps(a, x.Shape(), at, weights)
			rows := b.planesAsRows(x)
			y := b.Mul(p.read(rows, 0), p.weight(weights, 0))
			for t := 1; t < p.taps; t++ {
				y = b.Add(y, b.Mul(p.read(rows, t), p.weight(weights, t)))
			}
			return []Value{p.planes(y, x.Dim(1))}
		},
		VJP: func(b *Builder, a Args, _, grad []Value) []Value {
			x, at, weights := a.In[0], a.In[1], a.In[2]
			return []Value{
				b.callNamed("_spread_pixels", []any{grad[0], at, weights, x.Dim(2)}), {},
				b.callNamed("_pixel_products", []any{grad[0], x, at}),
			}
		},
	})
	register("_spread_pixels(Tensor x, Tensor at, Tensor weights, int pixels) -> Tensor", Spec{
		Doc:      "Planes [n, c, pixels] of zeros to whose pixels at [taps, n, places] weights [taps, n, places] times the places of x [n, c, places] are added. Pixels below 0 are none. f32 or f64; at is i32.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			x, at, weights := a.In[0], a.In[1], a.In[2]
			batch, channels, pixels := x.Dim(0), x.Dim(1), a.Int("pixels")
			p := b.pixelTaps(a, MakeShape(x.DType(), batch, channels, pixels), at, weights)
			a.requirePlaces(x, p)
			rows, zero := b.planesAsRows(x), b.Const(0, x.DType())
			y := b.Full([]int{batch * pixels, channels}, 0, x.DType())
			for t := range p.taps {
				y = b.IndexAdd(y, 0, p.index[t], b.Where(p.inside[t], b.Mul(rows, p.weight(weights, t)), zero))
			}
			return []Value{b.Transpose(b.Reshape(y, batch, pixels, channels), 1, 2)}
		},
	})
	register("_pixel_products(Tensor x, Tensor y, Tensor at) -> Tensor", Spec{
		Doc:      "The sums over the channels of x [n, c, places] times the pixels at [taps, n, places] of planes y [n, c, pixels], [taps, n, places]; 0 for pixels below 0. f32 or f64; at is i32.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			x, y, at := a.In[0], a.In[1], a.In[2]
			p := b.pixelTaps(a, y.Shape(), at, Value{})
			a.requirePlaces(x, p)
			left, rows := b.planesAsRows(x), b.planesAsRows(y)
			sums := make([]Value, p.taps)
			for t := range sums {
				sums[t] = b.Sum(b.Mul(left, p.read(rows, t)), []int{1}, false)
			}
			return []Value{b.Reshape(b.callNamed("stack", []any{sums, 0}), at.Shape().Dims()...)}
		},
	})
}

// pixelTaps is the taps of places as rows of a list: where there is none the index is that of some row.
type pixelTaps struct {
	*Builder
	taps, batch   int
	index, inside []Value
}

// pixelTaps returns the taps at of planes [n, c, pixels], and fails unless they and their weights, if they are
// given, go together.
func (b *Builder) pixelTaps(a Args, planes Shape, at, weights Value) *pixelTaps {
	d := planes.DType()
	if (d != F32 && d != F64) || at.DType() != I32 {
		a.Fail(ErrDType, "not defined for %v with places of %v", d, at.DType())
	}
	if planes.Rank() != 3 || at.Rank() != 3 || at.Dim(0) == 0 || at.Dim(1) != planes.Dim(0) || planes.Dim(2) < 1 {
		a.Fail(ErrShape, "planes are %v and places %v", planes, at.Shape())
	}
	if !weights.IsNil() && weights.Shape() != at.Shape().WithDType(d) {
		a.Fail(ErrShape, "weights are %v for places %v", weights.Shape(), at.Shape())
	}
	p := &pixelTaps{Builder: b, taps: at.Dim(0), batch: at.Dim(1)}
	n := at.Dim(1) * at.Dim(2)
	image := b.Reshape(b.Expand(b.Unsqueeze(b.Mul(b.Iota(p.batch, I64), b.Const(planes.Dim(2), I64)), 1), p.batch, at.Dim(2)), n)
	zero := b.Const(0, I64)
	for t := range p.taps {
		place := b.Cast(b.tapOf(at, t), I64)
		inside := b.ge(place, zero)
		p.index = append(p.index, b.Add(image, b.Where(inside, place, zero)))
		p.inside = append(p.inside, b.Unsqueeze(inside, 1))
	}
	return p
}

// requirePlaces fails unless x has an element for each channel and place.
func (a Args) requirePlaces(x Value, p *pixelTaps) {
	if x.Rank() != 3 || x.Dim(0) != p.batch || x.Dim(0)*x.Dim(2) != p.places() {
		a.Fail(ErrShape, "x is %v for %d places of %d images", x.Shape(), p.places(), p.batch)
	}
}

// places returns how many there are, in all images.
func (p *pixelTaps) places() int { return p.index[0].Shape().Numel() }

// read returns the rows of tap t, 0 where there is none.
func (p *pixelTaps) read(rows Value, t int) Value {
	return p.Where(p.inside[t], p.IndexSelect(rows, 0, p.index[t]), p.Const(0, rows.DType()))
}

// weight returns the weights of tap t, a column.
func (p *pixelTaps) weight(weights Value, t int) Value { return p.Unsqueeze(p.tapOf(weights, t), 1) }

// planes turns rows of channels to planes.
func (p *pixelTaps) planes(rows Value, channels int) Value {
	return p.Transpose(p.Reshape(rows, p.batch, p.places()/max(p.batch, 1), channels), 1, 2)
}

// tapOf returns the part t of [taps, n, places] as a list.
func (b *Builder) tapOf(v Value, t int) Value {
	return b.Reshape(b.Slice(v, 0, t, t+1, 1), v.Dim(1)*v.Dim(2))
}

// planesAsRows turns planes [n, c, pixels] to rows of channels, [n·pixels, c].
func (b *Builder) planesAsRows(x Value) Value {
	return b.Reshape(b.Transpose(x, 1, 2), x.Dim(0)*x.Dim(2), x.Dim(1))
}
