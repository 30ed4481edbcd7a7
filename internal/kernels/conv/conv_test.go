package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/sanitizer"
)

// image is a strided image in the type under test.
type image[T Element] struct {
	data []T
	l    Layout
}

func (m *image[T]) at(n, c int, i [3]int) int {
	at := n*m.l.Batch + c*m.l.Channel
	for d := range i {
		at += i[d] * m.l.Spatial[d]
	}
	return at
}

// layouts are the orders in memory that images are tested in.
var layouts = []struct {
	name string
	of   func(n, c int, dims [3]int) (Layout, int)
}{
	{"first", func(n, c int, dims [3]int) (Layout, int) { return ChannelsFirst(c, dims), n * c * volume(dims) }},
	{"last", func(n, c int, dims [3]int) (Layout, int) {
		return Layout{c * volume(dims), 1, [3]int{dims[1] * dims[2] * c, dims[2] * c, c}}, n * c * volume(dims)
	}},
	{"odd", func(n, c int, dims [3]int) (Layout, int) {
		// Batch innermost, gaps everywhere.
		l := Layout{Batch: 2, Channel: 2*n + 1}
		l.Spatial[1] = l.Channel*c + 3
		l.Spatial[2] = l.Spatial[1] * dims[1]
		l.Spatial[0] = l.Spatial[2] * dims[2]
		return l, l.Spatial[0] * dims[0]
	}},
}

func volume(d [3]int) int { return d[0] * d[1] * d[2] }

// random returns numbers that are exact in every type.
func random(seed uint64, n int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 2))
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(rng.IntN(129)-64) / 64
	}
	return x
}

func narrow[T Element](x []float64) []T {
	out := make([]T, len(x))
	vec.Store(out, x)
	return out
}

func f64[T Element](x T) float64 { return vec.Wide[float64](x) }

// reference is the operands of one Geometry, dense, and the sums by the
// definition, with the sums of magnitudes.
type reference struct {
	g             Geometry
	x, w, bias, y []float64 // y is what the output holds before
	sums, sizes   []float64
}

func newReference(g Geometry) *reference {
	n := g.N * g.Groups * g.COut * volume(g.Out)
	r := &reference{
		g: g, x: random(1, g.N*g.Groups*g.CIn*volume(g.In)), w: random(2, g.Groups*g.COut*g.CIn*volume(g.Kernel)),
		bias: random(3, g.Groups*g.COut), y: random(4, n), sums: make([]float64, n), sizes: make([]float64, n),
	}
	for i := range n {
		p := i
		o := [3]int{}
		for d := 2; d >= 0; d-- {
			o[d] = p % g.Out[d]
			p /= g.Out[d]
		}
		r.naive(i, p/(g.Groups*g.COut), p%(g.Groups*g.COut), o)
	}
	return r
}

func (r *reference) naive(i, n, oc int, o [3]int) {
	g := &r.g
	s := g.Filters()
	grp, c := oc/g.COut, oc%g.COut
	for ic := range g.CIn {
		for k0 := range g.Kernel[0] {
			for k1 := range g.Kernel[1] {
				for k2 := range g.Kernel[2] {
					k := [3]int{k0, k1, k2}
					in, ok := g.meets(o, k)
					if !ok {
						continue
					}
					at := oc*s[0] + ic*s[1]
					if g.Transposed {
						at = (grp*g.CIn+ic)*s[0] + c*s[1]
					}
					for d := range k {
						at += k[d] * s[2+d]
					}
					x := r.x[(((n*g.Groups+grp)*g.CIn+ic)*g.In[0]+in[0])*g.In[1]*g.In[2]+in[1]*g.In[2]+in[2]]
					r.sums[i] += x * r.w[at]
					r.sizes[i] += math.Abs(x * r.w[at])
				}
			}
		}
	}
}

// each calls f with every position of an image, in order.
func each(n, c int, dims [3]int, f func(i, n, c int, at [3]int)) {
	for i := range n * c * volume(dims) {
		p := i
		at := [3]int{}
		for d := 2; d >= 0; d-- {
			at[d] = p % dims[d]
			p /= dims[d]
		}
		f(i, p/c, p%c, at)
	}
}

// lay puts dense numbers in a layout.
func lay[T Element](x []float64, n, c int, dims [3]int, layout int) *image[T] {
	l, size := layouts[layout].of(n, c, dims)
	m := &image[T]{make([]T, max(size, 0)), l}
	each(n, c, dims, func(i, n, c int, at [3]int) { m.data[m.at(n, c, at)] = vec.Narrow[T](x[i]) })
	return m
}

func (g *Geometry) meets(o, k [3]int) (i [3]int, ok bool) {
	for d := range o {
		if g.Transposed {
			i[d] = o[d] + g.Pad[d] - k[d]*g.Dilation[d]
			if i[d]%g.Stride[d] != 0 {
				return i, false
			}
			i[d] /= g.Stride[d]
		} else {
			i[d] = o[d]*g.Stride[d] - g.Pad[d] + k[d]*g.Dilation[d]
		}
		if i[d] < 0 || i[d] >= g.In[d] {
			return i, false
		}
	}
	return i, true
}

// geometry makes a Geometry with the outputs that PyTorch gives it.
func geometry(n, groups, cin, cout int, in, kernel, stride, pad, dilation [3]int) Geometry {
	g := Geometry{N: n, Groups: groups, CIn: cin, COut: cout, In: in, Kernel: kernel, Stride: stride, Pad: pad, Dilation: dilation}
	for d := range in {
		g.Out[d] = (in[d]+2*pad[d]-dilation[d]*(kernel[d]-1)-1)/stride[d] + 1
	}
	return g
}

func transposed(g Geometry, extra int) Geometry {
	g.Transposed = true
	for d := range g.In {
		g.Out[d] = (g.In[d]-1)*g.Stride[d] - 2*g.Pad[d] + g.Dilation[d]*(g.Kernel[d]-1) + 1
		if g.Stride[d] > 1 {
			g.Out[d] += extra
		}
	}
	return g
}

func cube(n int) [3]int         { return [3]int{n, n, n} }
func plane(d, n int) [3]int     { return [3]int{d, n, n} }
func line(d, n int) [3]int      { return [3]int{d, d, n} }
func plane2(d, h, w int) [3]int { return [3]int{d, h, w} }

var geometries = []struct {
	name string
	g    Geometry
}{
	{"3x3", geometry(2, 1, 5, 37, plane(1, 9), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 wide", geometry(1, 1, 16, 64, plane2(1, 5, 31), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 deep", geometry(2, 1, 130, 33, plane(1, 7), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 valid", geometry(2, 1, 8, 32, plane(1, 8), plane(1, 3), cube(1), cube(0), cube(1))},
	{"stride 2", geometry(2, 1, 6, 20, plane(1, 11), plane(1, 3), plane(1, 2), plane(0, 1), cube(1))},
	{"7x7 stem", geometry(1, 1, 3, 64, plane(1, 23), plane(1, 7), plane(1, 2), plane(0, 3), cube(1))},
	{"dilation", geometry(1, 1, 4, 10, plane(1, 12), plane(1, 3), cube(1), plane(0, 2), plane(1, 2))},
	{"1x1", geometry(3, 1, 40, 48, plane(1, 5), cube(1), cube(1), cube(0), cube(1))},
	{"1x1 long", geometry(1, 1, 3, 9, plane(1, 40), cube(1), cube(1), cube(0), cube(1))},
	{"1x1 stride 2", geometry(2, 1, 12, 16, plane(1, 7), cube(1), plane(1, 2), cube(0), cube(1))},
	{"1x1 deep", geometry(1, 1, 700, 16, plane(1, 3), cube(1), cube(1), cube(0), cube(1))},
	{"1x1 conflict", geometry(1, 1, 1024, 8, plane(1, 9), cube(1), cube(1), cube(0), cube(1))},
	{"padding beyond", geometry(1, 1, 2, 3, plane(1, 2), plane(1, 2), plane(1, 3), plane(0, 4), cube(1))},
	{"1d", geometry(2, 1, 7, 12, line(1, 29), line(1, 5), line(1, 3), line(0, 2), cube(1))},
	{"3d", geometry(2, 1, 3, 6, cube(5), plane2(2, 3, 3), plane2(2, 1, 1), cube(1), cube(1))},
	{"3d in deep units", geometry(2, 1, 9, 18, plane2(7, 4, 5), cube(3), cube(1), cube(1), cube(1))},
	{"uneven", geometry(1, 1, 3, 4, plane2(1, 6, 9), plane2(1, 2, 5), plane2(1, 2, 1), plane2(0, 1, 2), plane2(1, 3, 2))},
	{"groups", geometry(2, 4, 3, 5, plane(1, 6), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"depthwise 3x3", geometry(2, 21, 1, 1, plane(1, 9), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"depthwise stride 2", geometry(2, 40, 1, 1, plane(1, 20), plane(1, 5), plane(1, 2), plane(0, 2), cube(1))},
	{"depthwise wide", geometry(1, 3, 1, 1, plane2(1, 3, 50), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"depthwise 1d dilated", geometry(1, 34, 1, 1, line(1, 33), line(1, 4), cube(1), line(0, 3), line(1, 2))},
	{"depthwise large kernel", geometry(1, 18, 1, 1, plane2(2, 11, 12), plane2(2, 10, 9), cube(1), plane(0, 1), cube(1))},
	{"depthwise multiplier", geometry(1, 6, 1, 2, plane(1, 9), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"pointwise of one", geometry(2, 1, 1, 1, plane(1, 5), cube(1), cube(1), cube(0), cube(1))},
	{"no channels", geometry(2, 1, 0, 4, plane(1, 5), plane(1, 3), cube(1), cube(0), cube(1))},
	{"no images", geometry(0, 1, 2, 4, plane(1, 5), plane(1, 3), cube(1), cube(0), cube(1))},
	{"many images", geometry(9, 1, 18, 40, plane(1, 3), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"across images", geometry(17, 1, 3, 70, plane(1, 9), plane(1, 8), cube(1), plane(0, 1), cube(1))},
	{"across images dilated", geometry(9, 1, 17, 8, plane(1, 9), plane(1, 4), cube(1), plane(0, 1), plane(1, 2))},
	{"across images 3d", geometry(13, 2, 2, 5, plane2(3, 6, 5), plane2(2, 5, 4), cube(1), cube(0), cube(1))},
	{"transposed", transposed(geometry(2, 1, 6, 9, plane(1, 5), plane(1, 3), plane(1, 2), plane(0, 1), cube(1)), 1)},
	{"transposed dense", transposed(geometry(1, 1, 20, 35, plane(1, 6), plane(1, 3), cube(1), plane(0, 1), cube(1)), 0)},
	{"transposed sparse", transposed(geometry(1, 1, 4, 4, plane(1, 3), plane(1, 2), plane(1, 3), cube(0), cube(1)), 2)},
	{"transposed groups", transposed(geometry(2, 2, 3, 4, plane(1, 4), plane(1, 4), plane(1, 2), plane(0, 1), plane(1, 3)), 1)},
	{"transposed odd", transposed(geometry(2, 1, 3, 20, plane2(1, 5, 33), plane(1, 3), plane(1, 2), plane(0, 1), cube(1)), 0)},
	{"transposed by three", transposed(geometry(1, 1, 7, 33, plane2(1, 4, 9), plane(1, 5), plane2(1, 3, 3), plane(0, 1), cube(1)), 1)},
	{"transposed without taps", transposed(geometry(2, 1, 5, 4, plane(1, 4), cube(1), plane(1, 2), cube(0), cube(1)), 1)},
	{"transposed depthwise", transposed(geometry(2, 19, 1, 1, plane2(1, 5, 7), plane(1, 3), plane(1, 2), plane(0, 1), cube(1)), 1)},
	{"transposed 1d", transposed(geometry(1, 1, 5, 6, line(1, 8), line(1, 16), line(1, 8), line(0, 4), cube(1)), 0)},
	{"transposed 3d", transposed(geometry(1, 1, 2, 3, cube(3), cube(3), cube(2), cube(1), cube(1)), 1)},
}

// finishes are what is done to the sums.
var finishes = []struct {
	name     string
	bias     bool
	residual bool
	scale    float64
	act      vec.Activation
}{
	{name: "plain"},
	{name: "bias", bias: true},
	{name: "relu", bias: true, act: vec.Activation{Kind: vec.ReLU}},
	{name: "add relu", bias: true, residual: true, act: vec.Activation{Kind: vec.ReLU}},
	{name: "add scaled silu", residual: true, scale: 0.5, act: vec.Activation{Kind: vec.SiLU}},
}

func apply(a vec.Activation, x float64) float64 {
	one := []float64{x}
	vec.Apply(a, one)
	return one[0]
}

// filters lays the filters out in one of several orders in memory.
func filters[T Element](r *reference, order int) ([]T, [5]int) {
	s := r.g.Filters()
	dims := [5]int{r.g.Groups * r.g.COut, r.g.CIn, r.g.Kernel[0], r.g.Kernel[1], r.g.Kernel[2]}
	if r.g.Transposed {
		dims[0], dims[1] = r.g.Groups*r.g.CIn, r.g.COut
	}
	perm := [][5]int{{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}, {4, 3, 2, 1, 0}}[order%3]
	var t [5]int
	step := 1
	for i := 4; i >= 0; i-- {
		t[perm[i]] = step
		step *= dims[perm[i]]
	}
	out := make([]T, len(r.w))
	for i, v := range r.w {
		at := 0
		for d := range dims {
			at += i / s[d] % dims[d] * t[d]
		}
		out[at] = vec.Narrow[T](v)
	}
	return out, t
}

func check[T Element, A Float](t *testing.T, r *reference, set *tile.Set[A], form Form, li, lo, procs, fin int, eps float64) {
	t.Helper()
	g := &r.g
	x := lay[T](r.x, g.N, g.Groups*g.CIn, g.In, li)
	y := lay[T](r.y, g.N, g.Groups*g.COut, g.Out, lo)
	f := finishes[fin]
	packed := newWeights(*g, form, set)
	packed.Use(aligned[A](packed.Len()))
	w, strides := filters[T](r, fin)
	SetWeights(packed, w, strides, 0, packed.Units())
	c := &Call[T, A]{Plan: newPlan[T](*g, x.l, y.l, set, procs, form), Y: y.data, X: x.data, Weights: packed, Activation: f.act, Scale: f.scale}
	if f.bias {
		c.Bias = narrow[T](r.bias)
	}
	if f.residual {
		c.Residual, c.ResidualLayout = y.data, y.l
	}
	if n := c.Plan.Units(); n > 0 && fin == 1 {
		c.Weights, c.Filters, c.FilterStrides = nil, w, strides
		c.Run()
	} else if n > 0 {
		c.Filters, c.FilterStrides = w, strides
		c.Do(0, n/2)
		c.Do(n/2, n)
	}
	where := layouts[li].name + "→" + layouts[lo].name + " " + f.name + " " + set.Name
	each(g.N, g.Groups*g.COut, g.Out, func(i, n, oc int, o [3]int) {
		want := r.sums[i]
		if f.bias {
			want += r.bias[oc]
		}
		if f.residual && f.scale != 0 {
			want += f.scale * r.y[i]
		} else if f.residual {
			want += r.y[i]
		}
		want = apply(f.act, want)
		at := y.at(n, oc, o)
		if got := f64(y.data[at]); !(math.Abs(got-want) <= eps*(r.sizes[i]+2)) {
			t.Fatalf("%s: image %d channel %d at %v: got %v, want %v", where, n, oc, o, got, want)
		}
		y.data[at] = 0
	})
	for i, v := range y.data {
		if v != 0 {
			t.Fatalf("%s: element %d between the outputs was written", where, i)
		}
	}
}

func TestConvolution(t *testing.T) {
	for _, c := range geometries {
		t.Run(c.name, func(t *testing.T) {
			r := newReference(c.g)
			for i := range 9 {
				li, lo := i/3, i%3
				for fin := range finishes {
					for _, set := range tile.Sets[float32]() {
						check[float32](t, r, set, Plain, li, lo, 1+fin, fin, 1e-6)
					}
				}
			}
		})
	}
}

func TestConvolutionTypes(t *testing.T) {
	for _, c := range geometries {
		t.Run(c.name, func(t *testing.T) {
			r := newReference(c.g)
			for i := range layouts {
				fin := i + 1
				for _, set := range tile.Sets[float64]() {
					check[float64](t, r, set, Plain, i, i, 1, fin, 1e-14)
				}
				for _, set := range tile.Sets[float32]() {
					check[vec.BF16](t, r, set, Plain, i, i, 2, fin, 1.0/128)
					check[vec.F16](t, r, set, Plain, i, i, 2, fin, 1.0/1024)
				}
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	g := geometry(1, 1, 16, 32, plane(1, 14), plane(1, 3), cube(1), plane(0, 1), cube(1))
	x, y := narrow[float32](random(1, 16*14*14)), make([]float32, 32*14*14)
	c := &Call[float32, float32]{
		Plan: New[float32, float32](g, ChannelsFirst(16, g.In), ChannelsFirst(32, g.Out), 1, false), X: x, Y: y,
		Weights: Pack[float32](narrow[float32](random(2, 32*16*9)), g.Filters(), g, formOf(&g, tile.Best[float32](), false)),
	}
	parallel.SetThreads(1)
	defer parallel.SetThreads(0)
	if n := testing.AllocsPerRun(20, func() { c.Do(0, c.Plan.Units()) }); n > 0 {
		t.Errorf("%v allocations in a run", n)
	}
}
