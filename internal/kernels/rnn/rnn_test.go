package rnn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/sanitizer"
)

func random(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(rng.IntN(129)-64) / 128
	}
	return x
}

func narrow[T Element](x []float64) []T {
	if x == nil {
		return nil
	}
	out := make([]T, len(x))
	vec.Store(out, x)
	return out
}

func f64[T Element](x T) float64 { return vec.Wide[float64](x) }

type sizes struct{ time, batch, input, hidden int }

// network is the operands of one layer in float64, dense, time first.
type network struct {
	sizes
	mode              Mode
	wx, wh, bx, bh, x []float64
	h0, c0            []float64
	y, hn, cn         []float64 // by the definition
}

func newNetwork(s sizes, m Mode, bias, zero, reverse bool) *network {
	rng := rand.New(rand.NewPCG(3, 4))
	g := m.Gates()
	n := &network{
		sizes: s, mode: m, wx: random(rng, g*s.hidden*s.input), wh: random(rng, g*s.hidden*s.hidden),
		x: random(rng, s.time*s.batch*s.input), y: make([]float64, s.time*s.batch*s.hidden),
		hn: make([]float64, s.batch*s.hidden), cn: make([]float64, s.batch*s.hidden),
	}
	if bias {
		n.bx, n.bh = random(rng, g*s.hidden), random(rng, g*s.hidden)
	}
	if !zero {
		n.h0, n.c0 = random(rng, s.batch*s.hidden), random(rng, s.batch*s.hidden)
		copy(n.hn, n.h0)
		copy(n.cn, n.c0)
	}
	for i := range s.time {
		t := i
		if reverse {
			t = s.time - 1 - i
		}
		for b := range s.batch {
			n.step(t, b)
		}
	}
	return n
}

// gate returns what the input and the state contribute to a gate of a unit.
func (n *network) gate(x, h []float64, gate, unit int) (fromX, fromH float64) {
	row := gate*n.hidden + unit
	for i, v := range x {
		fromX += v * n.wx[row*n.input+i]
	}
	for i, v := range h {
		fromH += v * n.wh[row*n.hidden+i]
	}
	if n.bx != nil {
		fromX += n.bx[row]
		fromH += n.bh[row]
	}
	return fromX, fromH
}

func (n *network) step(t, b int) {
	x := n.x[(t*n.batch+b)*n.input:][:n.input]
	h := append([]float64(nil), n.hn[b*n.hidden:][:n.hidden]...)
	for u := range n.hidden {
		at := b*n.hidden + u
		var fx, fh, sum [4]float64
		for g := range n.mode.Gates() {
			fx[g], fh[g] = n.gate(x, h, g, u)
			sum[g] = fx[g] + fh[g]
		}
		switch n.mode {
		case Tanh:
			n.hn[at] = math.Tanh(sum[0])
		case ReLU:
			n.hn[at] = max(sum[0], 0)
		case GRU:
			r, z := sigmoid(sum[0]), sigmoid(sum[1])
			n.hn[at] = (1-z)*math.Tanh(fx[2]+r*fh[2]) + z*h[u]
		case LSTM:
			n.cn[at] = sigmoid(sum[1])*n.cn[at] + sigmoid(sum[0])*math.Tanh(sum[2])
			n.hn[at] = sigmoid(sum[3]) * math.Tanh(n.cn[at])
		}
		n.y[(t*n.batch+b)*n.hidden+u] = n.hn[at]
	}
}

func check[T Element, A Float](t *testing.T, n *network, set *tile.Set[A], batchFirst, reverse bool, eps float64) {
	t.Helper()
	if n.mode == Tanh || n.mode == ReLU { // nothing keeps their states, and with them what rounding did, small
		eps *= 8 * max(1, slices.Max(append(n.y, 0)))
	}
	w := pack(set, n.mode, n.input, n.hidden, Matrix[T]{narrow[T](n.wx), n.input, 1}, Matrix[T]{narrow[T](n.wh), n.hidden, 1}, narrow[T](n.bx), narrow[T](n.bh))
	c := &Call[T, A]{
		Weights: w, Time: n.time, Batch: n.batch, Reverse: reverse, H0: narrow[T](n.h0), C0: narrow[T](n.c0),
		X:  Sequence[T]{make([]T, len(n.x)), n.batch * n.input, n.input},
		Y:  Sequence[T]{make([]T, len(n.y)), n.batch * n.hidden, n.hidden},
		HN: make([]T, len(n.hn)), CN: make([]T, len(n.cn)),
	}
	if batchFirst {
		c.X.Time, c.X.Batch = n.input, n.time*n.input
		c.Y.Time, c.Y.Batch = n.hidden, n.time*n.hidden
	}
	if n.mode != LSTM {
		c.C0, c.CN = nil, nil
	}
	if batchFirst {
		c.Scratch = make([]A, w.Scratch(n.time, n.batch))
		for i := range c.Scratch {
			c.Scratch[i] = A(math.NaN()) // a run reads nothing that it has not written
		}
	}
	for i, v := range n.x {
		r := i / n.input
		c.X.Data[r/n.batch*c.X.Time+r%n.batch*c.X.Batch+i%n.input] = vec.Narrow[T](v)
	}
	c.Run()
	for i, want := range n.y {
		r := i / n.hidden
		got := f64(c.Y.Data[r/n.batch*c.Y.Time+r%n.batch*c.Y.Batch+i%n.hidden])
		if !(math.Abs(got-want) <= eps) {
			t.Fatalf("%s: time %d row %d unit %d: got %v, want %v", set.Name, r/n.batch, r%n.batch, i%n.hidden, got, want)
		}
	}
	for i := range c.HN {
		if got := f64(c.HN[i]); !(math.Abs(got-n.hn[i]) <= eps) {
			t.Fatalf("%s: last state %d is %v, want %v", set.Name, i, got, n.hn[i])
		}
	}
	for i := range c.CN {
		if got := f64(c.CN[i]); !(math.Abs(got-n.cn[i]) <= 4*eps) {
			t.Fatalf("%s: last cell %d is %v, want %v", set.Name, i, got, n.cn[i])
		}
	}
}

func TestLayer(t *testing.T) {
	tests := []sizes{{1, 1, 1, 1}, {5, 3, 4, 7}, {3, 1, 20, 33}, {3, 9, 65, 64}, {2, 40, 10, 16}, {0, 2, 3, 4}, {3, 0, 3, 4}, {4, 2, 0, 5}, {60, 9, 2, 3}, {2, 600, 1, 2}}
	for i, s := range tests {
		for _, mode := range []Mode{LSTM, GRU, Tanh, ReLU} {
			for form := range 8 {
				if mode != LSTM && form%3 != 0 {
					continue // they differ from LSTM in a step alone
				}
				bias, zero, reverse := form&1 != 0, form&2 != 0, form&4 != 0
				t.Run(fmt.Sprintf("%v/%d/%d", s, mode, form), func(t *testing.T) {
					n := newNetwork(s, mode, bias, zero, reverse)
					first := i%2 == 0
					for _, set := range tile.Sets[float32]() {
						check[float32](t, n, set, first, reverse, 2e-6)
					}
					for _, set := range tile.Sets[float64]() {
						check[float64](t, n, set, !first, reverse, 1e-14)
					}
					check[vec.BF16](t, n, tile.Best[float32](), first, reverse, 1.0/128)
				})
			}
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	n := newNetwork(sizes{4, 2, 8, 16}, LSTM, true, false, false)
	c := &Call[float32, float32]{
		Weights: Pack[float32](LSTM, 8, 16, Matrix[float32]{narrow[float32](n.wx), 8, 1}, Matrix[float32]{narrow[float32](n.wh), 16, 1}, nil, nil),
		Time:    4, Batch: 2, X: Sequence[float32]{narrow[float32](n.x), 16, 8}, Y: Sequence[float32]{narrow[float32](n.y), 32, 16},
	}
	parallel.SetThreads(1)
	defer parallel.SetThreads(0)
	if n := testing.AllocsPerRun(20, c.Run); n > 0 {
		t.Errorf("%v allocations in a run", n)
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// TestPackTransposed holds weights whose columns lie apart against the same ones in order, of depths around a piece.
func TestPackTransposed(t *testing.T) {
	testPackTransposed[float32, vec.BF16](t)
	testPackTransposed[float32, float32](t)
	testPackTransposed[float64, float64](t)
}

func testPackTransposed[A Float, T Element](t *testing.T) {
	t.Helper()
	for _, depth := range []int{1, piece - 1, piece, piece + 3} {
		const hidden = 9
		rows := LSTM.Gates() * hidden
		ordered, turned := make([]T, rows*depth), make([]T, rows*depth)
		for i := range ordered {
			ordered[i] = vec.Narrow[T](A(i%101) / 8)
			turned[i%depth*rows+i/depth] = ordered[i]
		}
		state := Matrix[T]{make([]T, rows*hidden), hidden, 1}
		want := Pack[A](LSTM, depth, hidden, Matrix[T]{ordered, depth, 1}, state, nil, nil)
		got := Pack[A](LSTM, depth, hidden, Matrix[T]{turned, 1, rows}, state, nil, nil)
		if !slices.Equal(got.input, want.input) {
			t.Errorf("%T of depth %d: other weights where columns lie apart", ordered, depth)
		}
	}
}
