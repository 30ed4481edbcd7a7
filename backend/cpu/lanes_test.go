package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSumsOfCasts holds sums of what becomes f32 beside them against those of f32s, bit by bit: elements of 64 bits in a
// kernel must not change the order of a sum.
func TestSumsOfCasts(t *testing.T) {
	if be := New(); be.engine == nil || !be.engine.byLanes {
		t.Skip("kernels of other instruction sets are not kept apart")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, op := range []string{"softmax(%y, 1)", "sum(%y, [1])", "logsumexp(%y, [1])", "sum(%y, [0,1])", "sum(%y, [0])"} {
		for cols := 1; cols <= 40; cols++ {
			var narrow, wide []byte
			for range 3 * cols {
				v := float32(r.NormFloat64())
				narrow = binary.LittleEndian.AppendUint32(narrow, math.Float32bits(v))
				wide = binary.LittleEndian.AppendUint64(wide, math.Float64bits(float64(v)))
			}
			got := optimizedOutputs(t, New(), fmt.Sprintf("program @p {\n %%x = parameter \"x\" : f64[3,%d]\n %%y = cast(%%x, f32)\n return %s\n}", cols, op), wide)[0]
			want := optimizedOutputs(t, New(), fmt.Sprintf("program @p {\n %%y = parameter \"y\" : f32[3,%d]\n return %s\n}", cols, op), narrow)[0]
			if !bytes.Equal(got, want) {
				t.Fatalf("%s of %d columns: %x, want %x", op, cols, got, want)
			}
		}
	}
}
