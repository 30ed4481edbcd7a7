package nn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/safetensors"
)

// read64 returns the elements of a tensor of f32.
func read64(t testing.TB, x *loris.Tensor) []float64 {
	t.Helper()
	v, err := x.Cast(loris.F64).Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// product returns x·wᵀ, x of rows, w of out rows.
func product(x, w []float64, rows, in, out int) []float64 {
	y := make([]float64, rows*out)
	for i := range rows {
		for j := range out {
			for k := range in {
				y[i*out+j] += x[i*in+k] * w[j*in+k]
			}
		}
	}
	return y
}

// dequantized returns the weights that a layer stands for, in the order of its inputs, by what its
// doc says of them.
func dequantized(t *testing.T, l *QuantizedLinear) []float64 {
	t.Helper()
	v := func(v *loris.Variable) []float64 { return read64(t, v.Value()) }
	codes, scale := v(l.Weight), v(l.Scale)
	w := make([]float64, l.out*l.in)
	per := l.in / l.groups
	for j := range l.out {
		for k := range l.in {
			g := j*l.groups + k/per
			var q float64
			if n := k % per; l.packed() {
				b := int(codes[g*per/2+n%(per/2)])
				q = float64(b >> (n / (per / 2) * 4) & 15)
			} else {
				q = codes[g*per+n]
			}
			if l.Zero != nil {
				q -= v(l.Zero)[g]
			}
			at := k
			if l.Order != nil {
				at = int(v(l.Order)[k])
			}
			w[j*l.in+at] = q * scale[g]
		}
	}
	return w
}

// closeTo compares elements of a product with those of exact arithmetic: rounding of f32, over sums of
// in products of codes up to 255.
func closeTo(t *testing.T, got, want []float64, scale float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= scale) {
			t.Fatalf("element %d is %v, want %v: %v off, allowed %v", i, got[i], want[i], d, scale)
		}
	}
}

// A quantised layer computes the product with the weights that it stands for, on one row and on
// several, and these are as near to the layer's as QuantizeLinear says.
func TestQuantizeLinear(t *testing.T) {
	s := newSession(t)
	const in, out = 96, 10
	for _, dtype := range []loris.DType{loris.F32, loris.BF16} {
		for _, tt := range []struct{ bits, group int }{{8, 0}, {8, 32}, {4, 0}, {4, 32}, {4, 2}} {
			for _, bias := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v/%d bits/%d/bias=%v", dtype, tt.bits, tt.group, bias), func(t *testing.T) {
					opts := []Option{With(s.With(loris.As(dtype)))}
					if !bias {
						opts = append(opts, NoBias())
					}
					l := NewLinear(in, out, opts...)
					whole := read64(t, l.Weight.Value())
					q := QuantizeLinear(l, tt.bits, tt.group)
					w := dequantized(t, q)
					scale := read64(t, q.Scale.Value())
					for i := range w {
						g := i / in * q.groups
						g += i % in * q.groups / in
						if d := math.Abs(w[i] - whole[i]); d > scale[g]*(0.5+1e-5) {
							t.Fatalf("weight %d is %v, was %v: more than half a scale of %v", i, w[i], whole[i], scale[g])
						}
					}
					for _, dims := range [][]int{{in}, {1, in}, {3, in}, {2, 2, in}} {
						x := s.With(loris.As(dtype)).Randn(dims...)
						y := q.Forward(x)
						if got := y.Shape(); got.DType() != dtype || got.Dim(-1) != out || got.Rank() != len(dims) {
							t.Fatalf("%v of %v", got, dims)
						}
						rows := x.Shape().Numel() / in
						want := product(read64(t, x), w, rows, in, out)
						if bias {
							for i, b := range slices.Repeat(read64(t, l.Bias.Value()), rows) {
								want[i] += b
							}
						}
						allowed := 1e-4
						if dtype == loris.BF16 {
							allowed = 0.02
						}
						closeTo(t, read64(t, y), want, allowed)
					}
				})
			}
		}
	}
}

// Weights that are all 0, or all alike, are exact, and gradients reach the input.
func TestQuantizeLinearSpecial(t *testing.T) {
	s := newSession(t)
	for _, bits := range []int{8, 4} {
		for _, value := range []float64{0, 0.75, -3} {
			l := NewLinear(8, 2, With(s.With()), NoBias(), InitWeight(Constant(value)))
			q := QuantizeLinear(l, bits, 4)
			for i, w := range dequantized(t, q) {
				if math.Abs(w-value) > 1e-6 {
					t.Errorf("%d bits: weight %d is %v, was %v", bits, i, w, value)
				}
			}
			x := loris.NewVariable(s.With().Ones(1, 8))
			closeTo(t, read64(t, loris.Grad(q.Forward(x.Value()).Sum(), x)[0]), slices.Repeat([]float64{2 * value}, 8), 1e-5)
		}
	}
}

// Layers are saved and loaded as others are.
func TestQuantizedSaveLoad(t *testing.T) {
	s := newSession(t)
	path := filepath.Join(t.TempDir(), "q.safetensors")
	q := QuantizeLinear(NewLinear(8, 6, With(s.With())), 4, 4)
	if err := Save(t.Context(), path, q, nil); err != nil {
		t.Fatal(err)
	}
	other := QuantizeLinear(NewLinear(8, 6, With(s.With())), 4, 4)
	if _, err := Load(t.Context(), path, other); err != nil {
		t.Fatal(err)
	}
	if a, b := dequantized(t, q), dequantized(t, other); !slices.Equal(a, b) {
		t.Errorf("weights are %v, were %v", b, a)
	}
}

func TestQuantizeLinearMisuse(t *testing.T) {
	s := newSession(t)
	l := NewLinear(6, 2, With(s.With()))
	q := QuantizeLinear(l, 8, 0)
	for name, f := range map[string]func(){
		"bits":          func() { QuantizeLinear(l, 3, 0) },
		"group":         func() { QuantizeLinear(l, 8, 4) },
		"negative":      func() { QuantizeLinear(l, 8, -2) },
		"half a byte":   func() { QuantizeLinear(l, 4, 3) },
		"another width": func() { q.Forward(s.With().Zeros(2, 5)) },
		"a number":      func() { q.Forward(s.With().Full(1)) },
		"integers":      func() { q.Forward(s.With(loris.As(loris.I32)).Zeros(2, 6)) },
	} {
		var e *loris.OpError
		if err := loris.Try(f); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// gptqLayer is a layer as its file has it: w[i][j] = (codes[i][j] − zeros[g][j])·scales[g][j] where g
// is group[i].
type gptqLayer struct {
	bits, in, out, groups int
	codes, zeros          []int
	scales, bias          []float32
	group                 []int
}

func newGPTQ(bits, in, out, groups int, ordered bool) *gptqLayer {
	rng := rand.New(rand.NewPCG(uint64(bits), uint64(in)))
	l := &gptqLayer{bits: bits, in: in, out: out, groups: groups}
	for range in * out {
		l.codes = append(l.codes, rng.IntN(1<<bits))
	}
	for range groups * out {
		l.zeros = append(l.zeros, 1+rng.IntN(1<<bits-1))
		l.scales = append(l.scales, float32(1+rng.IntN(9))/64) // exact in f16
	}
	for range out {
		l.bias = append(l.bias, float32(rng.IntN(9)))
	}
	for i := range in {
		l.group = append(l.group, i*groups/in)
	}
	if !ordered {
		rng.Shuffle(in, func(i, j int) { l.group[i], l.group[j] = l.group[j], l.group[i] })
	}
	return l
}

// write writes the layer to a file; less is what is taken from zeros.
func (l *gptqLayer) write(t *testing.T, s *loris.Session, less int) *safetensors.File {
	t.Helper()
	per := 32 / l.bits
	qweight, qzeros := make([]int32, l.in/per*l.out), make([]int32, l.groups*l.out/per)
	for i := range l.in {
		for j := range l.out {
			qweight[i/per*l.out+j] |= int32(l.codes[i*l.out+j] << (i % per * l.bits))
		}
	}
	for g := range l.groups {
		for j := range l.out {
			qzeros[(g*l.out+j)/per] |= int32((l.zeros[g*l.out+j] - less) << (j % per * l.bits))
		}
	}
	idx := make([]int32, l.in)
	for i, g := range l.group {
		idx[i] = int32(g)
	}
	m := s.With()
	file := &Base{}
	add := func(name string, x *loris.Tensor) { file.Buffer(name, loris.NewVariable(x)) }
	add("qweight", m.FromSlice(qweight, l.in/per, l.out))
	add("qzeros", m.FromSlice(qzeros, l.groups, l.out/per))
	add("scales", m.FromSlice(l.scales, l.groups, l.out).Cast(loris.F16))
	add("g_idx", m.FromSlice(idx, l.in))
	add("bias", m.FromSlice(l.bias, l.out).Cast(loris.F16))
	whole := &Base{}
	whole.Add("down_proj", file)
	return written(t, whole)
}

// written is a module as a file.
func written(t *testing.T, m Module) *safetensors.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := Save(t.Context(), path, m, nil); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (l *gptqLayer) weights() []float64 {
	w := make([]float64, l.out*l.in)
	for i := range l.in {
		for j := range l.out {
			g := l.group[i]*l.out + j
			w[j*l.in+i] = float64(l.codes[i*l.out+j]-l.zeros[g]) * float64(l.scales[g])
		}
	}
	return w
}

// Files in the packing of GPTQ give the products of the weights that it means.
func TestLoadGPTQ(t *testing.T) {
	s := newSession(t)
	for _, bits := range []int{4, 8} {
		for _, groups := range []int{1, 4} {
			for _, ordered := range []bool{true, false} {
				for _, v2 := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d bits/%d groups/ordered=%v/v2=%v", bits, groups, ordered, v2), func(t *testing.T) {
						l := newGPTQ(bits, 32, 8, groups, ordered)
						less, opts := 1, []Option{With(s.With())}
						if v2 {
							less, opts = 0, append(opts, GPTQv2())
						}
						q, err := LoadGPTQ(l.write(t, s, less), "down_proj", opts...)
						if err != nil {
							t.Fatal(err)
						}
						if (q.Order == nil) != (ordered || groups == 1) {
							t.Errorf("order: %v", q.Order)
						}
						if got := dequantized(t, q); !slices.Equal(got, l.weights()) {
							t.Fatalf("weights are %v, want %v", got, l.weights())
						}
						for _, rows := range []int{1, 3} {
							x := s.With().Randn(rows, l.in)
							want := product(read64(t, x), l.weights(), rows, l.in, l.out)
							for i := range want {
								want[i] += float64(l.bias[i%l.out])
							}
							closeTo(t, read64(t, q.Forward(x)), want, 2e-3*float64(int(1)<<bits)/16)
						}
					})
				}
			}
		}
	}
}

// What a file lacks or does not have as it should is named.
func TestLoadGPTQRefuses(t *testing.T) {
	s := newSession(t)
	m := s.With()
	ints := func(dims ...int) *loris.Tensor { return m.With(loris.As(loris.I32)).Zeros(dims...) }
	good := map[string]*loris.Tensor{"qweight": ints(6, 8), "qzeros": ints(3, 1), "scales": m.Ones(3, 8)}
	for _, tt := range []struct {
		name, part string
		with       *loris.Tensor // nil: without it
		want       error
	}{
		{"no weights", "qweight", nil, ErrMissing},
		{"no scales", "scales", nil, ErrMissing},
		{"weights of floats", "qweight", m.Ones(6, 8), ErrMismatch},
		{"other outputs", "qweight", ints(6, 9), ErrMismatch},
		{"no inputs", "qweight", ints(0, 8), ErrMismatch},
		{"groups that do not divide", "qweight", ints(4, 8), ErrMismatch},
		{"three bits", "qzeros", ints(3, 3), ErrMismatch},
		{"rank", "scales", m.Ones(24), ErrMismatch},
		{"groups of other sizes", "g_idx", ints(48), ErrMismatch},
		{"groups of other inputs", "g_idx", ints(47), ErrMismatch},
		{"another bias", "bias", m.Ones(7), ErrMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := &Base{}
			for _, part := range []string{"qweight", "qzeros", "scales", "g_idx", "bias"} {
				x := good[part]
				if part == tt.part {
					x = tt.with
				}
				if x != nil {
					file.Buffer(part, loris.NewVariable(x.Add(0)))
				}
			}
			whole := &Base{}
			whole.Add("up", file)
			if _, err := LoadGPTQ(written(t, whole), "up", With(m)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// The words of a file are little endian: an order of codes in bytes, which a reader of another packing
// would get wrong.
func TestUnpackGPTQ(t *testing.T) {
	words := []uint32{binary.LittleEndian.Uint32([]byte{0x10, 0x32, 0x54, 0x76})}
	if got := unpackGPTQ(words, 4, 8, 1); !slices.Equal(got, []byte{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("4 bits: %v", got)
	}
	if got := unpackGPTQ(words, 8, 4, 1); !slices.Equal(got, []byte{0x10, 0x32, 0x54, 0x76}) {
		t.Errorf("8 bits: %v", got)
	}
}
