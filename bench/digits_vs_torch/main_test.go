package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loris-ml/loris/examples/digits/train"
	"github.com/loris-ml/loris/safetensors"
)

func quick() settings {
	c := train.Defaults()
	c.Batch, c.Hidden = 600, []int{8}
	return settings{Config: c, device: "cpu", steps: 4, limit: 1e-4}
}

// losses trains on a device and leaves the files that PyTorch gets in folder.
func losses(t *testing.T, s settings, folder string) []float64 {
	t.Helper()
	data, _, err := train.Data()
	if err != nil {
		t.Fatal(err)
	}
	batches := take(data, s)
	if got := []int{batches[0].Len(), batches[2].Len(), batches[3].Len()}; got[0] != 600 || got[1] != 237 || got[2] != 600 {
		t.Errorf("batches 0, 2 and 3 of %v images", got)
	}
	out, err := trainLoris(t.Context(), folder, batches, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeBatches(filepath.Join(folder, "batches.safetensors"), batches); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDevicesAgree(t *testing.T) {
	s := quick()
	folder := t.TempDir()
	cpu := losses(t, s, folder)
	s.device = "ref"
	ref := losses(t, s, t.TempDir())
	if err := compare(io.Discard, cpu, ref, 1e-5); err != nil {
		t.Errorf("%v: %v on cpu, %v on ref", err, cpu, ref)
	}
	if cpu[3] >= cpu[0] {
		t.Errorf("nothing is learnt: losses %v", cpu)
	}
	for name, want := range map[string]string{"weights": "0.weight", "batches": "x3"} {
		f, err := safetensors.Open(filepath.Join(folder, name+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := f.Lookup(want); !ok {
			t.Errorf("%s has no %s: %v", name, want, f.Tensors())
		}
		f.Close()
	}
}

func TestCompare(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		ours, theirs []float64
		want         string
	}{
		{[]float64{1, 2}, []float64{1.00001, 2}, ""},
		{[]float64{1, 2}, []float64{1, 2.001}, "differ by 1.00e-03"},
		{[]float64{nan, 2}, []float64{1, 2}, "differ by NaN"},
		{[]float64{1, 2}, []float64{nan, 2}, "differ by NaN"},
		{[]float64{1}, []float64{1, 2}, "1 losses and 2 of PyTorch"},
	} {
		err := compare(io.Discard, c.ours, c.theirs, 1e-4)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v and %v: %v, want %q", c.ours, c.theirs, err, c.want)
		}
	}
}

// TestRun has a script in place of Python that answers as compare.py does.
func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for Python is a shell script")
	}
	s := quick()
	right, err := json.Marshal(map[string]any{"torch": "0", "losses": losses(t, s, t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		"echo '" + string(right) + "'":                 "",
		`echo '{"torch":"0","losses":[1,2,3,4]}'`:      "the losses differ by",
		`test -f "$2/weights.safetensors" && echo bad`: "what compare.py printed",
		"exit 3": "exit status 3",
	} {
		s.python = filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(s.python, []byte("#!/bin/sh\n"+answer+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run(t.Context(), &out, s)
		if want == "" && (err != nil || !strings.Contains(out.String(), "largest difference 0.00e+00")) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q\n%s", answer, err, want, out.String())
		}
	}
}
