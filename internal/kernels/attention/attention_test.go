package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/sanitizer"
)

type shape struct {
	batch, heads, kv, queries, keys, dim, value int
}

// mode is the masks of a test.
type mode struct {
	name       string
	causal     bool
	mask, keep bool
	rows       bool // masks repeat for all queries and heads
	scale      float64
	nothing    bool // a query that sees nothing
}

var shapes = []shape{
	{1, 1, 1, 1, 1, 1, 1},
	{2, 3, 3, 5, 7, 8, 8},
	{1, 2, 2, 33, 65, 16, 48},
	{1, 2, 1, 70, 70, 64, 64},
	{2, 4, 2, 9, 20, 24, 33},
	{1, 8, 2, 1, 130, 32, 32},
	{2, 3, 3, 1, 70, 64, 24},
	{2, 2, 2, 2, 90, 48, 16},
	{1, 4, 2, 1, 65, 32, 33},
	{1, 1, 1, 3, 1030, 40, 17},
	{1, 1, 1, 40, 530, 256, 250},
	{1, 1, 1, 4, 0, 8, 8},
	{0, 1, 1, 4, 3, 8, 8},
	{2, 2, 1, 6, 5, 0, 4},
}

var modes = []mode{
	{name: "plain", scale: 0.25},
	{name: "causal", causal: true, scale: 0.5},
	{name: "added", mask: true, scale: 1},
	{name: "added rows", mask: true, rows: true, scale: 0.7},
	{name: "kept", keep: true, nothing: true, scale: 0.3},
	{name: "kept rows", keep: true, rows: true, scale: 0.3},
	{name: "causal added", causal: true, mask: true, nothing: true, scale: 2},
	{name: "turned round", causal: true, scale: -0.5},
	{name: "large", scale: 40},
}

func random(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(rng.IntN(129)-64) / 64
	}
	return x
}

// operands are dense, in float64.
type operands struct {
	shape
	mode
	q, k, v, mask []float64
	keep          []uint8
	want          [][]float64 // the result for each query
	sums          []float64
}

func newOperands(s shape, m mode) *operands {
	rng := rand.New(rand.NewPCG(7, 7))
	o := &operands{
		shape: s, mode: m,
		q: random(rng, s.batch*s.heads*s.queries*s.dim), k: random(rng, s.batch*s.kv*s.keys*s.dim), v: random(rng, s.batch*s.kv*s.keys*s.value),
		mask: random(rng, s.batch*s.heads*s.queries*s.keys), keep: make([]uint8, s.batch*s.heads*s.queries*s.keys),
	}
	for i := range o.keep {
		o.keep[i] = uint8(rng.IntN(3))
		at := i
		if m.rows {
			at = i/(s.heads*s.queries*s.keys)*(s.heads*s.queries*s.keys) + i%s.keys
			o.keep[i], o.mask[i] = o.keep[at], o.mask[at]
		}
		if m.nothing && i/s.keys%s.queries == 2 {
			o.keep[i], o.mask[i] = 0, math.Inf(-1)
		}
	}
	for i := range s.batch * s.heads * s.queries {
		want, sum := o.naive(i/s.queries/s.heads, i/s.queries%s.heads, i%s.queries)
		o.want, o.sums = append(o.want, want), append(o.sums, sum)
	}
	return o
}

// naive returns the result and the logarithm of the sum for one query.
func (o *operands) naive(b, h, i int) ([]float64, float64) {
	kv := h / (o.heads / o.kv)
	s := make([]float64, o.keys)
	most := math.Inf(-1)
	for j := range s {
		for d := range o.dim {
			s[j] += o.q[((b*o.heads+h)*o.queries+i)*o.dim+d] * o.k[((b*o.kv+kv)*o.keys+j)*o.dim+d]
		}
		at := ((b*o.heads+h)*o.queries+i)*o.keys + j
		s[j] *= o.scale
		if o.mode.mask {
			s[j] += o.mask[at]
		}
		if o.mode.keep && o.keep[at] == 0 || o.causal && j > i {
			s[j] = math.Inf(-1)
		}
		most = max(most, s[j])
	}
	out := make([]float64, o.value)
	if math.IsInf(most, -1) {
		return out, most
	}
	sum := 0.0
	for j := range s {
		s[j] = math.Exp(s[j] - most)
		sum += s[j]
	}
	for j := range s {
		for d := range out {
			out[d] += s[j] / sum * o.v[((b*o.kv+kv)*o.keys+j)*o.value+d]
		}
	}
	return out, most + math.Log(sum)
}

// bind lays a dense operand out with the given order of dimensions in memory.
func bind[T Element](x []float64, dims [4]int, order [4]int) Tensor[T] {
	t := Tensor[T]{Data: make([]T, len(x))}
	step := 1
	for i := 3; i >= 0; i-- {
		t.Strides[order[i]] = step
		step *= dims[order[i]]
	}
	for i, v := range x {
		at := 0
		for d := 3; d >= 0; d-- {
			at += i % dims[d] * t.Strides[d]
			i /= dims[d]
		}
		t.Data[at] = vec.Narrow[T](v)
	}
	return t
}

var orders = [][4]int{{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 1, 0, 2}}

func check[T Element, A Float](t *testing.T, o *operands, set *tile.Set[A], order [4]int, eps float64) {
	t.Helper()
	name := "pairs"
	if set != nil {
		name = set.Name
	}
	c := &Call[T, A]{
		Batch: o.batch, Heads: o.heads, KVHeads: o.kv, Queries: o.queries, Keys: o.keys, Dim: o.dim, ValueDim: o.value,
		Scale: o.scale, Causal: o.causal, set: set,
		Q: bind[T](o.q, [4]int{o.batch, o.heads, o.queries, o.dim}, order),
		K: bind[T](o.k, [4]int{o.batch, o.kv, o.keys, o.dim}, order),
		V: bind[T](o.v, [4]int{o.batch, o.kv, o.keys, o.value}, order),
	}
	n := o.batch * o.heads * o.queries
	c.Out = bind[T](make([]float64, n*o.value), [4]int{o.batch, o.heads, o.queries, o.value}, order)
	c.LogSumExp, c.LogSumExpStrides = make([]A, n), [3]int{o.heads * o.queries, 1, o.heads}
	scores := [4]int{o.batch, o.heads, o.queries, o.keys}
	if o.mode.mask {
		c.Mask = bind[T](o.mask, scores, order)
	}
	if o.mode.keep {
		c.Keep = Dense(o.keep, o.heads, o.queries, o.keys)
	}
	if o.rows {
		c.Mask.Strides[1], c.Mask.Strides[2], c.Keep.Strides[1], c.Keep.Strides[2] = 0, 0, 0, 0
	}
	if n := c.Units(); n > 0 {
		c.Do(n/2, n)
		c.Do(0, n/2)
	}
	for b := range o.batch {
		for h := range o.heads {
			for i := range o.queries {
				at := (b*o.heads+h)*o.queries + i
				want, sum := o.want[at], o.sums[at]
				for d, v := range want {
					got := vec.Wide[float64](c.Out.Data[c.Out.at(b, h, i)+d*c.Out.Strides[3]])
					if !(math.Abs(got-v) <= eps) {
						t.Fatalf("%s %s order %v: batch %d head %d query %d: element %d is %v, want %v", o.name, name, order, b, h, i, d, got, v)
					}
				}
				got := float64(c.LogSumExp[(b*o.queries+i)*o.heads+h])
				if got != sum && !(math.Abs(got-sum) <= 8*eps*max(1, math.Abs(sum))) {
					t.Fatalf("%s %s: batch %d head %d query %d: logarithm of the sum is %v, want %v", o.name, name, b, h, i, got, sum)
				}
			}
		}
	}
}

func TestAttention(t *testing.T) {
	for _, s := range shapes {
		for _, m := range modes {
			o := newOperands(s, m)
			for _, order := range orders {
				for _, set := range tile.Sets[float32]() {
					check[float32](t, o, set, order, 4e-6*max(1, math.Abs(m.scale)))
				}
			}
			for _, set := range tile.Sets[float64]() {
				check[float64](t, o, set, orders[0], 1e-13*max(1, math.Abs(m.scale)))
			}
			check[vec.BF16](t, o, tile.Best[float32](), orders[1], 1.0/128)
			check[vec.BF16, float32](t, o, nil, orders[s.keys%2], 1.0/128) // in pairs where the processor has them
			check[vec.F16](t, o, tile.Best[float32](), orders[2], 1.0/1024)
		}
	}
}

func TestNaNStaysInItsQuery(t *testing.T) {
	o := newOperands(shape{1, 1, 1, 4, 6, 8, 8}, modes[0])
	o.q[8] = math.NaN()
	c := &Call[float64, float64]{
		Batch: 1, Heads: 1, KVHeads: 1, Queries: 4, Keys: 6, Dim: 8, ValueDim: 8, Scale: 1,
		Q: Dense(o.q, 1, 4, 8), K: Dense(o.k, 1, 6, 8), V: Dense(o.v, 1, 6, 8), Out: Dense(make([]float64, 32), 1, 4, 8),
	}
	c.Run()
	for i, v := range c.Out.Data {
		if nan := i/8 == 1; math.IsNaN(v) != nan {
			t.Errorf("element %d is %v", i, v)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	for _, queries := range []int{20, 1} {
		o := newOperands(shape{1, 2, 2, queries, 64, 16, 16}, modes[0])
		dims := [4]int{1, 2, queries, 16}
		keys := [4]int{1, 2, 64, 16}
		c := &Call[float32, float32]{
			Batch: 1, Heads: 2, KVHeads: 2, Queries: queries, Keys: 64, Dim: 16, ValueDim: 16, Scale: 0.25,
			Q: bind[float32](o.q, dims, orders[0]), K: bind[float32](o.k, keys, orders[0]), V: bind[float32](o.v, keys, orders[0]),
			Out: bind[float32](o.q, dims, orders[0]),
		}
		parallel.SetThreads(1)
		defer parallel.SetThreads(0)
		if n := testing.AllocsPerRun(20, func() { c.Do(0, c.Units()) }); n > 0 {
			t.Errorf("%d queries: %v allocations in a run", queries, n)
		}
	}
}
