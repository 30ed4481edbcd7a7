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
	for _, d := range [][3]int{{1, 1, 1}, {3, 0, 5}, {13, 1100, 40}, {12, 2, 32}, {13, 7, 33}, {25, 64, 70}, {5, 33, 16}, {24, 523, 49}, {36, 43, 80}} {
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
			f := FormOf[T](kn)
			a, b := make([]uint32, f.PackedLen(m, k, kn.MR)), make([]uint32, f.PackedLen(n, k, kn.NR))
			for _, s := range [][]uint32{a, b} {
				for i := range s {
					s[i] = 0xdeadbeef
				}
			}
			Pack(f, a, x, kn.MR, m, k, 0, aStep, aK, 0, rows)
			Pack(f, b, y, kn.NR, n, k, 0, bStep, bK, 0, cols)
			got := make([]T, m*n)
			Mul(kn, Product{Form: f, M: m, N: n, K: k}, used(), got, a, b, nil, 0, rows, 0, cols)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v, turned %v: element %d is %d, want %d", d, turned, i, got[i], want[i])
				}
			}
		}
	}
}

// TestMulWide compares sums of 32 bits of products of bytes with those in int32.
func TestMulWide(t *testing.T) {
	for _, kn := range append(native, portable) {
		t.Run(kn.name, func(t *testing.T) {
			t.Run("i8", func(t *testing.T) { checkWide[int8](t, kn) })
			t.Run("u8", func(t *testing.T) { checkWide[uint8](t, kn) })
		})
	}
}

func checkWide[T int8 | uint8](t *testing.T, kn *Kernel) {
	rng := rand.New(rand.NewPCG(7, 9))
	f := FormOf[T](kn)
	least := T(1)
	least <<= 7
	for _, d := range [][3]int{{1, 1, 1}, {13, 7, 33}, {25, 64, 70}, {5, 3, 16}, {7, 0, 5}, {30, 1302, 40}, {13, 261, 49}, {12, 8, 48}} {
		m, k, n := d[0], d[1], d[2]
		x, y := make([]T, m*k), make([]int8, k*n)
		for i := range x {
			x[i] = T(rng.Uint32())
		}
		for i := range y {
			y[i] = int8(rng.Uint32())
		}
		if k > 1 { // the largest sums
			for p := range k {
				x[p], y[p*n] = least, -128
			}
		}
		a, b := make([]uint32, f.PackedLen(m, k, kn.MR)), make([]uint32, f.PackedLen(n, k, kn.NR))
		rows, cols := (m+kn.MR-1)/kn.MR, (n+kn.NR-1)/kn.NR
		p := Product{Form: f, M: m, N: n, K: k, Signed: least < 0}
		Pack(f, b, y, kn.NR, n, k, 0, 1, n, 0, cols)
		var excess []int32
		if p.Biased() {
			PackBiased(a, x, kn.MR, m, k, 0, k, 1, 0, rows)
			excess = make([]int32, cols*kn.NR)
			kn.Excess(excess, b, f.Words(k), 0, cols)
		} else {
			Pack(f, a, x, kn.MR, m, k, 0, k, 1, 0, rows)
		}
		got := make([]int32, m*n)
		Mul(kn, p, used(), got, a, b, excess, 0, rows, 0, cols)
		for i, v := range got {
			var want int32
			for q := range k {
				want += int32(x[i/n*k+q]) * int32(y[q*n+i%n])
			}
			if v != want {
				t.Fatalf("%v: element %d is %d, want %d", d, i, v, want)
			}
		}
	}
}

// used returns the memory of a tile that was used before.
func used() *Tile {
	tile := new(Tile)
	for i := range tile {
		tile[i] = -7
	}
	return tile
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
	f := FormOf[T](kn)
	p, q := make([]uint32, f.PackedLen(n, n, kn.MR)), make([]uint32, f.PackedLen(n, n, kn.NR))
	rows, cols := (n+kn.MR-1)/kn.MR, (n+kn.NR-1)/kn.NR
	for b.Loop() {
		Pack(f, p, x, kn.MR, n, n, 0, n, 1, 0, rows)
		Pack(f, q, x, kn.NR, n, n, 0, 1, n, 0, cols)
		Mul(kn, Product{Form: f, M: n, N: n, K: n}, new(Tile), c, p, q, nil, 0, rows, 0, cols)
	}
	b.ReportMetric(2*n*n*n*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
}
