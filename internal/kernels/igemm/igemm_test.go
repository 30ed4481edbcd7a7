package igemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestMul compares each kernel with sums in the type itself, over sizes that
// fill panels and do not, strided both ways.
func TestMul(t *testing.T) {
	for _, kn := range append(native, portable) {
		t.Run(kn.name, func(t *testing.T) {
			t.Run("i8", func(t *testing.T) { checkMul[int8](t, kn) })
			t.Run("u8", func(t *testing.T) { checkMul[uint8](t, kn) })
			t.Run("i16", func(t *testing.T) { checkMul[int16](t, kn) })
			t.Run("i32", func(t *testing.T) { checkMul[int32](t, kn) })
		})
	}
}

func checkMul[T Integer](t *testing.T, kn *Kernel) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, d := range [][3]int{{1, 1, 1}, {12, 2, 32}, {13, 7, 33}, {25, 64, 70}, {5, 33, 16}} {
		m, k, n := d[0], d[1], d[2]
		x, y := make([]T, m*k), make([]T, k*n)
		for _, s := range [][]T{x, y} {
			for i := range s {
				s[i] = T(rng.Uint32()) // over the whole range: sums wrap around
			}
		}
		for _, turned := range []bool{false, true} {
			aStep, aK, bStep, bK := k, 1, 1, n
			if turned {
				aStep, aK, bStep, bK = 1, m, k, 1
			}
			want := make([]T, m*n)
			for i := range m {
				for j := range n {
					for p := range k {
						want[i*n+j] += x[i*aStep+p*aK] * y[j*bStep+p*bK]
					}
				}
			}
			rows, cols := (m+kn.MR-1)/kn.MR, (n+kn.NR-1)/kn.NR
			a, b := make([]uint32, PackedLen[T](m, k, kn.MR)), make([]uint32, PackedLen[T](n, k, kn.NR))
			for _, s := range [][]uint32{a, b} {
				for i := range s {
					s[i] = 0xdeadbeef
				}
			}
			Pack(a, x, kn.MR, m, k, 0, aStep, aK, 0, rows)
			Pack(b, y, kn.NR, n, k, 0, bStep, bK, 0, cols)
			got := make([]T, m*n)
			Mul(kn, got, a, b, m, n, k, 0, rows, 0, cols)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v, turned %v: element %d is %d, want %d", d, turned, i, got[i], want[i])
				}
			}
		}
	}
}

func BenchmarkMul(b *testing.B) {
	for _, kn := range append(native, portable) {
		b.Run(fmt.Sprint("i8/", kn.name), func(b *testing.B) { benchMul[int8](b, kn) })
		b.Run(fmt.Sprint("i32/", kn.name), func(b *testing.B) { benchMul[int32](b, kn) })
	}
}

func benchMul[T Integer](b *testing.B, kn *Kernel) {
	const n = 256
	x, c := make([]T, n*n), make([]T, n*n)
	p, q := make([]uint32, PackedLen[T](n, n, kn.MR)), make([]uint32, PackedLen[T](n, n, kn.NR))
	rows, cols := (n+kn.MR-1)/kn.MR, (n+kn.NR-1)/kn.NR
	for b.Loop() {
		Pack(p, x, kn.MR, n, n, 0, n, 1, 0, rows)
		Pack(q, x, kn.NR, n, n, 0, 1, n, 0, cols)
		Mul(kn, c, p, q, n, n, n, 0, rows, 0, cols)
	}
	b.ReportMetric(2*n*n*n*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
}
