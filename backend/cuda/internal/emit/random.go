package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// Random is uniform, normal or randint, with the streams of package philox. Its
// operands are dst, which is dense and aligned to 16 bytes, and the i64 seed.
type Random struct {
	Op    ir.Op
	DType ir.DType
	N     int
	// Offset is the op's.
	Offset int64
	// Low and High bound integers: Low ≤ x < High.
	Low, High int64
}

// Plan returns how it is launched.
func (g *Random) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if g.N == 0 {
		return &r.Plan
	}
	how, per := "Normal", 2
	switch {
	case g.Op == aten.Randint:
		how = "Integers"
	case g.Op == aten.Uniform && g.DType == ir.F64:
		how = "Uniform64"
	case g.Op == aten.Uniform:
		how, per = "Uniform32", 4
	}
	s := (&slots{}).at(0, 0).at(1, 0)
	s.words = append(s.words, uint64(g.Offset), uint64(g.N), uint64(g.Low), uint64(g.High-g.Low))
	r.smallEach(fmt.Sprintf("random<%s, %s>", cxx.Stored(g.DType), how), "RandomFrame", s, ceil(g.N, per))
	return &r.Plan
}
