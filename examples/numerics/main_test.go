package main

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

func TestRun(t *testing.T) {
	session, err := loris.New(loris.WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	var out strings.Builder
	f, err := run(t.Context(), &out, session.With(loris.As(loris.F64)))
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, c := range []struct {
		what      string
		got, most float64
	}{
		{"distance after a revolution", f.closure, 1e-8},
		{"energy", f.drift, 1e-10},
		{"filtered positions over measured ones", f.filtered / f.measured, 0.6},
		{"gradient", f.gradient, 1e-10},
	} {
		if !(c.got <= c.most) {
			t.Errorf("%s: %g, want at most %g", c.what, c.got, c.most)
		}
	}
}
