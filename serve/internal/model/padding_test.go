package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// The encoder takes a batch of sequences and a mask that is true for what is to be ignored, so what
// it computes of a sequence does not depend on how far it is filled up.
func TestPaddedEncoder(t *testing.T) {
	padded := openFixture(t, "encoder", Options{InputNames: []string{"x", "pad"}, Padding: &Padding{
		Buckets: []int64{16, 4, 9}, Mask: "pad", Values: map[string]float64{"pad": 1, "x": 3},
	}})
	plain := openFixture(t, "encoder", Options{InputNames: []string{"x", "pad"}})
	if padded.Rows == 0 {
		t.Fatal(padded.Note)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var works []*Work
	var alone [][]float64
	for _, c := range []struct{ rows, length, bucket int64 }{{2, 9, 9}, {1, 3, 4}, {3, 5, 9}, {2, 6, 9}, {1, 16, 16}} {
		x := inference.Tensor{Name: "x", Datatype: inference.FP32, Shape: []int64{c.rows, c.length, 32}, Data: make([]byte, c.rows*c.length*32*4)}
		Randomise(x.Data, x.Datatype, r)
		mask := inference.Tensor{Name: "pad", Datatype: inference.Bool, Shape: []int64{c.rows, c.length}, Data: make([]byte, c.rows*c.length)}
		w, err := padded.Bind(&inference.Request{Inputs: []inference.Tensor{x}})
		if err != nil {
			t.Fatal(err)
		}
		if w.Padded != c.bucket || w.Length != c.length {
			t.Errorf("length %d was padded to %d, want %d", w.Length, w.Padded, c.bucket)
		}
		pw, err := plain.Bind(&inference.Request{Inputs: []inference.Tensor{x, mask}})
		if err != nil {
			t.Fatal(err)
		}
		want := runFloats(t, plain, pw)[0]
		alone = append(alone, runFloats(t, padded, w)[0])
		nearFloats(t, alone[len(alone)-1], want)
		if c.bucket == 9 {
			works = append(works, w)
		} else {
			alone = alone[:len(alone)-1]
		}
	}
	// Those of one bucket run together, and get the same bits as alone.
	for _, w := range works[1:] {
		if !Compatible(works[0], w) {
			t.Fatal("works of one bucket are not compatible")
		}
	}
	for i, got := range runFloats(t, padded, works...) {
		if !slices.Equal(got, alone[i]) {
			t.Errorf("work %d differs from its run alone", i)
		}
	}
	for want, in := range map[string][]inference.Tensor{
		"the largest bucket 16": {zeros("x", inference.FP32, 1, 17, 32)},
		`"x" missing`:           {zeros("pad", inference.Bool, 1, 4)},
		"dimension 1 is 5":      {zeros("x", inference.FP32, 1, 4, 32), zeros("pad", inference.Bool, 1, 5)},
		"expected shape":        {zeros("x", inference.FP32, 4, 32)},
	} {
		if _, err := padded.Bind(&inference.Request{Inputs: in}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func zeros(name string, d inference.Datatype, shape ...int64) inference.Tensor {
	n, _ := inference.NumElements(shape)
	return inference.Tensor{Name: name, Datatype: d, Shape: shape, Data: make([]byte, n*int64(d.Size()))}
}

func runFloats(t *testing.T, m *Model, works ...*Work) (all [][]float64) {
	t.Helper()
	r, err := m.Run(context.Background(), works...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for i := range works {
		out := r.Outputs[i][0]
		if n, _ := inference.NumElements(out.Shape); int(n)*4 != len(out.Data) {
			t.Fatalf("%d bytes for %v", len(out.Data), out.Shape)
		}
		all = append(all, elements.DecodeFloats(ir.F32, out.Data))
	}
	return all
}

func nearFloats(t *testing.T, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-5 {
			t.Fatalf("element %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// A program of fixed sizes takes shorter inputs, of which it sees the rest as the configured value.
func TestPaddedProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.lir")
	text := "program @p {\n  %x = parameter \"x\" : f32[2,3,2]\n  %m = parameter \"m\" : i64[2,3]\n  %0 = mul(%x, 2)\n  %1 = add(%m, 1)\n  return %0, %1\n}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Padding: &Padding{
		Inputs: map[string]int{"x": 1, "m": 1}, Outputs: map[string]int{"out0": 1}, Mask: "m", Values: map[string]float64{"x": -1},
	}}
	m, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w, err := m.Bind(&inference.Request{Inputs: []inference.Tensor{{Name: "x", Datatype: inference.FP32, Shape: []int64{1, 2, 2}, Data: elements.EncodeFloats(ir.F32, []float64{1, 2, 3, 4})}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	got := fmt.Sprint(r.Outputs[0][0].Shape, elements.DecodeFloats(ir.F32, r.Outputs[0][0].Data), r.Outputs[0][1].Shape, elements.DecodeInts(ir.I64, r.Outputs[0][1].Data))
	if want := "[1 2 2] [2 4 6 8] [1 3] [2 2 1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !m.Varies(0, 1) || m.Varies(0, 2) || m.Outputs[0].Shape[1] != -1 || m.Outputs[1].Shape[1] != 3 {
		t.Errorf("%v", m.Outputs)
	}
	for want, p := range map[string]Padding{
		"no size of the model varies": {Buckets: []int64{3}},
		"bucket 2":                    {Buckets: []int64{2}, Inputs: map[string]int{"x": 1}},
		`there is no input "y"`:       {Inputs: map[string]int{"y": 1}},
		"no dimension 3":              {Inputs: map[string]int{"x": 3}},
		`no dimension 0`:              {Inputs: map[string]int{"x": 0}},
		`there is no output "y"`:      {Inputs: map[string]int{"x": 1}, Outputs: map[string]int{"y": 1}},
		`the mask "m"`:                {Inputs: map[string]int{"x": 1}, Mask: "m"},
		`a value for "m"`:             {Inputs: map[string]int{"x": 1}, Values: map[string]float64{"m": 1}},
		"is no INT64":                 {Inputs: map[string]int{"m": 1}, Values: map[string]float64{"m": 0.5}},
	} {
		if m, err := Open(t.Context(), path, Options{Padding: &p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
			if err == nil {
				m.Close()
			}
		}
	}
}

func TestPaddingIsRefused(t *testing.T) {
	for name, want := range map[string]string{"dynamic_ranges": "another size varies", "mlp_2_6": "not known", "dynamic_batch": "no size of the model varies"} {
		m, err := Open(t.Context(), fixtures+name+".pt2", Options{Padding: &Padding{Buckets: []int64{8}}})
		if errors.Is(err, aoti.ErrNoLibraries) {
			t.Skip(err)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if err == nil {
			m.Close()
		}
	}
}
