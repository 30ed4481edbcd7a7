package data

import "math/rand/v2"

// Permutation returns the numbers from 0 to n−1 in a random order: a Fisher–Yates shuffle that for
// i from n−1 down to 1 swaps item i with item j = r mod (i+1), where r are the successive outputs of
// the SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014) from the state seed. The definition is simple enough to be repeated elsewhere, and
// does not change.
func Permutation(n int, seed uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := splitMix(&seed) % uint64(i+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// splitMix advances a SplitMix64 generator.
func splitMix(state *uint64) uint64 {
	*state += 0x9E3779B97F4A7C15
	z := *state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// generator is a random number generator for one sample after another.
type generator struct {
	pcg  rand.PCG
	rand *rand.Rand
}

func newGenerator() *generator {
	g := &generator{}
	g.rand = rand.New(&g.pcg)
	return g
}

// of seeds the generator for a sample of an epoch.
func (g *generator) of(seed, epoch uint64, sample int) *rand.Rand {
	s := seed
	a := splitMix(&s) ^ epoch
	b := splitMix(&a) ^ uint64(sample)
	g.pcg.Seed(splitMix(&b), splitMix(&b))
	return g.rand
}
