package loris

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestReads(t *testing.T) {
	ctx := t.Context()
	m := newSession(t).With()
	i32 := m.FromSlice([]int32{-1, 2, math.MaxInt32})
	f32 := m.FromSlice([]float32{-1, 0.5, 2})
	if v, err := i32.Int32s(ctx); err != nil || !reflect.DeepEqual(v, []int32{-1, 2, math.MaxInt32}) {
		t.Error(v, err)
	}
	if v, err := i32.Int64s(ctx); err != nil || !reflect.DeepEqual(v, []int64{-1, 2, math.MaxInt32}) {
		t.Error(v, err)
	}
	if v, err := Read[int](ctx, i32); err != nil || !reflect.DeepEqual(v, []int{-1, 2, math.MaxInt32}) {
		t.Error(v, err)
	}
	if v, err := f32.Float64s(ctx); err != nil || !reflect.DeepEqual(v, []float64{-1, 0.5, 2}) {
		t.Error(v, err)
	}
	for _, d := range []DType{F16, BF16, F64} {
		if v, err := f32.Cast(d).Float64s(ctx); err != nil || !reflect.DeepEqual(v, []float64{-1, 0.5, 2}) {
			t.Error(d, v, err)
		}
	}
	if v, err := f32.Cast(BF16).Float32s(ctx); err != nil || !reflect.DeepEqual(v, []float32{-1, 0.5, 2}) {
		t.Error(v, err)
	}
	if v, err := f32.Gt(0).Bools(ctx); err != nil || !reflect.DeepEqual(v, []bool{false, true, true}) {
		t.Error(v, err)
	}
	for d, fn := range map[DType]func(*Tensor) (any, error){
		U8:  func(x *Tensor) (any, error) { return x.Uint8s(ctx) },
		I8:  func(x *Tensor) (any, error) { return x.Int8s(ctx) },
		I16: func(x *Tensor) (any, error) { return x.Int16s(ctx) },
	} {
		v, err := fn(m.With(As(d)).Arange(0, 3, 1))
		if err != nil || reflect.ValueOf(v).Index(2).Convert(reflect.TypeFor[int]()).Int() != 2 {
			t.Error(d, v, err)
		}
	}
	for name, fn := range map[string]func() error{
		"f64 as float32":  func() error { _, err := f32.Cast(F64).Float32s(ctx); return err },
		"i64 as int32":    func() error { _, err := i32.Cast(I64).Int32s(ctx); return err },
		"i32 as float64":  func() error { _, err := i32.Float64s(ctx); return err },
		"f32 as int64":    func() error { _, err := f32.Int64s(ctx); return err },
		"bool as int64":   func() error { _, err := f32.Gt(0).Int64s(ctx); return err },
		"item of several": func() error { _, err := f32.Item(ctx); return err },
	} {
		if err := fn(); !errors.Is(err, ErrDType) && !errors.Is(err, ErrShape) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestItem(t *testing.T) {
	m := newSession(t).With()
	for _, c := range []struct {
		x    *Tensor
		want float64
	}{
		{m.FromSlice([]float32{1, 2}).Sum(), 3},
		{m.FromSlice([]int8{-7}), -7},
		{m.FromSlice([]bool{true}), 1},
		{m.Scalar(0.1).Cast(F64), float64(float32(0.1))},
		{m.With(As(F64)).Scalar(0.1), 0.1},
		{m.Scalar(3), 3},
	} {
		if v, err := c.x.Item(t.Context()); err != nil || v != c.want {
			t.Errorf("got %v, %v, want %v", v, err, c.want)
		}
	}
}

func TestReadsAreCopies(t *testing.T) {
	ctx := t.Context()
	m := newSession(t).With()
	data := []float32{1, 2}
	x := m.FromSlice(data)
	data[0] = 100
	v := floats(t, x)
	v[0] = 200
	b, err := x.Bytes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	all, err := Fetch(ctx, x, x.Add(1))
	if err != nil || len(all) != 2 || len(all[1]) != 8 {
		t.Fatal(all, err)
	}
	clear(all[0])
	wantFloats(t, x, 1, 2)
}

func TestString(t *testing.T) {
	s := newSession(t, WithDevice(Ref))
	m := s.With()
	x := m.FromSlice([]float32{1, 2.5, 3, 4}, 2, 2)
	y := x.Add(1)
	for _, c := range []struct{ got, want string }{
		{x.String(), "tensor([[1. , 2.5],\n        [3. , 4. ]], f32[2,2], ref:0)"},
		{y.String(), "tensor(f32[2,2], ref:0, pending add)"},
		{m.FromSlice([]bool{true, false}).String(), "tensor([ True, False], bool[2], ref:0)"},
		{m.Scalar(2).String(), "tensor(i64[], ref:0, pending number)"},
		{(*Tensor)(nil).String(), "tensor(nil)"},
		{new(Tensor).String(), "tensor(nil)"},
	} {
		if c.got != c.want {
			t.Errorf("got\n%s\nwant\n%s", c.got, c.want)
		}
	}
	if !y.Pending() || s.Report().Runs != 0 {
		t.Error("String must not sync")
	}
	text, err := y.Text(t.Context())
	if want := "tensor([[2. , 3.5],\n        [4. , 5. ]], f32[2,2], ref:0)"; err != nil || text != want {
		t.Errorf("got\n%s %v\nwant\n%s", text, err, want)
	}
	if y.String() != text {
		t.Error("String does not print elements that are there")
	}
	long, err := m.Arange(0, 12, 1).Reshape(12).Text(t.Context())
	if err != nil || !strings.HasSuffix(long, ")") {
		t.Errorf("got\n%s %v", long, err)
	}
}

func TestMakers(t *testing.T) {
	s := newSession(t)
	m := s.With()
	for _, c := range []struct {
		name string
		x    *Tensor
		want Shape
	}{
		{"zeros", m.Zeros(2, 3), MakeShape(F32, 2, 3)},
		{"ones of i32", m.With(As(I32)).Ones(2), MakeShape(I32, 2)},
		{"full of int", m.Full(3, 2), MakeShape(I64, 2)},
		{"full of float", m.Full(3.5, 2, 2), MakeShape(F32, 2, 2)},
		{"full of bool", m.Full(true), MakeShape(Bool)},
		{"full of f16", m.With(As(F16)).Full(1, 2), MakeShape(F16, 2)},
		{"arange", m.Arange(0, 10, 3), MakeShape(I64, 4)},
		{"arange of floats", m.Arange(0.0, 1, 0.25), MakeShape(F32, 4)},
		{"linspace", m.Linspace(0, 1, 5), MakeShape(F32, 5)},
		{"eye", m.Eye(3), MakeShape(F32, 3, 3)},
		{"rand", m.Rand(2, 2), MakeShape(F32, 2, 2)},
		{"randn of f64", m.With(As(F64)).Randn(2), MakeShape(F64, 2)},
		{"uniform", m.Uniform(2, 3, 4), MakeShape(F32, 4)},
		{"normal", m.Normal(2, 3, 4), MakeShape(F32, 4)},
		{"randint", m.RandInt(0, 5, 4), MakeShape(I64, 4)},
		{"randperm", m.RandPerm(5), MakeShape(I64, 5)},
		{"bernoulli", m.Bernoulli(0.5, 4), MakeShape(F32, 4)},
		{"rand like", m.Zeros(2, 3).RandLike(), MakeShape(F32, 2, 3)},
		{"dropout", m.Ones(8).Dropout(0.5), MakeShape(F32, 8)},
		{"ints", m.FromSlice([]int{1, 2}, 2, 1), MakeShape(I64, 2, 1)},
		{"no elements", m.FromSlice([]float64{}), MakeShape(F64, 0)},
		{"cast by maker", m.With(As(F16)).FromSlice([]float32{1}), MakeShape(F16, 1)},
		{"constant", m.Constant(make([]byte, 8), MakeShape(I64)), MakeShape(I64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.x.Shape() != c.want {
				t.Errorf("got %v, want %v", c.x.Shape(), c.want)
			}
			if c.x.Session() != s || c.x.Device() != s.Device() {
				t.Errorf("in %p on %v", c.x.Session(), c.x.Device())
			}
			if err := c.x.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wantFloats(t, m.Eye(2), 1, 0, 0, 1)
	wantFloats(t, m.Full(2, 3).Cast(F32), 2, 2, 2)
	perm, _ := m.RandPerm(6).Sort()
	if v, err := perm.Int64s(t.Context()); err != nil || !reflect.DeepEqual(v, []int64{0, 1, 2, 3, 4, 5}) {
		t.Error(v, err)
	}
	if got := m.With(On(Null)).Zeros(2).Device(); got != Null {
		t.Errorf("a tensor made on %v is on %v", Null, got)
	}
	if err := Try(func() { m.With(On(Null)).Zeros(2).Add(m.FromSlice([]float32{1})) }); !errors.Is(err, ErrDevice) {
		t.Errorf("operands on two devices: got %v", err)
	}
	h := F16FromSlice([]float32{1, 2.5})
	if v, err := h.Float32s(t.Context()); err != nil || h.DType() != F16 || v[1] != 2.5 {
		t.Error(v, err)
	}
}

func TestSeeds(t *testing.T) {
	ctx := t.Context()
	run := func(seed uint64) [][]float32 {
		s := newSession(t, WithSeed(seed))
		m := s.With()
		var out [][]float32
		for range 2 {
			x, y := m.Rand(4), m.Rand(4)
			if err := s.MarkStep(ctx); err != nil {
				t.Fatal(err)
			}
			out = append(out, floats(t, x), floats(t, y))
		}
		if r := s.Report(); r.Compiles != 1 {
			t.Errorf("%d compiles of equal random steps, want 1", r.Compiles)
		}
		s.SetSeed(seed)
		if s.Seed() != seed {
			t.Errorf("seed %d, want %d", s.Seed(), seed)
		}
		return append(out, floats(t, m.Rand(4)))
	}
	a, b := run(5), run(6)
	if reflect.DeepEqual(a[0], b[0]) {
		t.Error("two seeds gave the same numbers")
	}
	if !reflect.DeepEqual(a[0], a[4]) {
		t.Error("SetSeed did not start over")
	}
	for i := range a[:4] {
		for j := range i {
			if reflect.DeepEqual(a[i], a[j]) {
				t.Errorf("draws %d and %d are equal", i, j)
			}
		}
	}
}

func TestTo(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	x := s.With().Ones(2).Add(1)
	y, err := x.To(ctx, Null)
	if err != nil || y.Device() != Null || y.Shape() != x.Shape() {
		t.Fatal(y, err)
	}
	back, err := y.To(ctx, s.Device())
	if err != nil {
		t.Fatal(err)
	}
	wantFloats(t, back.Add(1), 3, 3)
	if same, err := back.To(ctx, s.Device()); err != nil || same != back {
		t.Error("To the tensor's own device must give the tensor")
	}
	bad := s.With().FromSlice([]float32{1}).IndexSelect(0, s.With().FromSlice([]int64{3}))
	z, err := bad.To(ctx, Null)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Wait(ctx); !errors.Is(err, ErrIndex) {
		t.Errorf("got %v, want the source's error", err)
	}
	_ = s.WaitDeviceOps(ctx)
	if _, err := x.To(ctx, Device{Type: 250}); !errors.Is(err, ErrDevice) {
		t.Errorf("got %v, want ErrDevice", err)
	}
}

func TestForks(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	x := s.With().FromSlice([]float32{1, 2})
	var wg sync.WaitGroup
	for g := range 4 {
		f := s.Fork()
		wg.Go(func() {
			for range 10 {
				y := f.With().Ones(2).Add(x).Mul(float32(g))
				if err := f.MarkStep(ctx); err != nil {
					t.Error(err)
				}
				if v, err := y.Float32s(ctx); err != nil || v[0] != 2*float32(g) || v[1] != 3*float32(g) {
					t.Error(v, err)
				}
			}
		})
	}
	wg.Wait()
	if r := s.Report(); r.Compiles != 1 || r.Steps != 40 {
		t.Errorf("%d compiles in %d steps, want 1 in 40", r.Compiles, r.Steps)
	}
	if v := NewVariable(x); v.ValueIn(s.Fork()).Session() == s {
		t.Error("ValueIn ignored the session")
	}
}

func TestLiveTensorsAndDump(t *testing.T) {
	s := newSession(t)
	x := s.With().FromSlice([]float32{1})
	y := x.Add(1)
	live := s.LiveTensors()
	found := map[*Tensor]bool{}
	for _, l := range live {
		found[l] = true
	}
	if len(live) != 2 || !found[x] || !found[y] {
		t.Errorf("live tensors %v, want x and y", live)
	}
	text, err := s.Dump(false, y)
	if err != nil || !strings.Contains(text, "add") {
		t.Errorf("%s %v", text, err)
	}
	h1, err1 := s.GraphHash(y)
	h2, err2 := s.GraphHash(x.Add(1))
	if err1 != nil || err2 != nil || h1 != h2 {
		t.Errorf("equal graphs: %v %v, %v %v", h1, h2, err1, err2)
	}
	if _, err := s.GraphHash(x); err == nil {
		t.Error("data has no graph to hash")
	}
}

func TestDefaultSession(t *testing.T) {
	ctx := context.Background()
	x := Ones(2).Add(1)
	if x.Session() != Default() {
		t.Fatal("not in the default session")
	}
	if err := MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, x, 2, 2)
	if err := Sync(ctx); err != nil {
		t.Error(err)
	}
}

func TestGradients(t *testing.T) {
	s := newSession(t)
	m := s.With()
	x := m.FromSlice([]float32{1, 2, 3})
	w := NewVariable(m.FromSlice([]float32{4, 5, 6}))
	out, grads := ValueAndGrad(func() *Tensor { return w.Value().Mul(x).Sum() }, w)
	wantFloats(t, out, 32)
	wantFloats(t, grads[0], 1, 2, 3)
	y := x.Mul(x)
	second := Grad(Grad(y.Mul(x).Sum(), x)[0].Sum(), x)[0]
	wantFloats(t, second, 6, 12, 18)
	g := GradOf([]*Tensor{y, x.Exp()}, []*Tensor{m.FromSlice([]float32{1, 0, 1}), m.Zeros(3)}, x)
	wantFloats(t, g[0], 2, 0, 6)
	wantFloats(t, Grad(x.Sum(), m.Ones(2))[0], 0, 0)
	if err := Try(func() { GradOf(nil, nil, x) }); !errors.Is(err, ErrArg) {
		t.Error(err)
	}
}
