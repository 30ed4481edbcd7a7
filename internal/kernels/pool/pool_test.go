package pool

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/guarded"
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
	// Few channels of many images; long rows, of which the windows' elements adjoin.
	geometry(37, 3, [3]int{4, 5, 6}, cube(2), cube(2), cube(1), cube(1)),
	geometry(5, 2, [3]int{3, 6, 8}, cube(3), [3]int{1, 2, 1}, cube(1), cube(1)),
	geometry(2, 3, [3]int{1, 1, 70}, [3]int{1, 1, 3}, [3]int{1, 1, 2}, cube(0), cube(1)),
	geometry(2, 3, [3]int{2, 3, 41}, [3]int{1, 1, 4}, [3]int{1, 2, 1}, [3]int{0, 0, 2}, [3]int{1, 1, 2}),
	geometry(1, 5, [3]int{1, 4, 100}, [3]int{1, 1, 7}, [3]int{1, 3, 5}, [3]int{0, 0, 3}, cube(1)),
	// Windows of several rows, which are long.
	geometry(2, 3, [3]int{1, 9, 41}, [3]int{1, 5, 5}, cube(1), [3]int{0, 2, 2}, cube(1)),
	geometry(1, 5, [3]int{1, 10, 39}, [3]int{1, 3, 3}, [3]int{1, 2, 2}, [3]int{0, 1, 1}, cube(1)),
	geometry(1, 3, [3]int{1, 11, 39}, [3]int{1, 3, 4}, [3]int{1, 2, 2}, [3]int{0, 1, 1}, cube(1)),
	geometry(2, 1, [3]int{5, 13, 57}, [3]int{1, 3, 2}, [3]int{2, 2, 3}, [3]int{0, 1, 1}, [3]int{1, 2, 3}),
	geometry(1, 4, [3]int{1, 53, 201}, [3]int{1, 3, 5}, cube(1), [3]int{0, 1, 2}, cube(1)),
	geometry(1, 2, [3]int{1, 2, 70}, [3]int{1, 4, 3}, [3]int{1, 1, 3}, [3]int{0, 2, 1}, [3]int{1, 2, 1}),
	// Boxes of several planes, of depths and of rows of one, with and without padding.
	geometry(5, 4, [3]int{9, 6, 8}, cube(2), cube(2), cube(0), cube(1)),
	geometry(1, 3, [3]int{8, 33, 29}, [3]int{3, 2, 3}, [3]int{2, 2, 3}, cube(0), [3]int{1, 2, 1}),
	geometry(1, 2, [3]int{7, 30, 31}, cube(3), [3]int{2, 1, 2}, [3]int{1, 0, 1}, cube(1)),
	geometry(1, 1, [3]int{3, 90, 70}, [3]int{2, 5, 3}, [3]int{1, 4, 1}, [3]int{1, 2, 1}, cube(1)),
	geometry(2, 5, [3]int{1, 130, 13}, [3]int{1, 3, 3}, [3]int{1, 2, 2}, cube(0), cube(1)),
	{N: 1, C: 2, In: cube(5), Kernel: cube(2), Out: cube(3), Stride: cube(2), Dilation: cube(1)},
	{N: 1, C: 2, In: [3]int{1, 1, 33}, Kernel: [3]int{1, 1, 2}, Out: [3]int{1, 1, 17}, Stride: [3]int{1, 1, 2}, Dilation: cube(1)},
	{N: 0, C: 4, In: cube(2), Kernel: cube(1), Out: cube(2), Stride: cube(1), Dilation: cube(1)},
	adaptive(2, 11, [3]int{1, 13, 12}, [3]int{1, 5, 7}),
	adaptive(1, 9, [3]int{3, 5, 4}, [3]int{2, 5, 9}),
	// Windows of many elements, by whole rows, depths and columns.
	adaptive(2, 3, [3]int{1, 37, 23}, [3]int{1, 4, 5}),
	adaptive(1, 2, [3]int{17, 21, 4}, [3]int{3, 4, 2}),
	adaptive(2, 2, [3]int{1, 1, 1001}, [3]int{1, 1, 3}),
	adaptive(1, 2, [3]int{1, 9, 531}, [3]int{1, 2, 4}),
	// In ceil mode the last window may lie beyond the input's end.
	{N: 1, C: 8, In: [3]int{1, 1, 5}, Kernel: [3]int{1, 1, 2}, Out: [3]int{1, 1, 3}, Stride: [3]int{1, 1, 2}, Dilation: cube(1)},
}

func adaptive(n, c int, in, out [3]int) Geometry {
	g := Geometry{N: n, C: c, In: in, Out: out, Stride: cube(1), Dilation: cube(1)}
	for d := range in {
		g.Windows[d], g.Kernel[d] = Adaptive(in[d], out[d])
	}
	return g
}

type order func(channels int, dims [3]int) Layout

var orders = map[string]order{
	"first": conv.ChannelsFirst,
	"last":  channelsLast,
	"mixed": func(c int, d [3]int) Layout {
		return Layout{Batch: c * d[0] * d[1] * d[2], Channel: d[1], Spatial: [3]int{c * d[1], 1, c * d[1] * d[0]}}
	},
}

// channelsLast is the order in which channels adjoin.
func channelsLast(channels int, dims [3]int) Layout {
	plane := dims[0] * dims[1] * dims[2]
	return Layout{Batch: channels * plane, Channel: 1, Spatial: [3]int{dims[1] * dims[2] * channels, dims[2] * channels, channels}}
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
					first, end := o[d]*g.Stride[d]-g.Pad[d], g.In[d]
					if w := g.Windows[d]; w != nil {
						first, end = w[o[d]][0], w[o[d]][1]
					}
					at[d] = first + at[d]*g.Dilation[d]
					ok = ok && at[d] >= 0 && at[d] < end
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
				alone := *m
				alone.Values, alone.Indices = make([]T, len(m.Values)), nil
				alone.Do(0, alone.Units())
				for i, v := range alone.Values {
					if v != m.Values[i] && (v == v || m.Values[i] == m.Values[i]) {
						t.Fatalf("%+v %s→%s: element %d is %v without indices, %v with them", g, xName, yName, i, v, m.Values[i])
					}
				}
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
	testMax(t, []int32{-5, math.MaxInt32, math.MinInt32})
	testMax(t, []int64{-5, math.MaxInt64, math.MinInt64})
	testMax(t, []uint8{0, 255})
}

// Which of equal elements and of NaNs is taken, in every place of a window.
func TestMaximaOf(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x    []float64
		want int64
	}{
		{[]float64{1, 2, 2, 0}, 1}, {[]float64{3, 3, 1, 3}, 0}, {[]float64{1, nan, 5, nan}, 1}, {[]float64{nan, 1, nan, 2}, 0},
		{[]float64{math.Copysign(0, -1), 0, 0, 0}, 0}, {[]float64{-inf, -inf, inf, 1}, 2}, {[]float64{-3, -2, -1, nan}, 3}, {[]float64{-inf, nan, inf, nan}, 1},
	} {
		maximaOfCopies(t, c.x, c.want)
		single := make([]float32, len(c.x))
		for i, v := range c.x {
			single[i] = float32(v)
		}
		maximaOfCopies(t, single, c.want)
	}
}

// maximaOfCopies holds the windows of planes, each a row of copies of x, against its greatest element.
func maximaOfCopies[T float32 | float64](t *testing.T, x []T, want int64) {
	for _, copies := range []int{1, 9, 300} { // of which each window has one
		width := copies * len(x)
		w := NewPlaced([3]int{1, 1, width}, [3]int{1, 1, len(x)}, [3]int{1, 1, copies})
		data := guarded.Slice[T](2 * width)
		for i := range data {
			data[i] = x[i%len(x)]
		}
		values, places := make([]T, 2*copies), make([]int64, 2*copies)
		MaximaOf(w, values, places, data, func(_ int, starts *[3][]int) {
			starts[0][0], starts[1][0] = 0, 0
			for i := range starts[2] {
				starts[2][i] = i * len(x)
			}
		}, 0, 2)
		for i, v := range values {
			place := int64(i%copies*len(x)) + want
			if same := v == x[want] || v != v && x[want] != x[want]; places[i] != place || !same || math.Signbit(float64(v)) != math.Signbit(float64(x[want])) {
				t.Errorf("%v: window %d of %d: %v at %d, want place %d", x, i, copies, v, places[i], place)
			}
		}
	}
}
