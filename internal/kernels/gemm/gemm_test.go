package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/sanitizer"
)

// value converts between a test's numbers and an element type.
func toElement[T Element](v float64) T {
	var x T
	switch p := any(&x).(type) {
	case *float32:
		*p = float32(v)
	case *float64:
		*p = v
	case *BF16:
		*p = BF16(half.F32ToBF16(float32(v)))
	case *F16:
		*p = F16(half.F32ToF16(float32(v)))
	}
	return x
}

func fromElement[T Element](x T) float64 {
	switch v := any(x).(type) {
	case float32:
		return float64(v)
	case float64:
		return v
	case BF16:
		return float64(half.BF16ToF32(uint16(v)))
	case F16:
		return float64(half.F16ToF32(uint16(v)))
	}
	panic("unreachable")
}

// unread marks elements that nothing may read or write.
var unread = math.NaN()

// layouts are ways to lay a matrix out.
var layouts = []struct {
	name    string
	strides func(rows, cols int) (rs, cs int)
}{
	{"rows", func(_, cols int) (int, int) { return cols, 1 }},
	{"cols", func(rows, _ int) (int, int) { return 1, rows }},
	{"wide rows", func(_, cols int) (int, int) { return cols + 3, 1 }},
	{"wide cols", func(rows, _ int) (int, int) { return 1, rows + 5 }},
	{"apart", func(_, cols int) (int, int) { return 2*cols + 1, 2 }},
}

// made returns a matrix of small whole numbers (which all types hold) in a layout,
// with a number that is not one in the gaps.
func made[T Element](rng *rand.Rand, rows, cols, layout int) Matrix[T] {
	m := Matrix[T]{Rows: rows, Cols: cols}
	m.RowStride, m.ColStride = layouts[layout].strides(rows, cols)
	m.Data = make([]T, m.extent())
	for i := range m.Data {
		m.Data[i] = toElement[T](unread)
	}
	for i := range rows {
		for j := range cols {
			m.Data[i*m.RowStride+j*m.ColStride] = toElement[T](float64(rng.IntN(9) - 4))
		}
	}
	return m
}

func (m Matrix[T]) get(i, j int) float64 { return fromElement(m.Data[i*m.RowStride+j*m.ColStride]) }

// numbers returns the elements, row by row.
func (m Matrix[T]) numbers() []float64 {
	out := make([]float64, 0, m.Rows*m.Cols)
	for i := range m.Rows {
		for j := range m.Cols {
			out = append(out, m.get(i, j))
		}
	}
	return out
}

// naive is the definition of a product.
func naive[T Element](c, a, b Matrix[T], o *Options[T]) []float64 {
	alpha := o.Alpha
	if alpha == 0 {
		alpha = 1
	}
	x, y := a.numbers(), b.T().numbers()
	out := make([]float64, c.Rows*c.Cols)
	for i := range c.Rows {
		for j := range c.Cols {
			var sum float64
			for p, v := range x[i*a.Cols : (i+1)*a.Cols] {
				sum += v * y[j*a.Cols+p]
			}
			sum *= alpha
			if o.Beta != 0 {
				sum += o.Beta * c.get(i, j)
			}
			if o.RowScale != nil {
				sum *= fromElement(o.RowScale[i])
			}
			if o.ColBias != nil {
				sum += fromElement(o.ColBias[j])
			}
			if o.RowBias != nil {
				sum += fromElement(o.RowBias[i])
			}
			if o.Residual.Data != nil {
				sum += o.Residual.get(i, j)
			}
			out[i*c.Cols+j] = definition(o.Act, sum)
		}
	}
	return out
}

// definition is the activations by their formulas.
func definition(act Activation, x float64) float64 {
	switch act {
	case Relu:
		return math.Max(x, 0)
	case Gelu:
		return x * 0.5 * math.Erfc(-x/math.Sqrt2)
	case GeluTanh:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case Sigmoid:
		return 1 / (1 + math.Exp(-x))
	case Tanh:
		return math.Tanh(x)
	case Silu:
		return x / (1 + math.Exp(-x))
	}
	return x
}

// agree compares a result with its definition and looks that the gaps are as
// they were.
func agree[T Element](t *testing.T, c Matrix[T], want []float64) {
	t.Helper()
	f := formatOf[T]()
	tol := [...]float64{wide: 1e-6, bf16: 1.0 / 256, binary: 1.0 / 2048}[f]
	inside := make([]bool, len(c.Data))
	for i := range c.Rows {
		for j := range c.Cols {
			inside[i*c.RowStride+j*c.ColStride] = true
			w := want[i*c.Cols+j]
			if got := c.get(i, j); !(math.Abs(got-w) <= tol*math.Abs(w)+1e-7) && !(math.IsNaN(got) && math.IsNaN(w)) && got != w {
				t.Errorf("element (%d, %d) is %v, want %v", i, j, got, w)
				return
			}
		}
	}
	for i, in := range inside {
		if !in && !math.IsNaN(fromElement(c.Data[i])) {
			t.Errorf("element %d between the rows was written", i)
			return
		}
	}
}

// each runs a test with every inner loop that this processor has.
func each[A Float](t *testing.T, list *[]*kernel[A], run func(t *testing.T)) {
	all := *list
	defer func() { *list = all }()
	for i, k := range all {
		*list = []*kernel[A]{k}
		t.Run(k.name, run)
		pairs, _ := any(vectorPairs()).(*kernel[A])
		if i > 0 || pairs == nil {
			continue
		}
		for _, form := range []struct {
			name  string
			pairs *kernel[A]
		}{{"without pairs", nil}, {"with pairs", pairs}, {"with tiles", tilesFor(pairs)}} {
			with := *k
			with.pairs = form.pairs
			*list = []*kernel[A]{&with}
			t.Run(k.name+" "+form.name, run)
		}
	}
}

func types(t *testing.T, f32, f64, b16, h16 func(t *testing.T)) {
	t.Run("f32", func(t *testing.T) { each(t, &kernels32, f32) })
	t.Run("f64", func(t *testing.T) { each(t, &kernels64, f64) })
	t.Run("bf16", func(t *testing.T) { each(t, &kernels32, b16) })
	t.Run("f16", func(t *testing.T) { each(t, &kernels32, h16) })
}

// sizes are around the sides of tiles.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 47, 48, 65}

func TestMulSizes(t *testing.T) {
	types(t, testSizes[float32], testSizes[float64], testSizes[BF16], testSizes[F16])
}

func testSizes[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range sizes {
		for _, n := range sizes {
			k := []int{1, 2, 5, 17, 40, 50, 67}[rng.IntN(7)]
			for range 2 {
				la, lb, lc := rng.IntN(len(layouts)), rng.IntN(len(layouts)), rng.IntN(len(layouts))
				a, b, c := made[T](rng, m, k, la), made[T](rng, k, n, lb), made[T](rng, m, n, lc)
				o := &Options[T]{Beta: []float64{0, 1, 0.5}[rng.IntN(3)], Threads: 1 + rng.IntN(2)}
				if rng.IntN(3) == 0 {
					o.Alpha = 2
				}
				want := naive(c, a, b, o)
				Mul(c, a, b, o)
				agree(t, c, want)
				if t.Failed() {
					t.Fatalf("%d×%d×%d, %s × %s -> %s, %+v", m, k, n, layouts[la].name, layouts[lb].name, layouts[lc].name, *o)
				}
			}
		}
	}
}

// TestMulBlocks multiplies matrices of several blocks in each direction, in each
// layout, on several goroutines.
func TestMulBlocks(t *testing.T) {
	types(t, testBlocks[float32], testBlocks[float64], testBlocks[BF16], testBlocks[F16])
}

func testBlocks[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	shapes := [][3]int{{70, 800, 130}, {300, 30, 40}, {9, 450, 600}, {600, 400, 7}, {1, 900, 70}, {130, 900, 1}, {260, 40, 1100}, {3, 17000, 9}, {40, 100, 3}, {330, 390, 70}, {330, 9, 600}}
	for i, d := range shapes {
		la, lb, lc := i%5, (i+i/5+1)%5, (i/2)%5
		t.Run(fmt.Sprint(d, layouts[la].name, layouts[lb].name, layouts[lc].name), func(t *testing.T) {
			a, b, c := made[T](rng, d[0], d[1], la), made[T](rng, d[1], d[2], lb), made[T](rng, d[0], d[2], lc)
			o := &Options[T]{Beta: float64(i % 3), Threads: 3}
			want := naive(c, a, b, o)
			Mul(c, a, b, o)
			agree(t, c, want)
		})
	}
}

func TestEpilogue(t *testing.T) {
	types(t, testEpilogue[float32], testEpilogue[float64], testEpilogue[BF16], testEpilogue[F16])
}

func testEpilogue[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	bias := func(n int) []T { return made[T](rng, 1, n, 0).Data }
	for i, act := range []Activation{Identity, Relu, Gelu, GeluTanh, Sigmoid, Tanh, Silu} {
		for lc := range layouts {
			const m, k, n = 37, 3, 41
			o := &Options[T]{Act: act, Alpha: 0.25, ColBias: bias(n), RowBias: bias(m), Residual: made[T](rng, m, n, (lc+i)%5)}
			if i%2 == 0 {
				o.ColBias, o.Beta = nil, 2
			}
			if i%3 == 0 {
				o.RowBias, o.RowScale = nil, bias(m)
			}
			a, b, c := made[T](rng, m, k, 0), made[T](rng, k, n, 1), made[T](rng, m, n, lc)
			want := naive(c, a, b, o)
			Mul(c, a, b, o)
			t.Log(act, layouts[lc].name)
			agree(t, c, want)
		}
	}
}

// TestFinish checks that the callback sees each element once and may change it.
func TestFinish(t *testing.T) {
	types(t, testFinish[float32], testFinish[float64], testFinish[BF16], testFinish[F16])
}

func testFinish[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for lc := range layouts {
		for _, d := range [][3]int{{1, 5, 1}, {33, 7, 70}, {5, 9, 600}} {
			a, b, c := made[T](rng, d[0], d[1], 0), made[T](rng, d[1], d[2], 0), made[T](rng, d[0], d[2], lc)
			seen := make([]int, d[0]*d[2])
			o := &Options[T]{Threads: 1, Finish: func(row, col int, piece []T) {
				for i, x := range piece {
					seen[row*d[2]+col+i]++
					piece[i] = toElement[T](fromElement(x) + 2)
				}
			}}
			want := naive(c, a, b, o)
			for i := range want {
				want[i] += 2
			}
			Mul(c, a, b, o)
			agree(t, c, want)
			if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); i >= 0 {
				t.Fatalf("element %d was seen %d times", i, seen[i])
			}
		}
	}
}

// TestSpecialValues checks that infinities and NaNs pass, that a result that is
// not to be read may hold anything, and that a depth of zero gives zeros.
func TestSpecialValues(t *testing.T) {
	types(t, testSpecial[float32], testSpecial[float64], testSpecial[BF16], testSpecial[F16])
}

func testSpecial[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	inf := math.Inf(1)
	for _, n := range []int{1, 5, 19, 40} {
		a, b, c := made[T](rng, n, n, 0), made[T](rng, n, n, 1), made[T](rng, n, n, 0)
		for i := range c.Data {
			c.Data[i] = toElement[T](unread)
		}
		a.Data[n/2] = toElement[T](inf)
		b.Data[n-1] = toElement[T](unread)
		want := naive(c, a, b, &Options[T]{})
		Mul(c, a, b, nil)
		agree(t, c, want)

		a, b = made[T](rng, n, 0, 0), made[T](rng, 0, n, 0)
		Mul(c, a, b, nil)
		agree(t, c, make([]float64, n*n))
	}
}

// TestMulWide multiplies float32 by 16-bit elements.
func TestMulWide(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { each(t, &kernels32, testWide[BF16]) })
	t.Run("f16", func(t *testing.T) { each(t, &kernels32, testWide[F16]) })
}

func testWide[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for i, d := range [][3]int{{1, 300, 64}, {2, 70, 65}, {5, 33, 1}, {8, 500, 40}, {9, 64, 40}, {70, 300, 3}, {40, 90, 100}, {3, 64, 3000}} {
		for j := range 4 { // a right operand whose rows adjoin, or whose columns do
			a, c, narrow := made[float32](rng, d[0], d[1], j%2), made[float32](rng, d[0], d[2], i%5), made[T](rng, d[1], d[2], 0)
			if j >= 2 {
				narrow = made[T](rng, d[2], d[1], 0).T()
			}
			b := made[float32](rng, d[1], d[2], 0)
			for r := range d[1] {
				for q := range d[2] {
					b.Data[r*b.RowStride+q*b.ColStride] = float32(fromElement(narrow.Data[r*narrow.RowStride+q*narrow.ColStride]))
				}
			}
			o := &Options[float32]{Threads: 2, ColBias: made[float32](rng, 1, d[2], 0).Data}
			want := naive(c, a, b, o)
			MulWide(c, a, narrow, o)
			agree(t, c, want)
		}
	}
}

func TestPacked(t *testing.T) {
	types(t, testPacked[float32], testPacked[float64], testPacked[BF16], testPacked[F16])
}

func testPacked[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for i, d := range [][3]int{{1, 3, 5}, {40, 500, 70}, {17, 20, 300}, {200, 64, 33}, {350, 20, 70}, {40, 20, 70}, {330, 410, 70}, {1, 130, 3000}, {9, 33, 95}, {14, 2000, 40}, {15, 70, 64}, {56, 90, 100}, {57, 600, 31}} {
		a, b, c := made[T](rng, d[0], d[1], i%5), made[T](rng, d[1], d[2], (i+1)%5), made[T](rng, d[0], d[2], (i+2)%5)
		o := &Options[T]{Threads: 2, ColBias: made[T](rng, 1, d[2], 0).Data}
		want := naive(c, a, b, o)
		MulPacked(c, a, Pack(b), o)
		agree(t, c, want)
	}
}

func TestMulBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{0, 1, 3, 40} {
		var a, b, c []Matrix[float32]
		var want [][]float64
		for range n {
			a, b, c = append(a, made[float32](rng, 9, 20, 0)), append(b, made[float32](rng, 20, 17, 1)), append(c, made[float32](rng, 9, 17, 0))
			want = append(want, naive(c[len(c)-1], a[len(a)-1], b[len(b)-1], &Options[float32]{Act: Relu}))
		}
		MulBatch(n, func(i int) (x, y, z Matrix[float32]) { return c[i], a[i], b[i] }, &Options[float32]{Act: Relu})
		for i := range n {
			agree(t, c[i], want[i])
		}
	}
}

func TestBadSizesPanic(t *testing.T) {
	ok := Dense(make([]float32, 12), 3, 4)
	for name, f := range map[string]func(){
		"depths":        func() { Mul(Dense(make([]float32, 9), 3, 3), ok, ok, nil) },
		"short result":  func() { Mul(Matrix[float32]{make([]float32, 8), 3, 3, 3, 1}, ok, ok.T(), nil) },
		"short operand": func() { Mul(Dense(make([]float32, 9), 3, 3), Matrix[float32]{ok.Data[:11], 3, 4, 4, 1}, ok.T(), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	defer parallel.SetThreads(0)
	parallel.SetThreads(1)
	rng := rand.New(rand.NewPCG(17, 18))
	a, b, c := made[float32](rng, 40, 50, 0), made[float32](rng, 50, 60, 1), made[float32](rng, 40, 60, 1)
	o := &Options[float32]{ColBias: make([]float32, 60)}
	if n := testing.AllocsPerRun(20, func() { Mul(c, a, b, o) }); n >= 1 {
		t.Errorf("%v allocations a call", n)
	}
}

// TestPacksSaysWhatPackedGives checks that a product whose right operand is packed before has the bits
// of one that packs it, wherever Packs says so, and that it says so of the sizes of networks.
func TestPacksSaysWhatPackedGives(t *testing.T) {
	yes, read := 0, 0
	for _, m := range []int{1, 43, 71, 330} {
		for _, n := range []int{1, 7, 130, 1000} {
			for _, k := range []int{1, 33, 600, 1600} {
				for _, turned := range []bool{false, true} {
					a, b := Dense(numbersOf(m*k, 1), m, k), Dense(numbersOf(k*n, 2), k, n)
					if turned {
						b = Dense(numbersOf(k*n, 2), n, k).T()
					}
					o := &Options[float32]{ColBias: numbersOf(n, 3), Act: Relu}
					c, d := Dense(make([]float32, m*n), m, n), Dense(make([]float32, m*n), m, n)
					if !Packs(c, a, b, o) {
						continue
					}
					yes++
					if m <= readRows && !turned && n == 1000 {
						read++
					}
					if PackedBytes(b) < 4*n*k {
						t.Errorf("%d×%d takes %d bytes", k, n, PackedBytes(b))
					}
					Mul(c, a, b, o)
					MulPacked(d, a, Pack(b), o)
					if !slices.Equal(c.Data, d.Data) {
						t.Errorf("%d×%d by %d×%d, turned %v: other bits", m, k, k, n, turned)
					}
				}
			}
		}
	}
	// 1×600×1000: smaller ones stay in the cache, larger ones are streamed.
	if yes < 10 || read != 1 {
		t.Errorf("%d products are packed, %d of those that would read their operand where it is", yes, read)
	}
	if c := Dense(make([]BF16, 4), 2, 2); Packs(c, c, c, nil) {
		t.Error("operands of 16 bits are packed in other ways")
	}
}

func numbersOf(n, seed int) []float32 {
	rng, x := rand.New(rand.NewPCG(uint64(seed), 0)), make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}
