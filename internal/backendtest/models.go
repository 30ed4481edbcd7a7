package backendtest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// buffers checks storage: what is uploaded comes back, copies are copies, and
// every byte is accounted for until its last reference is gone.
func (s *suite) buffers(t *testing.T) {
	hostmem.CheckLeaks(t)
	ctx := context.Background()
	before := s.b.BytesInUse(s.d)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range ir.DTypes() {
		for _, dims := range [][]int{{}, {0}, {3}, {2, 0}, {5, 129}} {
			x := random(rng, d, dims...)
			data := append([]byte(nil), x.data...)
			buf, err := s.b.Upload(ctx, x.shape, s.d, data)
			if err != nil {
				t.Fatalf("%v: %v", x.shape, err)
			}
			clear(data) // an upload copies
			if buf.Shape() != x.shape || buf.Device() != s.d {
				t.Errorf("%v on %v, want %v on %v", buf.Shape(), buf.Device(), x.shape, s.d)
			}
			buf.Retain()
			buf.Release()
			raw, err := buf.Bytes(ctx)
			if err != nil || !bytes.Equal(raw, x.data) {
				t.Errorf("%v: the data does not come back (%v)", x.shape, err)
			}
			if got := s.b.BytesInUse(s.d) - before; got < int64(len(x.data)) {
				t.Errorf("%v: %d bytes are in use", x.shape, got)
			}
			buf.Release()
			if got := s.b.BytesInUse(s.d); got != before {
				t.Errorf("%v: %d bytes are in use after its release, %d before", x.shape, got, before)
			}
		}
	}
}

// models checks what holds for every model, whatever it computes.
func (s *suite) models(t *testing.T) {
	t.Run("spec", s.spec)
	t.Run("returns", s.returns)
	t.Run("donation", s.donation)
	t.Run("repeated", s.repeated)
	t.Run("concurrent", s.concurrent)
	t.Run("deep", s.deep)
}

func (s *suite) spec(t *testing.T) {
	m := s.compile(t, s.negate(t, 3))
	want := ir.MakeShape(ir.F32, 3)
	sp := m.Spec()
	if len(sp.Inputs) != 1 || sp.Inputs[0] != (backend.Param{Name: "in0", Shape: want}) {
		t.Errorf("inputs %v", sp.Inputs)
	}
	if len(sp.Outputs) != 1 || sp.Outputs[0].Shape != want {
		t.Errorf("outputs %v", sp.Outputs)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// returns checks Programs that return parameters, one value twice, and views.
func (s *suite) returns(t *testing.T) {
	hostmem.CheckLeaks(t)
	ctx := context.Background()
	before := s.b.BytesInUse(s.d)
	x := input{ir.MakeShape(ir.F32, 2, 3), elements.EncodeFloats(ir.F32, []float64{1, 2, 3, 4, 5, 6})}
	for name, build := range map[string]func(b *ir.Builder, x []ir.Value) []ir.Value{
		"parameter": func(b *ir.Builder, x []ir.Value) []ir.Value { return []ir.Value{x[0]} },
		"twice": func(b *ir.Builder, x []ir.Value) []ir.Value {
			y := b.Neg(x[0])
			return []ir.Value{y, x[0], y, x[0]}
		},
		"view": func(b *ir.Builder, x []ir.Value) []ir.Value {
			return []ir.Value{b.Reshape(x[0], 6), b.Permute(x[0], 1, 0), b.Reshape(b.Neg(x[0]), 3, 2)}
		},
		"constant": func(b *ir.Builder, x []ir.Value) []ir.Value { return []ir.Value{b.Iota(4, ir.I32)} },
		"nothing":  func(b *ir.Builder, x []ir.Value) []ir.Value { return nil },
		"empty": func(b *ir.Builder, x []ir.Value) []ir.Value {
			return []ir.Value{b.Sum(b.Slice(x[0], 0, 2, 2, 1), []int{0}, false), b.Exp(b.Slice(x[0], 0, 2, 2, 1))}
		},
		"unused work": func(b *ir.Builder, x []ir.Value) []ir.Value {
			values, _ := b.Sort(x[0], 0, true)
			return []ir.Value{values}
		},
	} {
		p, data, err := record(name, []input{x}, build)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := ref.Eval(p, data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := s.run(ctx, p, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if msg := (&comparison{accuracy: within(4)}).diff(p, got, want); msg != "" {
			t.Errorf("%s: %s", name, msg)
		}
		if got := s.b.BytesInUse(s.d); got != before {
			t.Errorf("%s: %d bytes are in use after the run, %d before", name, got, before)
		}
	}
}

// donation runs a model that may overwrite its inputs, with and without leave,
// and with an input that someone else still holds.
func (s *suite) donation(t *testing.T) {
	hostmem.CheckLeaks(t)
	ctx := context.Background()
	before := s.b.BytesInUse(s.d)
	x := input{ir.MakeShape(ir.F32, 4), elements.EncodeFloats(ir.F32, []float64{1, 2, 3, 4})}
	y := input{ir.MakeShape(ir.F32, 4), elements.EncodeFloats(ir.F32, []float64{5, 6, 7, 8})}
	p, data, err := record("donation", []input{x, y}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		sum := b.Add(x[0], x[1])
		return []ir.Value{sum, b.Mul(b.Flip(x[0], 0), sum)}
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := ref.Eval(p, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, aliases := range [][]backend.Alias{nil, {{Input: 0, Output: 0}}, {{Input: 1, Output: 0}, {Input: 0, Output: 1}}} {
		m, err := s.b.Compile(ctx, p, s.d, backend.CompileOptions{Aliases: aliases})
		if err != nil {
			t.Fatal(err)
		}
		for _, donated := range [][]bool{nil, {false, false}, {true, false}, {true, true}} {
			in, err := s.upload(ctx, p, data)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Run(ctx, in, donated)
			if err != nil {
				t.Fatalf("aliases %v, donated %v: %v", aliases, donated, err)
			}
			for i, b := range in {
				if donated == nil || !donated[i] {
					if raw, err := b.Bytes(ctx); err != nil || !bytes.Equal(raw, data[i]) {
						t.Errorf("aliases %v, donated %v: input %d is overwritten (%v)", aliases, donated, i, err)
					}
				}
			}
			release(in)
			got, err := download(ctx, out)
			if err != nil {
				t.Fatal(err)
			}
			if msg := (&comparison{}).diff(p, got, want); msg != "" {
				t.Errorf("aliases %v, donated %v: %s", aliases, donated, msg)
			}
			release(out)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := s.b.BytesInUse(s.d); got != before {
		t.Errorf("%d bytes are in use at the end, %d before", got, before)
	}
}

// repeated checks that a model keeps nothing of earlier runs and that outputs
// outlive it.
func (s *suite) repeated(t *testing.T) {
	ctx := context.Background()
	p, first := RandomProgram(1, 40)
	_, second := RandomProgram(1, 40)
	for i := range second {
		if d := p.Params[i].Shape.DType(); d.IsFloat() {
			second[i] = random(rand.New(rand.NewPCG(7, 7)), d, p.Params[i].Shape.Dims()...).data
		}
	}
	m, err := s.b.Compile(ctx, p, s.d, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.mustUpload(t, p, first), s.mustUpload(t, p, second)
	var outs [][]backend.Buffer
	for _, in := range [][]backend.Buffer{a, b, a} {
		out, err := m.Run(ctx, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := ref.Eval(p, second)
	if err != nil {
		t.Fatal(err)
	}
	var raw [3][][]byte
	for i, out := range outs {
		if raw[i], err = download(ctx, out); err != nil {
			t.Fatal(err)
		}
		release(out)
	}
	for o := range raw[0] {
		if !bytes.Equal(raw[0][o], raw[2][o]) {
			t.Errorf("output %d differs between two runs on the same inputs", o)
		}
	}
	if msg := (&comparison{rtol: 1e-3, atol: 1e-3}).diff(p, raw[1], want); msg != "" {
		t.Error(msg)
	}
}

// concurrent runs several models at once on shared inputs.
func (s *suite) concurrent(t *testing.T) {
	ctx := context.Background()
	p, data := RandomProgram(2, 30)
	want, err := ref.Eval(p, data)
	if err != nil {
		t.Fatal(err)
	}
	in := s.mustUpload(t, p, data)
	var wg sync.WaitGroup
	for range 4 {
		m := s.compile(t, p)
		wg.Go(func() {
			for range 10 {
				out, err := m.Run(ctx, in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := download(ctx, out)
				release(out)
				if err != nil {
					t.Error(err)
					return
				}
				if msg := (&comparison{rtol: 1e-3, atol: 1e-3}).diff(p, got, want); msg != "" {
					t.Error(msg)
					return
				}
			}
		})
	}
	wg.Wait()
}

// deep compiles a chain that recursion would not survive.
func (s *suite) deep(t *testing.T) {
	n := 20000
	if !longtest.Enabled() {
		n = 2000
	}
	p, data, err := record("deep", []input{{ir.MakeShape(ir.F64, 2), elements.EncodeFloats(ir.F64, []float64{1, 2})}}, func(b *ir.Builder, x []ir.Value) []ir.Value {
		y, one := x[0], b.Const(1.0, ir.F64)
		for range n {
			y = b.Add(y, one)
		}
		return []ir.Value{y}
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(context.Background(), p, data)
	if err != nil {
		t.Fatal(err)
	}
	if v := elements.DecodeFloats(ir.F64, got[0]); v[0] != float64(n+1) || v[1] != float64(n+2) {
		t.Errorf("got %v, want %d and %d", v, n+1, n+2)
	}
}
