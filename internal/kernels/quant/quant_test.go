package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// layer is a product with everything that may be done to its sums.
type layer struct {
	rows, depth, cols int
	x                 []uint8
	zero              int32
	w                 []int8
	f                 Finish
}

func newLayer(rng *rand.Rand, rows, depth, cols int) *layer {
	l := &layer{rows: rows, depth: depth, cols: cols, zero: int32(rng.IntN(256))}
	l.x, l.w = make([]uint8, rows*depth), make([]int8, cols*depth)
	for i := range l.x {
		l.x[i] = uint8(rng.Uint32())
	}
	for i := range l.w {
		l.w[i] = int8(rng.Uint32())
	}
	l.f = Finish{Factor: 0.01, Scale: floats(rng, cols), Step: 1, Stride: cols, OtherScale: 1}
	return l
}

func floats(rng *rand.Rand, n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = rng.Float32()
	}
	return f
}

// want is what Finish says, element by element.
func (l *layer) want(i, j int) float32 {
	var sum int32
	for k := range l.depth {
		sum += (int32(l.x[i*l.depth+k]) - l.zero) * int32(l.w[j*l.depth+k])
	}
	f := &l.f
	scale := f.Scale[0]
	if len(f.Scale) > 1 {
		scale = f.Scale[j]
	}
	v := float32(float32(sum)*f.Factor) * scale
	if f.RowScale != nil {
		v *= f.RowScale[i]
	}
	if f.Bias != nil {
		v += f.Bias[j]
	}
	if f.Other != nil {
		var other [1]float32
		f.Other.load(other[:], i*f.Stride+f.Offset+j)
		v += float32((other[0] - float32(f.OtherZero)) * f.OtherScale)
	}
	row := []float32{v}
	vec.Apply(f.Activation, row)
	return float32(row[0]*(1/f.Step)) + float32(f.Zero)
}

func cut(v float32, lo, hi float64) float64 {
	return math.RoundToEven(min(max(float64(v), lo), hi))
}

func TestMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range [][3]int{{1, 1, 1}, {1, 64, 100}, {3, 7, 5}, {50, 33, 34}, {12, 2, 32}, {100, 128, 65}, {4, 0, 3}} {
		for _, c := range []struct {
			name string
			set  func(l *layer)
		}{
			{"plain", func(*layer) {}},
			{"one scale", func(l *layer) { l.f.Scale = l.f.Scale[:1] }},
			{"bias", func(l *layer) { l.f.Bias = floats(rng, l.cols) }},
			{"rows", func(l *layer) { l.f.RowScale = floats(rng, l.rows) }},
			{"relu", func(l *layer) { l.f.Activation.Kind = vec.ReLU }},
			{"grid", func(l *layer) { l.f.Step, l.f.Zero = 3.7, 100 }},
			{"sum", func(l *layer) {
				l.f.Other, l.f.OtherScale, l.f.OtherZero = F32s(floats(rng, l.rows*l.cols)), 0.3, 2
				l.f.Step, l.f.Zero = 2, 7
			}},
		} {
			l := newLayer(rng, d[0], d[1], d[2])
			c.set(l)
			n := l.rows * l.cols
			want := make([]float32, n)
			for i := range want {
				want[i] = l.want(i/l.cols, i%l.cols)
			}
			w := Pack(l.w, l.cols, l.depth)
			if w.Depth() != l.depth || w.Cols() != l.cols {
				t.Fatalf("packed [%d, %d], want %v", w.Depth(), w.Cols(), d)
			}
			u8, i8, f32, bf16 := make(U8s, n), make(I8s, n), make(F32s, n), make(BF16s, n)
			for _, out := range []Values{u8, i8, f32, bf16} {
				l.f.Out = out
				Mul(l.rows, Shift(l.x, l.depth, l.zero), w, &l.f)
			}
			for i, v := range want {
				if f32[i] != v || float64(u8[i]) != cut(v, 0, 255) || float64(i8[i]) != cut(v, -128, 127) ||
					uint16(bf16[i]) != half.F32ToBF16(v) {
					t.Fatalf("%v, %s: element %d is %v, %v, %v, %#x, want %v", d, c.name, i, f32[i], u8[i], i8[i], bf16[i], v)
				}
			}
		}
	}
}

// TestMulInPlace: a left operand of signed numbers, and a result that is added to
// what was there.
func TestMulInPlace(t *testing.T) {
	x, w := []int8{-128, 127, 5, -6}, []int8{127, -128, 1, 1}
	out := U8s{10, 20, 30, 40}
	f := Finish{Factor: 1, Scale: []float32{1}, Step: 100, Other: out, Out: out, OtherScale: 2, OtherZero: 10, Stride: 2}
	Mul(2, Shift(x, 2, -3), Pack(w, 2, 2), &f)
	// (x+3)·w: rows [-125 130]·[127 -128] = -32515, ·[1 1] = 5; [8 -3]·… = 1400, 5.
	if want := (U8s{0, 0, 14, 1}); !slices.Equal(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
}

// TestRound: halves go to the even neighbour after the zero point was added, and
// what lies outside is cut.
func TestRound(t *testing.T) {
	src := []float32{0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.5, 300, -1, -128.5, -127.5, float32(math.Inf(1)), float32(math.Inf(-1)), 126.5}
	u, s := make(U8s, len(src)), make(I8s, len(src))
	u.store(src, 0)
	s.store(src, 0)
	if want := (U8s{0, 2, 2, 0, 0, 254, 255, 255, 0, 0, 0, 255, 0, 126}); !slices.Equal(u, want) {
		t.Errorf("%v, want %v", u, want)
	}
	if want := (I8s{0, 2, 2, 0, -2, 127, 127, 127, -1, -128, -128, 127, -128, 126}); !slices.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
}

func TestMulBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const rows, depth, cols, block = 30, 96, 37, 32
	l := newLayer(rng, rows, depth, cols)
	scales := floats(rng, depth/block*cols)
	out := make(F32s, rows*cols)
	l.f.Out, l.f.RowScale, l.f.Bias = out, floats(rng, rows), floats(rng, cols)
	Mul(rows, Shift(l.x, depth, l.zero), PackBlocks(l.w, cols, depth, block, scales), &l.f)
	for i := range rows {
		for j := range cols {
			want := 0.0
			for k := range depth {
				want += float64(int32(l.x[i*depth+k])-l.zero) * float64(l.w[j*depth+k]) * float64(scales[k/block*cols+j])
			}
			want = want*float64(l.f.RowScale[i]) + float64(l.f.Bias[j])
			if got := float64(out[i*cols+j]); math.Abs(got-want) > 1e-3*max(1, math.Abs(want)) {
				t.Fatalf("element %d, %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

// TestInt4 multiplies by weights in every layout, with columns that fill blocks
// and do not.
func TestInt4(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, layout := range []Nibbles{{64, true}, {32, true}, {32, false}, {16, false}} {
		for _, cols := range []int{16, 48, 64, 144} {
			const rows, depth, group = 3, 64, 32
			q := make([]uint8, cols*depth)
			for i := range q {
				q[i] = uint8(rng.IntN(16))
			}
			w := Int4{Cols: cols, Depth: depth, Data: make([]byte, cols*depth/2), Layout: layout, Group: group}
			layout.Pack(w.Data, q, cols, depth)
			w.Scale, w.Zero = floats(rng, depth/group*cols), floats(rng, depth/group*cols)
			x, y := floats(rng, rows*depth), make([]float32, rows*cols)
			w.Mul(y, x, rows)
			for i := range rows {
				for j := range cols {
					want := 0.0
					for k := range depth {
						at := k/group*cols + j
						want += float64(x[i*depth+k]) * (float64(int(q[j*depth+k])-8)*float64(w.Scale[at]) + float64(w.Zero[at]))
					}
					if got := float64(y[i*cols+j]); math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
						t.Fatalf("%v, %d columns: element %d, %d is %v, want %v", layout, cols, i, j, got, want)
					}
				}
			}
		}
	}
}

// TestNibbles holds the bytes against examples made by hand.
func TestNibbles(t *testing.T) {
	q := make([]uint8, 64)
	for i := range q {
		q[i] = uint8(i/32*8 + i%8) // of column i, at depth 1
	}
	for _, c := range []struct {
		layout Nibbles
		cols   int
		want   []byte // the first
	}{
		{Nibbles{64, true}, 64, []byte{0x80, 0x91, 0xa2}},
		{Nibbles{64, true}, 48, []byte{0x10, 0x32, 0x54}},
		{Nibbles{32, true}, 64, []byte{0x00, 0x11, 0x22}},
		{Nibbles{32, false}, 64, []byte{0x10, 0x32, 0x54}},
	} {
		dst := make([]byte, c.cols/2)
		c.layout.Pack(dst, q, c.cols, 1)
		if !slices.Equal(dst[:3], c.want) {
			t.Errorf("%v of %d columns begins with %x, want %x", c.layout, c.cols, dst[:3], c.want)
		}
	}
}

func BenchmarkMul(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, d := range [][3]int{{1, 1024, 1024}, {128, 768, 768}, {512, 1024, 1024}} {
		b.Run(fmt.Sprint(d[0], "x", d[1], "x", d[2]), func(b *testing.B) {
			l := newLayer(rng, d[0], d[1], d[2])
			l.f.Out, l.f.Bias = make(U8s, d[0]*d[2]), floats(rng, d[2])
			w := Pack(l.w, l.cols, l.depth)
			for b.Loop() {
				Mul(l.rows, Shift(l.x, l.depth, l.zero), w, &l.f)
			}
			b.ReportMetric(2*float64(d[0]*d[1]*d[2])*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
		})
	}
}
