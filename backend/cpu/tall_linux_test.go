package cpu

import (
	"fmt"
	"testing"
)

// TestLinesWholeInPieces holds lines of which a call has a part against the reference, in buffers behind which there is
// nothing.
func TestLinesWholeInPieces(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		var x []float64
		for i := range 701 * n {
			x = append(x, float64(i%251)-100)
		}
		b := New()
		b.tune.piece = 64
		b.mem.Guard()
		sameAsRef(t, b, fmt.Sprintf(`program @p {
			%%x = parameter "x" : i16[701,%d]
			return permute(div(cast(%%x, f32), 32768.0), [1,0])
		}`, n), 0, x)
	}
}
