package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain is the command in the processes that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--once" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "cpu.out")
	s, err := parse([]string{"--sizes", "2", "--tokens", "3", "--run", "^gpt|decode", "--cpuprofile", out})
	if err != nil {
		t.Fatal(err)
	}
	var w strings.Builder
	if err := run(t.Context(), &w, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gpt-compiled", "gpt-train", "decode 3 tokens: growing cache "} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	if f, err := os.Stat(out); err != nil || f.Size() == 0 {
		t.Errorf("the CPU profile: %v, %v", f, err)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range [][]string{{"gpt"}, {"--sizes", "1"}, {"--tokens", "0"}, {"--run", "("}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
