package loris

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// marker is a model that returns its mark in the place of every element, so that
// its work cannot be taken for that of the graph. It remembers its inputs.
type marker struct {
	hostModel
	got [][]float32
}

// newMarker returns a marker with inputs and outputs of the given shapes; those
// of no dtype are not said.
func newMarker(mark float32, in []Shape, out ...Shape) *marker {
	m := &marker{}
	for i, s := range in {
		m.spec.Inputs = append(m.spec.Inputs, backend.Param{Name: fmt.Sprintf("in%d", i), Shape: s})
	}
	for i, s := range out {
		m.spec.Outputs = append(m.spec.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: s})
	}
	m.fn = func(in []backend.Buffer) ([]backend.Buffer, error) {
		m.got = nil
		for _, b := range in {
			data, err := b.Bytes(context.Background())
			if err != nil {
				return nil, err
			}
			m.got = append(m.got, slices.Clone(hostmem.View[float32](data)))
		}
		var outs []backend.Buffer
		for _, s := range out {
			b := must(modelMemory.New(s, ir.Device{}))
			for i := range hostmem.Slice[float32](b) {
				hostmem.Slice[float32](b)[i] = mark
			}
			outs = append(outs, b)
		}
		return outs, nil
	}
	return m
}

var (
	pair  = ir.MakeShape(F32, 2)
	float = ir.MakeShape(F32)
)

func sync32(t testing.TB, s *Session, ts ...*Tensor) []float32 {
	t.Helper()
	if err := s.Sync(t.Context(), ts...); err != nil {
		t.Fatal(err)
	}
	return read(t, ts[0].Float32s)
}

// sub is a graph whose inputs are not met in order.
func sub(in ...*Tensor) []*Tensor { return []*Tensor{in[1].Sub(in[0]), in[0].Neg()} }

func TestPlugFunction(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x, y := m.FromSlice([]float32{1, 2}), m.FromSlice([]float32{30, 40})
	model := newMarker(7, []Shape{pair, pair}, pair, pair)
	p, err := s.Plug(t.Context(), GraphOf(sub, m.Zeros(2), m.Zeros(2)), model)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := sync32(t, s, sub(x, y)...); !slices.Equal(got, []float32{7, 7}) {
			t.Errorf("got %v", got)
		}
		if fmt.Sprint(model.got) != "[[1 2] [30 40]]" {
			t.Errorf("the model got %v", model.got)
		}
	}
	f := Compile(sub)
	out, err := f.Call(t.Context(), x, y)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, out[1].Float32s); !slices.Equal(got, []float32{7, 7}) {
		t.Errorf("a compiled function: %v", got)
	}
	r := s.Report()
	if r.Compiles != 0 || len(r.Plugged) != 1 || r.Plugged[0].Runs != 3 || r.Plugged[0].Hash != p.Hash() {
		t.Errorf("%d compiles, plugged %+v", r.Compiles, r.Plugged)
	}
	if want := "runs on a plugged *loris.marker: 3 runs"; !strings.Contains(r.String(), want) {
		t.Errorf("the report does not say %q:\n%s", want, r)
	}
	if got := sync32(t, s.Fork(), sub(x, y)...); got[0] != 7 {
		t.Errorf("in a fork: %v", got)
	}
	// Another shape is another graph.
	if got := sync32(t, s, sub(m.Zeros(3), m.Ones(3))...); got[0] != 1 {
		t.Errorf("another shape: %v", got)
	}
	p.Unplug()
	p.Unplug()
	if got := sync32(t, s, sub(x, y)...); !slices.Equal(got, []float32{29, 38}) {
		t.Errorf("unplugged: %v", got)
	}
	if got := s.Report().Plugged; got != nil {
		t.Errorf("unplugged: %+v", got)
	}
}

// A number that the model does not take is part of what the model stands for.
func TestPlugNumbers(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x := m.FromSlice([]float32{1, 2})
	times := func(n any) func(in ...*Tensor) []*Tensor {
		return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(n)} }
	}
	p, err := s.Plug(t.Context(), GraphOf(times(3), x), newMarker(7, []Shape{pair}, pair))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ n, want float32 }{{3, 7}, {4, 4}, {3, 7}} {
		if got := sync32(t, s, times(c.n)(x)...); got[0] != c.want {
			t.Errorf("times %v: %v", c.n, got)
		}
	}
	if r := s.Report(); r.Compiles != 1 {
		t.Errorf("%d compiles", r.Compiles)
	}
	p.Unplug()
	all := newMarker(8, []Shape{pair, float}, pair)
	if _, err := s.Plug(t.Context(), GraphOf(times(3), x), all); err != nil {
		t.Fatal(err)
	}
	if got := sync32(t, s, times(5)(x)...); got[0] != 8 || fmt.Sprint(all.got) != "[[1 2] [5]]" {
		t.Errorf("a model that takes the number: %v of %v", got, all.got)
	}
}

// A model with weights of its own stands for a graph with variables, and in a
// step that would overwrite these nothing is donated to it.
func TestPlugVariables(t *testing.T) {
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.FromSlice([]float32{5, 5}))
	layer := func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(w.Value())} }
	x := m.FromSlice([]float32{1, 2})
	p, err := s.Plug(t.Context(), GraphOf(layer, x), newMarker(7, []Shape{pair}, pair))
	if err != nil {
		t.Fatal(err)
	}
	if got := sync32(t, s, layer(x)...); got[0] != 7 {
		t.Errorf("got %v", got)
	}
	p.Unplug()
	update := func(in ...*Tensor) []*Tensor { return []*Tensor{w.Value().Sub(in[0])} }
	if _, err := s.Plug(t.Context(), GraphOf(update, x), newMarker(9, []Shape{pair, pair}, pair)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Step(t.Context(), func() error { w.Assign(update(x)[0]); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, w.Value().Float32s); got[0] != 9 {
		t.Errorf("the variable is %v", got)
	}
	if r := s.Report(); r.Compiles != 0 {
		t.Errorf("%d compiles", r.Compiles)
	}
}

func TestPlugProgramAndHash(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x, y := m.FromSlice([]float32{1, 2}), m.FromSlice([]float32{3, 4})
	p, err := graph.Parse(`program @p {
  %a = parameter "a" : f32[2]
  %b = parameter "b" : f32[2]
  %0 = sub(%b, %a)
  return %0
}`)
	if err != nil {
		t.Fatal(err)
	}
	model := newMarker(7, []Shape{pair, pair}, pair)
	plug, err := s.Plug(t.Context(), GraphOfProgram(p), model)
	if err != nil {
		t.Fatal(err)
	}
	if got := sync32(t, s, y.Sub(x)); got[0] != 7 || fmt.Sprint(model.got) != "[[1 2] [3 4]]" {
		t.Errorf("got %v of %v", got, model.got)
	}
	plug.Unplug()
	for _, known := range []bool{false, true} {
		if known {
			sync32(t, s, x.Mul(y))
		}
		h, err := s.GraphHash(x.Mul(y))
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []*marker{newMarker(1, []Shape{pair}, pair), newMarker(1, []Shape{pair, float}, pair), newMarker(1, []Shape{pair, pair}, float), newMarker(1, []Shape{pair, pair})} {
			plug, err := s.Plug(t.Context(), GraphOfHash(h), wrong)
			if err == nil { // the graph is not known yet: the sync that meets it fails
				z := x.Mul(y)
				err = s.Sync(t.Context(), z)
				plug.Unplug()
				if !z.Pending() {
					t.Error("the tensor lost its graph")
				}
				z.Discard()
			} else if !known {
				t.Errorf("a graph that was never met: %v", err)
			}
			if !errors.Is(err, ErrShape) && !errors.Is(err, ErrArg) {
				t.Errorf("%+v: %v", wrong.spec, err)
			}
		}
		plug, err := s.Plug(t.Context(), GraphOfHash(h), newMarker(8, []Shape{pair, {}}, Shape{}))
		if err != nil {
			t.Fatal(err)
		}
		plug.Unplug()
		plug, err = s.Plug(t.Context(), GraphOfHash(h), newMarker(8, []Shape{pair, pair}, pair))
		if err != nil {
			t.Fatal(err)
		}
		if got := sync32(t, s, x.Mul(y)); got[0] != 8 {
			t.Errorf("known %v: %v", known, got)
		}
		plug.Unplug()
	}
}

func TestPlugMistakes(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x := m.FromSlice([]float32{1, 2})
	neg := func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Neg()} }
	ints := ir.MakeShape(I64, 2)
	unused, err := graph.Parse("program @p {\n %a = parameter \"a\" : f32[2]\n %b = parameter \"b\" : f32[2]\n %0 = neg(%a)\n return %0\n}")
	if err != nil {
		t.Fatal(err)
	}
	in := func(shapes ...Shape) []Shape { return shapes }
	for _, c := range []struct {
		name  string
		graph Graph
		model Model
		kind  error
		want  string
	}{
		{"nothing", Graph{}, newMarker(1, in(pair), pair), ErrArg, "no graph"},
		{"nil", GraphOf(neg, x), nil, ErrArg, "nil"},
		{"inputs", GraphOf(neg, x), newMarker(1, in(pair, pair), pair), ErrArg, "takes 2 inputs, the function has 1"},
		{"input shape", GraphOf(neg, x), newMarker(1, in(float), pair), ErrShape, "input 0 (in0) of the model is f32[], got f32[2]"},
		{"input dtype", GraphOf(neg, x), newMarker(1, in(ints), pair), ErrDType, "i64[2]"},
		{"outputs", GraphOf(neg, x), newMarker(1, in(pair), pair, pair), ErrArg, "returns 2 outputs, the graph 1"},
		{"output shape", GraphOf(neg, x), newMarker(1, in(pair), float), ErrShape, "output 0 (out0) of the model is f32[], the graph's is f32[2]"},
		{"unused", GraphOf(neg, x, x), newMarker(1, in(pair, pair), pair), ErrArg, "input 1 of the function is not used"},
		{"unused parameter", GraphOfProgram(unused), newMarker(1, in(pair, pair), pair), ErrArg, "1 of the 2 parameters"},
		{"random", GraphOf(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Add(m.Rand(2))} }, x), newMarker(1, in(pair), pair), ErrArg, "random"},
		{"mistake", GraphOf(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Add(m.Zeros(3))} }, x), newMarker(1, in(pair), pair), ErrShape, "add"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Plug(t.Context(), c.graph, c.model); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	good := newMarker(1, in(pair), pair)
	if _, err := s.Plug(t.Context(), GraphOf(neg, x), good); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plug(t.Context(), GraphOf(neg, x), newMarker(2, in(pair), pair)); !errors.Is(err, ErrArg) {
		t.Errorf("a graph that has a model: %v", err)
	}
	// What the model does wrong later is the error of the sync.
	for _, fn := range []func([]backend.Buffer) ([]backend.Buffer, error){
		func([]backend.Buffer) ([]backend.Buffer, error) { return nil, errors.New("plugged model: tired") },
		func([]backend.Buffer) ([]backend.Buffer, error) { return nil, nil },
		func([]backend.Buffer) ([]backend.Buffer, error) { panic("plugged model") },
		func([]backend.Buffer) ([]backend.Buffer, error) {
			return []backend.Buffer{must(modelMemory.New(float, CPU))}, nil
		},
	} {
		good.fn = fn
		if _, err := x.Neg().Float32s(t.Context()); err == nil || !strings.Contains(err.Error(), "plugged model") {
			t.Errorf("got %v", err)
		}
		_ = s.WaitDeviceOps(t.Context())
	}
}

// A model may return its input; the result has data of its own, which a step may
// overwrite.
func TestPlugReturnsItsInput(t *testing.T) {
	s := newSession(t)
	m := s.With()
	model := newMarker(1, []Shape{pair}, pair)
	model.fn = func(in []backend.Buffer) ([]backend.Buffer, error) {
		in[0].Retain()
		return in, nil
	}
	x := m.FromSlice([]float32{1, 2})
	neg := func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Neg()} }
	if _, err := s.Plug(t.Context(), GraphOf(neg, x), model); err != nil {
		t.Fatal(err)
	}
	y := neg(x)[0]
	if err := y.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := NewVariable(y)
	for range 3 {
		if err := s.Step(t.Context(), func() error { v.Assign(v.Value().Mul(3)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(read(t, v.Value().Float32s), read(t, x.Float32s)); got != "[27 54] [1 2]" {
		t.Errorf("got %s", got)
	}
}

// A container's weights are swapped below a running program.
func TestPlugContainer(t *testing.T) {
	s := newSession(t)
	m := s.With()
	c := scaleModel(t, 3)
	x := m.FromSlice([]float32{1, 2, 3, 4})
	scale := func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(2)} }
	if _, err := s.Plug(t.Context(), GraphOf(scale, x), c); err != nil {
		t.Fatal(err)
	}
	for _, w := range []float32{3, 5} {
		err := c.Update(t.Context(), map[string]backend.Buffer{"w": hostNumber(w)}, aoti.Inactive)
		if err := errors.Join(err, c.Swap(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := sync32(t, s, scale(x)...); got[3] != 4*w {
			t.Errorf("w=%v: %v", w, got)
		}
	}
}
