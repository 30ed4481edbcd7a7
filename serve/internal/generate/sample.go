package generate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// sampler draws tokens by their logits.
type sampler struct {
	temperature float64
	topK        int
	topP        float64
	random      *rand.Rand
	candidates  []candidate
}

type candidate struct {
	token  int64
	weight float64 // the logit, and then its exponential
}

// draw returns a token; no logits, and NaN among them, are errors.
func (s *sampler) draw(logits []float64) (int64, error) {
	if len(logits) == 0 {
		return 0, inference.Errorf(inference.Internal, "the model gives no logits")
	}
	best := 0
	for i, v := range logits {
		if math.IsNaN(v) {
			return 0, inference.Errorf(inference.Internal, "the model's logit of token %d is NaN", i)
		}
		if v > logits[best] {
			best = i
		}
	}
	if s.temperature == 0 || math.IsInf(logits[best], 0) {
		return int64(best), nil
	}
	all := s.candidates[:0]
	for i, v := range logits {
		all = append(all, candidate{int64(i), v})
	}
	s.candidates = all
	if s.topK > 0 || (s.topP > 0 && s.topP < 1) {
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
		if s.topK > 0 && s.topK < len(all) {
			all = all[:s.topK]
		}
	}
	total := 0.0
	for i := range all {
		all[i].weight = math.Exp((all[i].weight - logits[best]) / s.temperature)
		total += all[i].weight
	}
	if s.topP > 0 && s.topP < 1 { // the fewest that sum to p, or more
		sum := 0.0
		for i := range all {
			if sum += all[i].weight; sum >= s.topP*total {
				all, total = all[:i+1], sum
				break
			}
		}
	}
	at := s.random.Float64() * total
	for _, c := range all {
		if at -= c.weight; at < 0 {
			return c.token, nil
		}
	}
	return int64(best), nil // of rounding
}
