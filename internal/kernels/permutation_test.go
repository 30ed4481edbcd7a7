package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Permutations are the stable order of the upper 53 bits of words, also where many words are equal in the bits that
// they are sorted by first.
func TestPermute(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 7, 64, 255, 1000, 2047, 2048, 2049, 5000, 100003} {
		for name, draw := range map[string]func() uint64{
			"random":           rng.Uint64,
			"equal":            func() uint64 { return 5 << 40 },
			"equal above":      func() uint64 { return rng.Uint64N(4)<<62 | rng.Uint64N(8)<<10 },
			"equal in the end": func() uint64 { return rng.Uint64N(3)<<62 | rng.Uint64()&(1<<11-1) },
		} {
			if name == "equal above" && n > 5000 {
				continue
			}
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				words := make([]uint64, n)
				want := make([]int64, n)
				for i := range words {
					words[i], want[i] = draw(), int64(i)
				}
				slices.SortStableFunc(want, func(a, b int64) int { return int(int64(words[a]>>11) - int64(words[b]>>11)) })
				got := make([]int64, n)
				Permute(got, slices.Clone(words), make([]uint64, n), func(i int) uint64 { return words[i] })
				if !slices.Equal(got, want) {
					t.Fatal("the order is another")
				}
			})
		}
	}
}

func BenchmarkPermute(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{64, 1000, 100003, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			from, words, spare, dst := make([]uint64, n), make([]uint64, n), make([]uint64, n), make([]int64, n)
			for i := range from {
				from[i] = rng.Uint64()
			}
			for b.Loop() {
				copy(words, from)
				Permute(dst, words, spare, func(i int) uint64 { return from[i] })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/element")
		})
	}
}
