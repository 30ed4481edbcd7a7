package philox

import (
	"math"
	"testing"
)

// Every way to make uniform numbers gives those of the definition, from any
// element on, and writes nothing beside them.
func TestUniformBits(t *testing.T) {
	const seed, offset = 0x9e3779b97f4a7c15, 0xfedcba9876543210
	eachLevel(t, func(t *testing.T) {
		for _, start := range []int64{0, 1, 2, 3, 5, 1 << 20, 4<<32 - 70, -3, math.MaxInt64 - 100} {
			for _, n := range []int{0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 127, 128, 129, 163, 515} {
				for _, bits := range []int{1, 8, 11, 24} {
					dst := make([]float32, n+2)
					dst[0], dst[n+1] = 7, 7
					UniformBits(dst[1:n+1], seed, offset, start, bits)
					for i, got := range dst[1 : n+1] {
						if want := float32(FloatBits(seed, offset, start+int64(i), bits)); got != want {
							t.Fatalf("%d bits, element %d of %d from %d: %v, want %v", bits, i, n, start, got, want)
						}
					}
					if dst[0] != 7 || dst[n+1] != 7 {
						t.Fatalf("%d elements from %d: their neighbours are written", n, start)
					}
				}
			}
		}
	})
}
