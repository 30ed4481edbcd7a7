package main

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestScale(t *testing.T) {
	s, err := parse([]string{"--threads", "3,1", "--only", "^(softmax|digits-compiled)$", "--time", "10ms", "--vectors", "4096"})
	if err != nil {
		t.Fatal(err)
	}
	procs := runtime.GOMAXPROCS(0)
	var w strings.Builder
	if err := scale(t.Context(), &w, s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(w.String(), "softmax"); n != 2 || strings.Count(w.String(), "digits-compiled") != 2 {
		t.Errorf("%d lines of softmax in\n%s", n, w.String())
	}
	if n := runtime.GOMAXPROCS(0); n != procs {
		t.Errorf("GOMAXPROCS is left at %d", n)
	}
}

// The shares of a sample are of all threads' time.
func TestShares(t *testing.T) {
	// 10 ms on 4 threads: 8 ms in steps, of which 6 in loops that were cut for 4, 4 and 2 threads.
	ms := time.Millisecond
	x := sample{threads: 4, wall: 10 * ms, steps: 8 * ms, loops: 6 * ms, cut: (4*2 + 4*2 + 2*2) * ms, busy: 15 * ms, late: ms}
	h := x.shares()
	want := shares{work: 17. / 40, single: (3*2 + 4.) / 40, late: 1. / 40, imbalance: 4. / 40, outside: 2. / 10}
	for i, pair := range [][2]float64{{h.work, want.work}, {h.single, want.single}, {h.late, want.late}, {h.imbalance, want.imbalance}, {h.outside, want.outside}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("share %d is %v, want %v", i, pair[0], pair[1])
		}
	}
	if sum := h.work + h.single + h.late + h.imbalance + h.outside; math.Abs(sum-1) > 1e-12 {
		t.Errorf("the shares add up to %v", sum)
	}
}

func TestContend(t *testing.T) {
	s, err := parse([]string{"--forks", "4", "--procs", "2", "--only", "^$", "--time", "20ms", "--top", "3"})
	if err != nil {
		t.Fatal(err)
	}
	var w strings.Builder
	if err := contend(t.Context(), &w, s); err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		if !strings.Contains(w.String(), way.name+": 4 forks on 2 processors, ") {
			t.Errorf("no %s in\n%s", way.name, w.String())
		}
	}
	if !strings.Contains(w.String(), "block ") || !strings.Contains(w.String(), "internal/executor.") {
		t.Errorf("no place where a fork waits for its result in\n%s", w.String())
	}
}

func TestParse(t *testing.T) {
	for _, bad := range [][]string{{"softmax"}, {"--threads", "0"}, {"--forks", "-1"}, {"--procs", "0"}, {"--time", "0s"}, {"--only", "("}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
