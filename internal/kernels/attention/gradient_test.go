package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/longtest"
)

// slopesOf returns the gradients of q, k and v by their definition, given those of the result.
func (o *operands) slopesOf(grad []float64) (dq, dk, dv, dmask []float64) {
	dmask = make([]float64, len(o.mask))
	dq, dk, dv = make([]float64, len(o.q)), make([]float64, len(o.k)), make([]float64, len(o.v))
	for i := range o.want {
		head := i / o.queries
		kv := (head/o.heads)*o.kv + head%o.heads/(o.heads/o.kv)
		q, g := o.q[i*o.dim:][:o.dim], grad[i*o.value:][:o.value]
		for j := range o.keys {
			k, v := o.k[(kv*o.keys+j)*o.dim:][:o.dim], o.v[(kv*o.keys+j)*o.value:][:o.value]
			score := dot(q, k) * o.scale
			if o.mode.mask {
				score += o.mask[i*o.keys+j]
			}
			if o.mode.keep && o.keep[i*o.keys+j] == 0 || o.causal && j > i%o.queries || math.IsInf(score, -1) {
				continue
			}
			p := math.Exp(score - o.sums[i])
			dmask[i*o.keys+j] = p * (dot(g, v) - dot(g, o.want[i]))
			slope := dmask[i*o.keys+j] * o.scale
			for d := range q {
				dq[i*o.dim+d] += slope * k[d]
				dk[(kv*o.keys+j)*o.dim+d] += slope * q[d]
			}
			for d := range g {
				dv[(kv*o.keys+j)*o.value+d] += p * g[d]
			}
		}
	}
	return dq, dk, dv, dmask
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// gradientOf returns a run over operands in the given order of dimensions in memory.
func gradientOf[T Element, A Float](o *operands, grad []float64, set *tile.Set[A], order [4]int, workers int) *Gradient[T, A] {
	queries, results := [4]int{o.batch, o.heads, o.queries, o.dim}, [4]int{o.batch, o.heads, o.queries, o.value}
	keys, values := [4]int{o.batch, o.kv, o.keys, o.dim}, [4]int{o.batch, o.kv, o.keys, o.value}
	g := &Gradient[T, A]{Call: Call[T, A]{
		Batch: o.batch, Heads: o.heads, KVHeads: o.kv, Queries: o.queries, Keys: o.keys, Dim: o.dim, ValueDim: o.value,
		Scale: o.scale, Causal: o.causal, set: set, Workers: workers,
		Q: bind[T](o.q, queries, order), K: bind[T](o.k, keys, order), V: bind[T](o.v, values, order),
		LogSumExp: make([]A, len(o.sums)), LogSumExpStrides: [3]int{o.heads * o.queries, o.queries, 1},
	}}
	for i, v := range o.sums {
		g.LogSumExp[i] = A(v)
	}
	g.Out = bind[T](slices.Concat(o.want...), results, order)
	g.Grad = bind[T](grad, results, order)
	unset := func(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }
	g.DQ, g.DK, g.DV = bind[T](unset(len(o.q)), queries, order), bind[T](unset(len(o.k)), keys, order), bind[T](unset(len(o.v)), values, order)
	if o.mode.mask {
		g.Mask = bind[T](o.mask, [4]int{o.batch, o.heads, o.queries, o.keys}, order)
	}
	if o.mode.keep {
		g.Keep = Dense(o.keep, o.heads, o.queries, o.keys)
	}
	if o.rows {
		g.Mask.Strides[1], g.Mask.Strides[2], g.Keep.Strides[1], g.Keep.Strides[2] = 0, 0, 0, 0
	}
	return g
}

// wantedGradient is what a gradient must be: those of the result, of q, of k and of v.
type wantedGradient struct{ of, q, k, v, mask []float64 }

func checkGradient[T Element, A Float](t *testing.T, o *operands, want *wantedGradient, set *tile.Set[A], order [4]int, workers int, eps float64) {
	t.Helper()
	g := gradientOf[T, A](o, want.of, set, order, workers)
	if o.mode.mask && !o.causal {
		g.DMask = make([]A, len(o.mask))
	}
	if n := g.Units(); n > 0 {
		g.Do(n/2, n)
		g.Do(0, n/2)
	}
	for i, got := range g.DMask {
		if !(math.Abs(float64(got)-want.mask[i]) <= 4*eps*max(1, math.Abs(want.mask[i]))) {
			t.Fatalf("%v %s order %v, %d workers: element %d of the gradient of scores is %v, want %v", o.shape, o.name, order, workers, i, got, want.mask[i])
		}
	}
	for _, x := range []struct {
		name string
		got  *Tensor[T]
		want []float64
		dims [4]int
	}{
		{"query", &g.DQ, want.q, [4]int{o.batch, o.heads, o.queries, o.dim}},
		{"key", &g.DK, want.k, [4]int{o.batch, o.kv, o.keys, o.dim}},
		{"value", &g.DV, want.v, [4]int{o.batch, o.kv, o.keys, o.value}},
	} {
		most := 1.0
		for _, v := range x.want {
			most = max(most, math.Abs(v))
		}
		for i, want := range x.want {
			at, rest := 0, i
			for d := 3; d >= 0; d-- {
				at += rest % x.dims[d] * x.got.Strides[d]
				rest /= x.dims[d]
			}
			if got := vec.Wide[float64](x.got.Data[at]); !(math.Abs(got-want) <= eps*most) {
				t.Fatalf("%v %s order %v, %d workers: element %d of the gradient of %s is %v, want %v", o.shape, o.name, order, workers, i, x.name, got, want)
			}
		}
	}
}

func TestGradient(t *testing.T) {
	for i, s := range append(shapes[:len(shapes):len(shapes)], shape{1, 2, 1, 90, 300, 16, 20}, shape{1, 1, 1, 130, 140, 32, 32}) {
		some := modes
		if s.keys*s.dim > 10000 && !longtest.Enabled() {
			some = modes[1:3]
		}
		for j, m := range some {
			o, workers := newOperands(s, m), 1+(i+j)%2*8
			want := &wantedGradient{of: random(rand.New(rand.NewPCG(8, 8)), len(o.want)*o.value)}
			want.q, want.k, want.v, want.mask = o.slopesOf(want.of)
			large := max(1, math.Abs(m.scale))
			for k, set := range tile.Sets[float32]() {
				checkGradient[float32](t, o, want, set, orders[(i+j+k)%3], workers, 3e-6*large)
			}
			checkGradient[float64](t, o, want, tile.Best[float64](), orders[(i+j)%3], 10-workers, 1e-13*large)
			checkGradient[vec.BF16](t, o, want, tile.Best[float32](), orders[1], workers, large/64)
			checkGradient[vec.BF16, float32](t, o, want, nil, orders[i%2], workers, large/64) // in pairs where the processor has them
			checkGradient[vec.F16](t, o, want, tile.Best[float32](), orders[2], workers, large/512)
		}
	}
}

// TestGradientBits holds gradients equal to the last bit for any number of goroutines, and those of one operand
// equal to those of all.
func TestGradientBits(t *testing.T) {
	some := []shape{{1, 2, 1, 90, 300, 16, 20}, {3, 1, 1, 140, 130, 32, 32}}
	if longtest.Enabled() {
		some = append(some, shapes...)
	}
	for _, s := range some {
		for _, m := range modes[:4] {
			o := newOperands(s, m)
			grad := random(rand.New(rand.NewPCG(8, 8)), len(o.want)*o.value)
			want := gradientOf[float32, float32](o, grad, nil, orders[0], 1)
			want.Run()
			for _, workers := range []int{2, 5, 40} {
				g := gradientOf[float32, float32](o, grad, nil, orders[0], workers)
				g.Run()
				alone := *g
				alone.DQ, alone.DV, alone.DK.Data = Tensor[float32]{}, Tensor[float32]{}, make([]float32, len(o.k))
				alone.Run()
				if !slices.Equal(g.DQ.Data, want.DQ.Data) || !slices.Equal(g.DK.Data, want.DK.Data) || !slices.Equal(g.DV.Data, want.DV.Data) || !slices.Equal(alone.DK.Data, want.DK.Data) {
					t.Errorf("%v %s: for %d goroutines gradients have other bits", s, o.name, workers)
				}
			}
		}
	}
}
