package opinfo

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrMismatch is wrapped by the errors of comparisons that fail.
var ErrMismatch = errors.New("mismatch")

// A Tolerance accepts got for want when |got-want| ≤ ATol + RTol·|want|. The zero value accepts equal numbers only.
type Tolerance struct {
	RTol, ATol float64
}

// DefaultTolerance returns the tolerance of torch.testing.assert_close for a dtype; bool and integers compare exactly.
func DefaultTolerance(dtype DType) Tolerance {
	switch dtype {
	case "f16":
		return Tolerance{1e-3, 1e-5}
	case "bf16":
		return Tolerance{1.6e-2, 1e-5}
	case "f32":
		return Tolerance{1.3e-6, 1e-5}
	case "f64":
		return Tolerance{1e-7, 1e-7}
	}
	return Tolerance{}
}

// AssertClose compares got with want as torch.testing.assert_close(equal_nan=True) does, with the default tolerance of
// dtype, which may be less exact than want's own. Dtypes and shapes must agree. The error wraps [ErrMismatch].
func AssertClose(got, want Tensor, dtype DType) error {
	return DefaultTolerance(dtype).Compare(got, want)
}

// Compare reports an error that wraps [ErrMismatch] unless got has want's dtype and shape and every element of it is
// within the tolerance. NaN equals NaN, infinities equal themselves, 0 equals -0; bool and integers compare exactly.
func (tol Tolerance) Compare(got, want Tensor) error {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("%w: got %v, want %v", ErrMismatch, got, want)
	}
	for _, t := range []Tensor{got, want} {
		if err := t.validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrMismatch, err)
		}
	}
	if !want.DType.IsFloat() {
		return compareInts(got.Int64s(), want)
	}
	return tol.compareFloats(got.Float64s(), want)
}

func compareInts(got []int64, want Tensor) error {
	wants := want.Int64s()
	var bad []int
	for i, w := range wants {
		if got[i] != w {
			bad = append(bad, i)
		}
	}
	if bad == nil {
		return nil
	}
	i := bad[0]
	return fmt.Errorf("%w: %d of %d elements of %v differ, the first at %v: got %d, want %d",
		ErrMismatch, len(bad), len(wants), want, index(i, want.Shape), got[i], wants[i])
}

func (tol Tolerance) compareFloats(got []float64, want Tensor) error {
	wants := want.Float64s()
	count, worst, worstDiff := 0, 0, -1.0
	for i, w := range wants {
		g := got[i]
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		diff := math.Abs(g - w)
		// An infinite bound would accept any finite number for an infinite want.
		if !math.IsInf(w, 0) && diff <= tol.ATol+tol.RTol*math.Abs(w) {
			continue
		}
		count++
		if math.IsNaN(diff) {
			diff = math.Inf(1)
		}
		if diff > worstDiff {
			worst, worstDiff = i, diff
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d elements of %v differ, the most at %v: got %v, want %v (difference %.3g, relative %.3g; rtol %g, atol %g)",
		ErrMismatch, count, len(wants), want, index(worst, want.Shape), got[worst], wants[worst],
		worstDiff, worstDiff/math.Abs(wants[worst]), tol.RTol, tol.ATol)
}

// index turns a flat position into coordinates.
func index(flat int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = flat % shape[d]
		flat /= shape[d]
	}
	return out
}
