package tile

import "unsafe"

// Winograd's convolution F(4×4, 3×3) (Lavin and Gray, 2016) makes 4×4 outputs
// of one channel from 6×6 positions of the image by 36 products for each input
// channel, where the definition takes 144. With matrices B, G and A
//
//	Y = Aᵀ·[ (G·g·Gᵀ) ⊙ (Bᵀ·d·B) ]·A
//
// interpolate polynomials at six points: 0, ±5/8, ±3/2 and infinity. Those err
// about four times less than the 0, ±1, ±2 of the paper, and their squares are
// exact as well.
const (
	// WinogradIn is the rows and columns of positions and of coefficients.
	WinogradIn = 6
	// WinogradOut is the rows and columns of outputs.
	WinogradOut = 4

	pointA = 0.625
	pointB = 1.5
	a2, b2 = pointA * pointA, pointB * pointB
	// What the differences of a point from the others multiply to, inverted.
	normA = 1 / (2 * a2 * (a2 - b2))
	normB = 1 / (2 * b2 * (b2 - a2))
)

// TransformArgs are the operands of a transform. What it reads and writes is
// rows and columns of vectors of channels, the channels of one adjoin. Steps are
// in bytes. The assembly reads the fields by their order.
type TransformArgs[A Float] struct {
	X    unsafe.Pointer // the vector of row 0 and column 0 that is read
	C    unsafe.Pointer // and that is written
	Tmp  unsafe.Pointer // WinogradIn² vectors of scratch memory
	Bias unsafe.Pointer // a number for each channel of outputs, which is added
	Bad  unsafe.Pointer // a vector that turns NaN where an output is not finite before the bias is added

	XRow, XCol int
	CRow, CCol int
	Count      int // of vectors, at least one; changed by the transform
	Lo, Hi     A   // bounds of the outputs; a NaN passes
}

// transforms are the functions of one implementation, from TransformArgs. Those
// that processors have are for float32 only.
type transforms struct{ input, filter, output tileFunc }

// WinogradInput computes Bᵀ·d·B of 6×6 positions.
func (s *Set[A]) WinogradInput(a *TransformArgs[A]) { s.winograd.input((*byte)(unsafe.Pointer(a))) }

// WinogradFilter computes G·g·Gᵀ of 3×3 taps.
func (s *Set[A]) WinogradFilter(a *TransformArgs[A]) { s.winograd.filter((*byte)(unsafe.Pointer(a))) }

// WinogradOutput computes clamp(Aᵀ·m·A + Bias) of 6×6 sums of products.
func (s *Set[A]) WinogradOutput(a *TransformArgs[A]) { s.winograd.output((*byte)(unsafe.Pointer(a))) }

// portableTransforms are the transforms a channel at a time.
func portableTransforms[A Float]() transforms {
	of := func(in, out int) tileFunc {
		return func(b *byte) { transform((*TransformArgs[A])(unsafe.Pointer(b)), in, out) }
	}
	return transforms{of(WinogradIn, WinogradIn), of(taps, WinogradIn), of(WinogradIn, WinogradOut)}
}

// taps is the rows and columns of filters.
const taps = 3

// transformRow applies the transform from in to out numbers.
func transformRow[A Float](x *[WinogradIn]A, in, out int) {
	switch {
	case in == taps:
		filterRow(x)
	case out == WinogradOut:
		outputRow(x)
	default:
		inputRow(x)
	}
}

// transform transforms the columns and then the rows of each channel.
func transform[A Float](a *TransformArgs[A], in, out int) {
	size := elemSize[A]()
	for v := range a.Count * blockCols {
		var m [WinogradIn][WinogradIn]A
		for j := range in {
			var x [WinogradIn]A
			for i := range in {
				x[i] = *(*A)(unsafe.Add(a.X, i*a.XRow+j*a.XCol+v*size))
			}
			transformRow(&x, in, out)
			for i := range out {
				m[i][j] = x[i]
			}
		}
		for i := range out {
			transformRow(&m[i], in, out)
			for j, y := range m[i][:out] {
				if out == WinogradOut {
					y = finishOutput(a, v, y)
				}
				*(*A)(unsafe.Add(a.C, i*a.CRow+j*a.CCol+v*size)) = y
			}
		}
	}
}

// finishOutput notes whether an output of channel v is finite, adds the bias and
// applies the bounds.
func finishOutput[A Float](a *TransformArgs[A], v int, y A) A {
	at[A](a.Bad, 0)[v%blockCols] += y * 0
	y += *(*A)(unsafe.Add(a.Bias, v*elemSize[A]()))
	if y < a.Lo {
		y = a.Lo
	}
	if y > a.Hi {
		y = a.Hi
	}
	return y
}

// inputRow multiplies with Bᵀ: row p has the coefficients of the product of x-q
// over all finite points q but p.
func inputRow[A Float](d *[WinogradIn]A) {
	evenA, oddA := d[4]-b2*d[2], pointA*(d[3]-b2*d[1])
	evenB, oddB := d[4]-a2*d[2], pointB*(d[3]-a2*d[1])
	*d = [WinogradIn]A{
		d[4] - (a2+b2)*d[2] + a2*b2*d[0], evenA + oddA, evenA - oddA, evenB + oddB, evenB - oddB,
		d[5] - (a2+b2)*d[3] + a2*b2*d[1],
	}
}

// filterRow multiplies with G: row p evaluates a polynomial at p, divided by the
// product of p-q.
func filterRow[A Float](g *[WinogradIn]A) {
	evenA, oddA := normA*g[0]+normA*a2*g[2], normA*pointA*g[1]
	evenB, oddB := normB*g[0]+normB*b2*g[2], normB*pointB*g[1]
	*g = [WinogradIn]A{1 / (a2 * b2) * g[0], evenA + oddA, evenA - oddA, evenB + oddB, evenB - oddB, g[2]}
}

// outputRow multiplies with Aᵀ: row i has the i-th powers of the points.
func outputRow[A Float](m *[WinogradIn]A) {
	sumA, diffA, sumB, diffB := m[1]+m[2], m[1]-m[2], m[3]+m[4], m[3]-m[4]
	m[0] += sumA + sumB
	m[1] = pointA*diffA + pointB*diffB
	m[2] = a2*sumA + b2*sumB
	m[3] = a2*pointA*diffA + b2*pointB*diffB + m[5]
}
