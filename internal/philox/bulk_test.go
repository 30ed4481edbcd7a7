package philox

import (
	"fmt"
	"math"
	"testing"
)

// apart is how many units in the last place of b lie between a and b.
func apart(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a-b) / (math.Nextafter(math.Abs(b), math.Inf(1)) - math.Abs(b))
}

// Bulk functions give the elements that single ones do, from any element on, and write nothing
// beside them: uniform numbers and integers exactly, normal ones within some units.
func TestBulk(t *testing.T) {
	const seed, offset = 0x9e3779b97f4a7c15, 0xfedcba9876543210
	eachLevel(t, func(t *testing.T) {
		for _, start := range []int64{0, 1, 2, 3, 1 << 20, 2<<32 - 70, -3, math.MaxInt64 - 1000} {
			for _, n := range []int{0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 600} {
				t.Run(fmt.Sprint(start, n), func(t *testing.T) { checkBulk(t, seed, offset, start, n) })
			}
		}
	})
}

func checkBulk(t *testing.T, seed, offset uint64, start int64, n int) {
	uniform, normal, narrow, ints := make([]float64, n+2), make([]float64, n+2), make([]float32, n+2), make([]int64, n+2)
	words := make([]uint64, n+2)
	for _, i := range []int{0, n + 1} {
		uniform[i], normal[i], narrow[i], ints[i], words[i] = 7, 7, 7, 7, 7
	}
	Uint64s(words[1:n+1], seed, offset, start)
	UniformF64(uniform[1:n+1], seed, offset, start)
	NormalF64(normal[1:n+1], seed, offset, start)
	NormalF32(narrow[1:n+1], seed, offset, start)
	IntsBelow(ints[1:n+1], seed, offset, start, 1000003, -5)
	for i := range n {
		at := start + int64(i)
		if got, want := uniform[i+1], Float64(seed, offset, at); got != want {
			t.Fatalf("uniform %d: %v, want %v", i, got, want)
		}
		if got, want := words[i+1], Uint64(seed, offset, at); got != want {
			t.Fatalf("word %d: %v, want %v", i, got, want)
		}
		if got, want := ints[i+1], int64(Uint64n(seed, offset, at, 1000003))-5; got != want {
			t.Fatalf("integer %d: %v, want %v", i, got, want)
		}
		want := NormFloat64(seed, offset, at)
		if got := normal[i+1]; apart(got, want) > 4 {
			t.Fatalf("normal %d: %v, want %v: %v units apart", i, got, want, apart(got, want))
		}
		if got := narrow[i+1]; got != float32(normal[i+1]) {
			t.Fatalf("normal %d of f32: %v, want %v", i, got, float32(normal[i+1]))
		}
	}
	for _, i := range []int{0, n + 1} {
		if uniform[i] != 7 || normal[i] != 7 || narrow[i] != 7 || ints[i] != 7 || words[i] != 7 {
			t.Fatalf("%d elements from %d: their neighbours are written", n, start)
		}
	}
}

// Words at the ends of what there is become the normal numbers that package math gives: the largest
// radius, none, and angles on the axes and next to them.
func TestNormalOfSpecialWords(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		edge := []uint64{0, 1 << 11, 2 << 11, 3 << 11, 1<<63 - 1<<11, 1 << 63, 1<<63 + 1<<11, math.MaxUint64, math.MaxUint64 - 1<<11}
		for k := uint64(1); k < 8; k++ { // eighths of a turn
			edge = append(edge, k<<61, k<<61-1<<11, k<<61+1<<11)
		}
		for _, a := range edge {
			for _, b := range edge {
				var w words
				w[0], w[1] = a, b
				var z [pieceWords]float64
				normals64(&z, &w, 2)
				z0, z1 := boxMuller(a, b)
				// At whole quarters of a turn package math is off by some units, too.
				if apart(z[0], z0) > 16 || apart(z[1], z1) > 16 {
					t.Errorf("%#x, %#x: %v and %v, want %v and %v", a, b, z[0], z[1], z0, z1)
				}
			}
		}
	})
}

// Elements of any start are made without memory: what is allocated for each piece takes longer than its elements.
func TestNothingIsAllocated(t *testing.T) {
	doubles, singles, ints := make([]float64, 1000), make([]float32, 1000), make([]int32, 1000)
	eachLevel(t, func(t *testing.T) {
		if n := testing.AllocsPerRun(10, func() {
			UniformF64(doubles, 1, 2, 3)
			NormalF64(doubles, 1, 2, 3)
			NormalF32(singles, 1, 2, 3)
			IntsBelow(ints, 1, 2, 3, 77, -5)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
