package generate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDraw has logits that models should not give, and the choice that temperature 0 makes.
func TestDraw(t *testing.T) {
	for name, test := range map[string]struct {
		logits []float64
		want   int64
		fails  bool
	}{
		"none":     {fails: true},
		"NaN":      {logits: []float64{1, math.NaN()}, fails: true},
		"infinite": {logits: []float64{1, math.Inf(1), 2}, want: 1},
		"greatest": {logits: []float64{-3, -1, -2}, want: 1},
	} {
		for _, temperature := range []float64{0, 1e-9} {
			s := sampler{temperature: temperature, random: rand.New(rand.NewPCG(1, 2))}
			got, err := s.draw(test.logits)
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("%s at %v: %d, %v", name, temperature, got, err)
			}
		}
	}
}
