//go:build amd64 && !noasm

package strided

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMovesAgree holds the loops of vectors against the portable ones, with sizes around whole vectors,
// and looks that nothing beyond is written.
func TestMovesAgree(t *testing.T) {
	testMoves[uint8](t)
	testMoves[uint16](t)
	checkReverse[uint32](t)
	checkReverse[uint64](t)
}

func testMoves[T uint8 | uint16](t *testing.T) {
	checkReverse[T](t)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, q := range [][2]int{{1, 1}, {7, 40}, {8, 16}, {8, 15}, {17, 33}, {64, 64}, {63, 49}, {9, 3}, {2, 16}, {3, 100}, {3, 16}, {3, 15}, {3, 48}, {5, 17}, {15, 70}} {
		rows, cols := q[0], q[1]
		width, step := cols+rng.IntN(3), rows+rng.IntN(3)
		if rows == 3 {
			step = 3
		}
		src := random[T](rng, (cols-1)*step+rows)
		run := func(with bool) []T {
			defer func(v bool) { vectors = v }(vectors)
			vectors = vectors && with
			dst := make([]T, rows*width+64)
			TransposeNarrow(dst, width, src, step, rows, cols)
			return dst
		}
		got, want := run(true), make([]T, rows*width+64)
		for k := range rows {
			for c := range cols {
				want[k*width+c] = src[k+c*step]
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(run(false), want) {
			t.Fatalf("transposing %d rows of %d elements of %T", rows, cols, src[0])
		}
	}
}

func checkReverse[T Bits](t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 3, 4, 31, 32, 33, 64, 100, 1000} {
		src := random[T](rng, n)
		want := slices.Clone(src)
		slices.Reverse(want)
		for _, with := range []bool{vectors, false} {
			func() {
				defer func(v bool) { vectors = v }(vectors)
				vectors = with
				dst := make([]T, n+64)
				Reverse(dst[:n], src)
				if !slices.Equal(dst[:n], want) || slices.ContainsFunc(dst[n:], func(x T) bool { return x != *new(T) }) {
					t.Fatalf("%d elements of %T in reverse, vectors %t", n, src[0], with)
				}
			}()
		}
	}
}

func random[T Bits](rng *rand.Rand, n int) []T {
	s := make([]T, n)
	b := bytesOf(s)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return s
}

// TestSecondsAgree holds Every, third and Spread against their meaning, and looks that what lies between and
// behind stays.
func TestSecondsAgree(t *testing.T) {
	checkSeconds[uint32](t)
	checkSeconds[uint64](t)
	checkSeconds[uint8](t)
	checkSeconds[uint16](t)
}

func checkSeconds[T Bits](t *testing.T) {
	t.Helper()
	defer func(v bool) { vectors = v }(vectors)
	rng := rand.New(rand.NewPCG(6, 7))
	for _, with := range []bool{vectors, false} {
		vectors = with
		for _, n := range []int{0, 1, 2, 4, 5, 8, 9, 16, 17, 100, 256, 257, 600} {
			thirds := random[T](rng, max(0, 3*n-2))
			one := make([]T, n+8)
			third(one[:n], thirds)
			for i, v := range one {
				if i < n && v != thirds[3*i] || i >= n && v != *new(T) {
					t.Fatalf("every third of %d of %T, vectors %t: element %d", n, v, with, i)
				}
			}
			wide, narrow := random[T](rng, max(0, 2*n-1)), random[T](rng, n)
			got := make([]T, n+8)
			Every(got[:n], wide)
			spread := slices.Clone(wide)
			Spread(spread, narrow)
			for i, v := range got {
				if i < n && v != wide[2*i] || i >= n && v != *new(T) {
					t.Fatalf("every second of %d of %T, vectors %t: element %d", n, narrow, with, i)
				}
			}
			for i, v := range spread {
				if i%2 == 0 && v != narrow[i/2] || i%2 == 1 && v != wide[i] {
					t.Fatalf("%d spread of %T, vectors %t: element %d", n, narrow, with, i)
				}
			}
		}
	}
}

// TestRunsWithoutVectors is TestShortRuns on a processor that has none.
func TestRunsWithoutVectors(t *testing.T) {
	defer func(v bool) { vectors = v }(vectors)
	vectors = false
	TestShortRuns(t)
}
