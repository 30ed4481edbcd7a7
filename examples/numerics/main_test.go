package main

import (
	"context"
	"math"
	"testing"

	"github.com/loris-ml/loris"
)

// Each result is near what is known of it.
func TestResults(t *testing.T) {
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	m := session.With(loris.As(loris.F64))
	for name, c := range map[string]struct {
		compute      func(ctx context.Context, m loris.Maker, n int) (a, b float64, err error)
		n            int
		mostA, mostB float64
		mostBOfA     float64
	}{
		"orbit, its end and its energy":                {orbit, 2000, 1e-8, 1e-10, 1},
		"errors of measured and of filtered positions": {track, 500, 2, 1, 0.6},
		"gradient at the minimum, products":            {minimum, 100, 1e-10, 1e4, math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, err := c.compute(t.Context(), m, c.n)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%g, %g", a, b)
			if !(a <= c.mostA && b <= c.mostB && b <= a*c.mostBOfA) {
				t.Errorf("%g and %g, want at most %g and %g, and the second at most %g times the first", a, b, c.mostA, c.mostB, c.mostBOfA)
			}
		})
	}
}
