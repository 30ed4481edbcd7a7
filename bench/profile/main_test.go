package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func settingsOf(t *testing.T, args ...string) settings {
	t.Helper()
	s, err := parse(append([]string{"--runs", "3", "--threads", "1", "--vectors", "4096"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "cpu.out")
	var w strings.Builder
	if err := run(t.Context(), &w, settingsOf(t, "--cpuprofile", out, "mlp-step")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mlp-step, 1 threads", "matmul", "workloads/mlp.go:", "outside of kernels"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	if f, err := os.Stat(out); err != nil || f.Size() == 0 {
		t.Errorf("the CPU profile: %v, %v", f, err)
	}
}

func TestJSON(t *testing.T) {
	var w strings.Builder
	if err := run(t.Context(), &w, settingsOf(t, "--json", "matmul-256")); err != nil {
		t.Fatal(err)
	}
	var list []kernel
	if err := json.Unmarshal([]byte(w.String()), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, w.String())
	}
	if k := list[0]; k.Name != "matmul" || k.Calls != 1 || k.FLOP != 2*256*256*256 || k.Bytes != 3*4*256*256 || k.Nanos <= 0 {
		t.Errorf("%+v", k)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range [][]string{{}, {"zebra"}, {"matmul-256", "softmax"}, {"--runs", "0", "softmax"}, {"matmul"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]string{
		"add+add+add+tanh": "add×3+tanh", "matmul": "matmul", strings.Repeat("ab+cd+", 30) + "x": "ab+cd+ab+cd+ab+cd+ab+cd+ab+cd+ab+cd+ab+cd+ab+cd+ab+cd+a…",
	} {
		if got := short(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 12_345: "12.3k", 7_000_000: "7M"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
