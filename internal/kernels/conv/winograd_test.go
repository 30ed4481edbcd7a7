package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/sanitizer"
)

// winogradGeometries are convolutions that Winograd's is for.
var winogradGeometries = []struct {
	name string
	g    Geometry
}{
	{"padded", square(2, 16, 37, 9, 9, 1)},
	{"whole tiles", square(1, 32, 64, 8, 8, 1)},
	{"valid", square(2, 19, 32, 10, 7, 0)},
	{"wide", square(1, 17, 33, 3, 131, 1)},
	{"tall", square(1, 16, 16, 125, 1, 1)},
	{"one pixel", square(5, 24, 40, 1, 1, 1)},
	{"one output", square(1, 48, 16, 3, 3, 0)},
	{"much padding", square(2, 16, 20, 2, 5, 4)},
	{"many images", square(33, 16, 70, 2, 5, 1)},
	{"depth", geometry(1, 1, 16, 16, plane(3, 6), plane(1, 3), plane(2, 1), cube(1), cube(1))},
	{"deep", square(3, 260, 16, 2, 5, 1)},
	{"conflict", square(1, 1024, 16, 2, 2, 1)},
}

// square returns 3×3 filters over images of h×w.
func square(n, cin, cout, h, w, pad int) Geometry {
	return geometry(n, 1, cin, cout, plane2(1, h, w), plane(1, 3), cube(1), plane(0, pad), cube(1))
}

func TestWinograd(t *testing.T) {
	for i, c := range winogradGeometries {
		t.Run(c.name, func(t *testing.T) {
			r := newReference(c.g)
			for at := range 9 {
				for fin := range finishes {
					if (at+fin+i)%3 != 0 || !longtest.Enabled() && at != i%9 && fin != i%5 { // all meet somewhere
						continue
					}
					for _, set := range tile.Sets[float32]() {
						check[float32](t, r, set, Winograd, at/3, at%3, 1+fin, fin, 2e-6)
					}
				}
			}
			for at := range layouts {
				if !longtest.Enabled() && at != i%3 {
					continue
				}
				for _, set := range tile.Sets[float32]() {
					check[vec.BF16](t, r, set, Winograd, at, at, 2, at+1, 1.0/128)
					check[vec.F16](t, r, set, Winograd, at, at, 2, at+1, 1.0/1024)
				}
			}
		})
	}
}

func TestWinogradThreadsSameBits(t *testing.T) {
	all := []Geometry{square(33, 16, 40, 3, 5, 1), square(2, 19, 150, 9, 30, 1), square(1, 260, 40, 18, 21, 0)}
	if !longtest.Enabled() {
		all = all[:1]
	}
	for _, c := range all {
		for _, set := range tile.Sets[float32]() {
			sameBits[float32](t, c, set, Winograd)
		}
		sameBits[vec.BF16](t, c, tile.Best[float32](), Winograd)
	}
}

// TestWinogradError holds the error against sums in f64 to the stated bound, for
// numbers of one size and for those that are all positive.
func TestWinogradError(t *testing.T) {
	depths := []int{16, 64, 256}
	if !longtest.Enabled() {
		depths = depths[:2]
	}
	for _, cin := range depths {
		g := square(1, cin, 16, 12, 12, 1)
		rng := rand.New(rand.NewPCG(uint64(cin), 1))
		for _, positive := range []bool{false, true} {
			r := &reference{g: g, sums: make([]float64, 16*144), sizes: make([]float64, 16*144)}
			for range cin * 144 {
				v := float64(float32(rng.NormFloat64()))
				if positive {
					v = math.Abs(v)
				}
				r.x = append(r.x, v)
			}
			for range cin * 16 * 9 {
				r.w = append(r.w, float64(float32(rng.NormFloat64())))
			}
			each(1, 16, g.Out, func(i, n, oc int, o [3]int) { r.naive(i, n, oc, o) })
			for _, set := range tile.Sets[float32]() {
				y := winogradOf(g, set, narrow[float32](r.x), narrow[float32](r.w))
				for i, v := range y {
					if err := math.Abs(float64(v)-r.sums[i]) / (0x1p-23 * r.sizes[i]); err > 10 {
						t.Fatalf("%s, %d channels: output %d errs by %.1f units of what its products come to", set.Name, cin, i, err)
					}
				}
			}
		}
	}
}

// winogradOf convolves dense images with dense filters.
func winogradOf(g Geometry, set *tile.Set[float32], x, w []float32) []float32 {
	xl, yl := ChannelsFirst(g.CIn, g.In), ChannelsFirst(g.COut, g.Out)
	c := &Call[float32, float32]{
		Plan: newPlan[float32](g, xl, yl, set, 1, Winograd), X: x, Y: make([]float32, g.N*g.COut*volume(g.Out)),
		Filters: w, FilterStrides: g.Filters(),
	}
	c.Run()
	return c.Y
}

// TestWinogradSpecialValues puts numbers that are not finite, and large ones, in
// images and filters: exactly the outputs that meet them have them, as in the
// plain form.
func TestWinogradSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	g := square(2, 16, 40, 9, 10, 1)
	for _, c := range []struct {
		name   string
		x, w   float32
		xs, ws []int // places
	}{
		{"NaN in the image", nan, 1, []int{37, 90 * 17}, nil},
		{"infinity", inf, 1, []int{0, 44, 90*18 + 3}, nil},
		{"two infinities", -inf, 1, []int{44, 45}, nil},
		{"infinity in a filter", 1, inf, nil, []int{4, 16*9*35 + 7}},
		{"NaN in a filter", 1, nan, nil, []int{16 * 9 * 39}},
		{"infinity meets zero", inf, 0, []int{50}, []int{0, 1, 2, 9, 16*9*3 + 4}},
		{"sums that overflow on the way", 3e38, 0.25, []int{11, 12, 13, 23, 33}, []int{0, 5}},
	} {
		x, w := narrow[float32](random(5, 2*16*90)), narrow[float32](random(6, 40*16*9))
		for _, i := range c.xs {
			x[i] = c.x
		}
		for _, i := range c.ws {
			w[i] = c.w
		}
		for _, set := range tile.Sets[float32]() {
			got := winogradOf(g, set, x, w)
			for i, want := range plainOf(g, set, x, w) {
				v := float64(got[i])
				same := v == want || v != v && want != want || math.Abs(v-want) <= 1e-4+1e-5*math.Abs(want)
				if !same {
					t.Errorf("%s, %s: output %d is %v, want %v", set.Name, c.name, i, v, want)
					break
				}
			}
		}
	}
}

// plainOf is winogradOf in the plain form.
func plainOf(g Geometry, set *tile.Set[float32], x, w []float32) []float64 {
	xl, yl := ChannelsFirst(g.CIn, g.In), ChannelsFirst(g.COut, g.Out)
	c := &Call[float32, float32]{
		Plan: newPlan[float32](g, xl, yl, set, 1, Plain), X: x, Y: make([]float32, g.N*g.COut*volume(g.Out)),
		Filters: w, FilterStrides: g.Filters(),
	}
	c.Run()
	y := make([]float64, len(c.Y))
	vec.Load(y, c.Y)
	return y
}

// TestWinogradAgain holds what is computed again to the filters' scale, the bias and
// a residual in the output's place.
func TestWinogradAgain(t *testing.T) {
	g := square(1, 16, 33, 6, 7, 1)
	x, w := narrow[float32](random(1, 16*42)), narrow[float32](random(2, 33*16*9))
	scale, bias := narrow[float32](random(3, 33)), narrow[float32](random(4, 33))
	for _, special := range []float32{1, float32(math.Inf(-1))} {
		x[9] = special
		var want []float32
		for _, form := range []Form{Plain, Winograd} {
			set := tile.Best[float32]()
			weights := newWeights(g, form, set)
			weights.Use(aligned[float32](weights.Len()))
			SetWeights(weights, w, g.Filters(), 0, weights.Units())
			ScaleWeights(weights, scale, 0, weights.Units())
			l := ChannelsFirst(33, g.Out)
			y := narrow[float32](random(7, 33*42))
			c := &Call[float32, float32]{
				Plan: newPlan[float32](g, ChannelsFirst(16, g.In), l, set, 2, form), X: x, Y: y, Weights: weights,
				Filters: w, FilterStrides: g.Filters(), FilterScale: scale, Bias: bias, Residual: y, ResidualLayout: l,
				Activation: vec.Activation{Kind: vec.ReLU},
			}
			c.Run()
			if form == Plain {
				want = y
				continue
			}
			for i, v := range y {
				if d := math.Abs(float64(v - want[i])); v != want[i] && !(d <= 1e-4) && (v == v || want[i] == want[i]) {
					t.Fatalf("with %v: output %d is %v, want %v", special, i, v, want[i])
				}
			}
		}
	}
}

// TestFormOf names shapes where each form is clearly the faster.
func TestFormOf(t *testing.T) {
	for _, c := range []struct {
		name string
		g    Geometry
		once bool
		want Form
	}{
		{"batch", square(8, 64, 64, 56, 56, 1), true, Winograd},
		{"image", square(1, 128, 128, 28, 28, 1), true, Winograd},
		{"filters that take some megabytes", square(1, 256, 256, 14, 14, 1), false, Winograd},
		{"filters beyond any cache", square(1, 512, 512, 14, 14, 1), false, Plain},
		{"many filters for few outputs", square(1, 512, 512, 7, 7, 1), false, Plain},
		{"packed once", square(1, 64, 64, 8, 8, 1), false, Winograd},
		{"packed each time", square(1, 64, 64, 8, 8, 1), true, Plain},
		{"few channels", square(8, 3, 64, 56, 56, 1), true, Plain},
		{"one output", square(1, 64, 64, 3, 3, 0), false, Plain},
		{"no images", square(0, 64, 64, 56, 56, 1), false, Plain},
		{"stride", geometry(8, 1, 64, 64, plane(1, 56), plane(1, 3), plane(1, 2), plane(0, 1), cube(1)), false, Plain},
		{"dilation", geometry(8, 1, 64, 64, plane(1, 56), plane(1, 3), cube(1), plane(0, 1), plane(1, 2)), false, Plain},
		{"5x5", geometry(8, 1, 64, 64, plane(1, 56), plane(1, 5), cube(1), plane(0, 1), cube(1)), false, Plain},
		{"groups", geometry(8, 2, 64, 64, plane(1, 56), plane(1, 3), cube(1), plane(0, 1), cube(1)), false, Plain},
		{"transposed", transposed(square(8, 64, 64, 56, 56, 1), 0), false, Plain},
	} {
		for _, set := range tile.Sets[float32]() {
			if got := formOf(&c.g, set, c.once); got != c.want {
				t.Errorf("%s, %s: form %d, want %d", set.Name, c.name, got, c.want)
			}
		}
		if got := formOf(&c.g, tile.Best[float64](), c.once); got != Plain {
			t.Errorf("%s: form %d of f64", c.name, got)
		}
	}
}

// TestFormPerImage tries many numbers of images: with PerImage the form is that of one. Shapes of
// which the form would be another for many are among them.
func TestFormPerImage(t *testing.T) {
	for _, c := range []struct {
		name    string
		g       Geometry
		differs bool
	}{
		{"small", square(1, 32, 32, 4, 4, 1), true},
		{"VGG's last stage", square(1, 512, 512, 14, 14, 1), true},
		{"ResNet's last stage", square(1, 512, 512, 7, 7, 1), true},
		{"large", square(1, 64, 64, 56, 56, 1), false},
	} {
		for _, once := range []bool{false, true} {
			one := formOf(&c.g, tile.Best[float32](), once)
			differs := false
			for n := 1; n <= 64; n++ {
				g := c.g
				g.N = n
				differs = differs || formOf(&g, tile.Best[float32](), once) != one
				g.PerImage = true
				if got := formOf(&g, tile.Best[float32](), once); got != one {
					t.Errorf("%s, %d images, packed each time %v: form %d, for one it is %d", c.name, n, once, got, one)
				}
			}
			if differs != c.differs {
				t.Errorf("%s, packed each time %v: the form differs by the number of images: %v, want %v", c.name, once, differs, c.differs)
			}
		}
	}
}

func TestWinogradAllocatesNothing(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector makes pools drop what they keep")
	}
	g := square(1, 16, 40, 14, 14, 1)
	x, w := narrow[float32](random(1, 16*14*14)), narrow[float32](random(2, 40*16*9))
	parallel.SetThreads(1)
	defer parallel.SetThreads(0)
	for _, special := range []float32{0, float32(math.NaN())} {
		x[5] = special
		c := &Call[float32, float32]{
			Plan: newPlan[float32](g, ChannelsFirst(16, g.In), ChannelsFirst(40, g.Out), tile.Best[float32](), 1, Winograd), X: x,
			Y: make([]float32, 40*14*14), Weights: NewWeights[float32](g, Winograd), Filters: w, FilterStrides: g.Filters(),
		}
		run := func() {
			SetWeights(c.Weights, w, c.FilterStrides, 0, c.Weights.Units())
			c.Do(0, c.Plan.Units())
		}
		if n := testing.AllocsPerRun(20, run); n > 0 {
			t.Errorf("%v allocations in a run with a %v", n, special)
		}
	}
}
