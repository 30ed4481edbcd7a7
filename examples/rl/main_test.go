package main

import "testing"

// A pole that is pushed at random stands for 22 steps. Players run beside the learner, so no two runs
// are the same; this many steps give 180 to 450.
func TestRun(t *testing.T) {
	score, err := run(t.Context(), 2500)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the pole stands for %.0f steps", score)
	if score < 60 {
		t.Errorf("the pole stands for %.0f steps, want 60", score)
	}
}
