package pool

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

func cube(n int) [3]int { return [3]int{n, n, n} }

func geometry(n, c int, in, kernel, stride, pad, dilation [3]int) Geometry {
	g := Geometry{N: n, C: c, In: in, Kernel: kernel, Stride: stride, Pad: pad, Dilation: dilation}
	for d := range in {
		g.Out[d] = (in[d]+2*pad[d]-dilation[d]*(kernel[d]-1)-1)/stride[d] + 1
	}
	return g
}

var geometries = []Geometry{
	geometry(2, 37, [3]int{1, 13, 12}, [3]int{1, 3, 3}, [3]int{1, 2, 2}, [3]int{0, 1, 1}, cube(1)),
	geometry(1, 64, [3]int{1, 8, 20}, [3]int{1, 2, 2}, [3]int{1, 2, 2}, cube(0), cube(1)),
	geometry(3, 3, [3]int{1, 9, 7}, [3]int{1, 3, 2}, [3]int{1, 1, 3}, [3]int{0, 1, 1}, [3]int{1, 2, 1}),
	geometry(1, 16, [3]int{1, 1, 30}, [3]int{1, 1, 5}, [3]int{1, 1, 4}, [3]int{0, 0, 2}, cube(1)),
	geometry(2, 9, cube(5), cube(2), cube(2), cube(1), cube(1)),
	geometry(1, 20, [3]int{1, 6, 6}, [3]int{1, 4, 4}, [3]int{1, 1, 1}, [3]int{0, 2, 2}, cube(1)),
	{N: 0, C: 4, In: cube(2), Kernel: cube(1), Out: cube(2), Stride: cube(1), Dilation: cube(1)},
	// In ceil mode the last window may lie beyond the input's end.
	{N: 1, C: 8, In: [3]int{1, 1, 5}, Kernel: [3]int{1, 1, 2}, Out: [3]int{1, 1, 3}, Stride: [3]int{1, 1, 2}, Dilation: cube(1)},
}

type order func(channels int, dims [3]int) Layout

var orders = map[string]order{
	"first": conv.ChannelsFirst,
	"last":  conv.ChannelsLast,
	"mixed": func(c int, d [3]int) Layout {
		return Layout{Batch: c * d[0] * d[1] * d[2], Channel: d[1], Spatial: [3]int{c * d[1], 1, c * d[1] * d[0]}}
	},
}

func size(n, c int, d [3]int) int { return n * c * d[0] * d[1] * d[2] }

// each calls f with every output.
func (g *Geometry) each(f func(n, c int, o [3]int)) {
	for i := range size(g.N, g.C, g.Out) {
		p, o := i, [3]int{}
		for d := 2; d >= 0; d-- {
			o[d] = p % g.Out[d]
			p /= g.Out[d]
		}
		f(p/g.C, p%g.C, o)
	}
}

// inside calls f with the positions of a window that are in the image.
func (g *Geometry) inside(o [3]int, f func(at [3]int)) {
	for k0 := range g.Kernel[0] {
		for k1 := range g.Kernel[1] {
			for k2 := range g.Kernel[2] {
				at, ok := [3]int{k0, k1, k2}, true
				for d := range at {
					at[d] = o[d]*g.Stride[d] - g.Pad[d] + at[d]*g.Dilation[d]
					ok = ok && at[d] >= 0 && at[d] < g.In[d]
				}
				if ok {
					f(at)
				}
			}
		}
	}
}

func testMax[T kernels.Number](t *testing.T, special []T) {
	least, _ := kernels.Limits[T]()
	for _, g := range geometries {
		for xName, xo := range orders {
			for yName, yo := range orders {
				rng := rand.New(rand.NewPCG(4, 4))
				m := &Max[T]{Geometry: g, Least: least, XLayout: xo(g.C, g.In), ValuesLayout: yo(g.C, g.Out), IndicesLayout: xo(g.C, g.Out)}
				m.X = make([]T, size(g.N, g.C, g.In))
				for i := range m.X {
					if m.X[i] = T(rng.IntN(20)); rng.IntN(9) == 0 {
						m.X[i] = special[rng.IntN(len(special))]
					}
				}
				m.Values, m.Indices = make([]T, size(g.N, g.C, g.Out)), make([]int64, size(g.N, g.C, g.Out))
				m.Do(m.Units()/2, m.Units())
				m.Do(0, m.Units()/2)
				g.each(func(n, c int, o [3]int) {
					best, index := least, int64(-1)
					g.inside(o, func(at [3]int) {
						v := m.X[offset(&m.XLayout, n, at)+c*m.XLayout.Channel]
						if v > best || v != v || index < 0 {
							best, index = v, int64((at[0]*g.In[1]+at[1])*g.In[2]+at[2])
						}
					})
					got := m.Values[offset(&m.ValuesLayout, n, o)+c*m.ValuesLayout.Channel]
					at := m.Indices[offset(&m.IndicesLayout, n, o)+c*m.IndicesLayout.Channel]
					if got != best && (got == got || best == best) || at != max(index, 0) {
						t.Fatalf("%+v %s→%s: image %d channel %d at %v: %v at %d, want %v at %d", g, xName, yName, n, c, o, got, at, best, index)
					}
				})
			}
		}
	}
}

func TestMax(t *testing.T) {
	inf := math.Inf(1)
	testMax(t, []float32{float32(math.NaN()), float32(inf), float32(-inf)})
	testMax(t, []float64{math.NaN(), inf, -inf})
	testMax(t, []int64{-5, math.MaxInt64, math.MinInt64})
	testMax(t, []uint8{0, 255})
}

func testMean[T vec.Element, A tile.Float](t *testing.T, eps float64) {
	for _, g := range geometries {
		if g.Dilation != cube(1) {
			continue
		}
		for xName, xo := range orders {
			for yName, yo := range orders {
				for form := range 4 {
					m := &Mean[T, A]{Geometry: g, XLayout: xo(g.C, g.In), YLayout: yo(g.C, g.Out), Padded: form == 1, Adaptive: form == 3}
					if form == 2 {
						m.Divisor = 7
					}
					rng := rand.New(rand.NewPCG(4, 4))
					m.X, m.Y = make([]T, size(g.N, g.C, g.In)), make([]T, size(g.N, g.C, g.Out))
					for i := range m.X {
						m.X[i] = vec.Narrow[T](float64(rng.IntN(100)))
					}
					m.Run()
					g.each(func(n, c int, o [3]int) {
						want := m.naive(n, c, o)
						got := vec.Wide[float64](m.Y[offset(&m.YLayout, n, o)+c*m.YLayout.Channel])
						if math.Abs(got-want) > eps*(100+math.Abs(want)) {
							t.Fatalf("%+v %s→%s form %d: image %d channel %d at %v: %v, want %v", g, xName, yName, form, n, c, o, got, want)
						}
					})
				}
			}
		}
	}
}

// naive is the mean by PyTorch's formulas.
func (m *Mean[T, A]) naive(n, c int, o [3]int) float64 {
	sum, count, all := 0.0, 0, 1
	var from, to [3]int
	for d := range o {
		from[d] = o[d]*m.Stride[d] - m.Pad[d]
		to[d] = min(from[d]+m.Kernel[d], m.In[d]+m.Pad[d])
		all *= to[d] - from[d]
		if m.Adaptive {
			from[d] = int(math.Floor(float64(o[d]) * float64(m.In[d]) / float64(m.Out[d])))
			to[d] = int(math.Ceil(float64(o[d]+1) * float64(m.In[d]) / float64(m.Out[d])))
		}
		from[d], to[d] = max(from[d], 0), min(to[d], m.In[d])
	}
	for i0 := from[0]; i0 < to[0]; i0++ {
		for i1 := from[1]; i1 < to[1]; i1++ {
			for i2 := from[2]; i2 < to[2]; i2++ {
				sum += vec.Wide[float64](m.X[offset(&m.XLayout, n, [3]int{i0, i1, i2})+c*m.XLayout.Channel])
				count++
			}
		}
	}
	switch {
	case m.Divisor != 0:
		count = m.Divisor
	case m.Padded:
		count = all
	}
	if count == 0 {
		return 0
	}
	return sum / float64(count)
}

func TestMean(t *testing.T) {
	testMean[float32, float32](t, 1e-6)
	testMean[float64, float64](t, 1e-14)
	testMean[vec.BF16, float32](t, 1.0/256)
	testMean[vec.F16, float32](t, 1.0/2048)
}
