package importer

import (
	"context"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// ROIAlign is a use of the op _roi_align.
type ROIAlign struct {
	Scale         float64
	Height, Width int
	// Ratio is the number of samples along a side of a bin; at 0 or below it is that of the bin's pixels.
	Ratio   int
	Aligned bool
	Mode    string // "avg" or "max"
}

// Record records the op on images x and regions [K, 5]. Where the regions decide how many samples a bin
// has, it waits for the largest number, so that there is room for no more; a nil context waits for
// nothing and has room for as many as the image has.
func (r *ROIAlign) Record(ctx context.Context, s *loris.Session, x, regions *loris.Tensor) (*loris.Tensor, error) {
	most := 0
	if r.Ratio <= 0 && ctx != nil && regions.Rank() == 2 && regions.Dim(0) > 0 && regions.Dim(1) == 5 {
		side := func(lo, bins int) *loris.Tensor {
			return regions.Narrow(1, lo+2, 1).Sub(regions.Narrow(1, lo, 1)).Mul(r.Scale).Div(bins).Ceil().Amax()
		}
		n, err := side(1, r.Width).Maximum(side(2, r.Height)).Item(ctx)
		if err != nil {
			return nil, err
		}
		if n > maxSamples || math.IsNaN(n) {
			return nil, ir.NewOpError("roi_align", ir.ErrArg, nil, "a region asks for %v samples along the side of a bin, at most %d are taken", n, maxSamples)
		}
		most = max(int(n), 1)
	}
	op, _ := ir.Lookup("_roi_align")
	pos := []any{x, regions, r.Scale, r.Height, r.Width, r.Ratio, r.Aligned, most, r.Mode}
	return Call(s, ir.Device{}, op, pos)[0], nil
}

// maxSamples is more than the side of any image has pixels for a bin.
const maxSamples = 1 << 12
