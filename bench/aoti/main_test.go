package main

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s, err := parse([]string{"--threads", "2,4", "--turn", "50ms", "a.pt2", "b.pt2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.threads) != 2 || s.threads[1] != 4 || s.turn != 50*time.Millisecond || len(s.packages) != 2 {
		t.Errorf("%+v", s)
	}
	for _, bad := range [][]string{{}, {"--threads", "0", "a.pt2"}, {"--threads", "x", "a.pt2"}, {"--rounds", "0", "a.pt2"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestTable(t *testing.T) {
	var w strings.Builder
	if err := table(&w, "9.9", []row{{Name: "mlp", Threads: 2, Loris: 8_123, CPP: 16_246, Python: 81_230, Ratio: 0.5, ToPy: 0.1, Load: 5e6, CPPLoad: 12_345_678}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PyTorch 9.9", "mlp", "8.12µs", "16.2µs", "0.50", "0.10", "12.3ms"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	if m := median([]int64{5, 1, 9}); m != 5 {
		t.Errorf("the median is %d", m)
	}
}
