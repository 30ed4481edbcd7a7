package tensors

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// Difference says how far a tensor is from what it should be.
type Difference struct {
	// MaxAbs and MaxRel are the largest absolute error and the largest error
	// relative to the wanted element, over elements that are finite; Exact is how
	// many elements are equal, and Elements how many there are.
	MaxAbs, MaxRel  float64
	Exact, Elements int
	// Past is how many elements are past the tolerances, of which First is the
	// index of the first, or -1.
	Past, First int
}

// Tolerances returns the relative and the absolute tolerance for a dtype that
// torch.testing.assert_close has.
func Tolerances(d ir.DType) (rtol, atol float64) {
	switch d {
	case ir.F16:
		return 1e-3, 1e-5
	case ir.BF16:
		return 1.6e-2, 1e-5
	case ir.F32, ir.C64:
		return 1.3e-6, 1e-5
	case ir.F64, ir.C128:
		return 1e-7, 1e-7
	}
	return 0, 0
}

// Compare measures how far got is from want, which must have the same shape. An
// element is past the tolerances if its error exceeds atol + rtol·|want|. NaNs
// equal NaNs.
func Compare(got, want Tensor, rtol, atol float64) (Difference, error) {
	if got.Shape != want.Shape {
		return Difference{}, fmt.Errorf("%s is %v, not %v", got.Name, got.Shape, want.Shape)
	}
	d := got.Shape.DType()
	n := got.Shape.Numel()
	if d == ir.C64 || d == ir.C128 {
		n *= 2
	}
	diff := Difference{Elements: n, First: -1}
	for i := range n {
		g, w := element(d, got.Data, i), element(d, want.Data, i)
		if g == w || g != g && w != w {
			diff.Exact++
			continue
		}
		e := math.Abs(g - w)
		// An error that is no number, or infinite, is past any tolerance.
		if !(e <= atol+rtol*math.Abs(w)) || math.IsInf(e, 0) {
			if diff.Past++; diff.First < 0 {
				diff.First = i
			}
		}
		if !math.IsInf(e, 0) && e == e {
			diff.MaxAbs = max(diff.MaxAbs, e)
			if w != 0 {
				diff.MaxRel = max(diff.MaxRel, e/math.Abs(w))
			}
		}
	}
	return diff, nil
}

func element(d ir.DType, data []byte, i int) float64 {
	if d.IsIntegral() {
		return float64(elements.Int(d, data, i))
	}
	return elements.Float(part(d), data, i)
}
