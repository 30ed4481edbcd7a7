package main

import (
	"strings"
	"testing"
)

// A pole that is pushed at random stands for 22 steps. Players run beside the learner, so no two runs
// are the same; this many steps give 180 to 450.
func TestRun(t *testing.T) {
	var out strings.Builder
	score, err := run(t.Context(), &out, 2500)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if score < 60 {
		t.Errorf("the pole stands for %.0f steps, want 60", score)
	}
}
