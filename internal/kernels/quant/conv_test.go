package quant

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/conv"
)

// convCases are geometries without their outputs' sizes, which follow.
var convCases = []struct {
	name string
	g    conv.Geometry
}{
	{"3x3", geometry(2, 1, 5, 7, [3]int{1, 9, 8}, [3]int{1, 3, 3}, 1, [3]int{0, 1, 1}, 1)},
	{"strided", geometry(1, 1, 3, 40, [3]int{1, 11, 12}, [3]int{1, 5, 3}, 2, [3]int{0, 2, 1}, 1)},
	{"dilated", geometry(1, 1, 4, 4, [3]int{1, 13, 10}, [3]int{1, 3, 3}, 1, [3]int{0, 2, 2}, 2)},
	{"pointwise", geometry(2, 1, 6, 33, [3]int{1, 5, 4}, [3]int{1, 1, 1}, 1, [3]int{}, 1)},
	{"pointwise strided", geometry(2, 1, 6, 9, [3]int{1, 5, 5}, [3]int{1, 1, 1}, 2, [3]int{}, 1)},
	{"groups", geometry(2, 3, 2, 4, [3]int{1, 6, 7}, [3]int{1, 3, 3}, 1, [3]int{0, 1, 1}, 1)},
	{"depthwise", geometry(2, 19, 1, 1, [3]int{1, 8, 9}, [3]int{1, 3, 3}, 2, [3]int{0, 1, 1}, 1)},
	{"volume", geometry(1, 1, 2, 3, [3]int{4, 5, 6}, [3]int{2, 3, 3}, 1, [3]int{1, 1, 1}, 1)},
	{"row", geometry(3, 1, 4, 6, [3]int{1, 1, 17}, [3]int{1, 1, 5}, 2, [3]int{0, 0, 2}, 1)},
	{"far padding", geometry(1, 1, 2, 2, [3]int{1, 3, 3}, [3]int{1, 2, 2}, 3, [3]int{0, 1, 1}, 1)},
}

func geometry(n, groups, in, out int, size, kernel [3]int, stride int, pad [3]int, dilation int) conv.Geometry {
	g := conv.Geometry{N: n, Groups: groups, CIn: in, COut: out, In: size, Kernel: kernel, Pad: pad}
	for d := range 3 {
		g.Stride[d], g.Dilation[d] = 1, 1
		if kernel[d] > 1 || size[d] > 1 {
			g.Stride[d], g.Dilation[d] = stride, dilation
		}
		g.Out[d] = (size[d]+2*pad[d]-g.Dilation[d]*(kernel[d]-1)-1)/g.Stride[d] + 1
	}
	return g
}

func TestConvolve(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, c := range convCases {
		g := c.g
		channels := g.CIn * g.Groups
		for name, l := range map[string]conv.Layout{"first": conv.ChannelsFirst(channels, g.In), "last": channelsLast(channels, g.In)} {
			t.Run(c.name+" "+name, func(t *testing.T) { checkConvolve(t, rng, g, l) })
		}
	}
}

func checkConvolve(t *testing.T, rng *rand.Rand, g conv.Geometry, l conv.Layout) {
	const zero = 113
	channels, outs := g.CIn*g.Groups, g.COut*g.Groups
	x, w := make([]uint8, g.N*channels*g.In[0]*g.In[1]*g.In[2]), make([]int8, outs*g.CIn*g.Kernel[0]*g.Kernel[1]*g.Kernel[2])
	for i := range x {
		x[i] = uint8(rng.Uint32())
	}
	for i := range w {
		w[i] = int8(rng.Uint32())
	}
	positions := g.N * g.Out[0] * g.Out[1] * g.Out[2]
	out := make(F32s, positions*outs)
	f := Finish{Factor: 0.5, Scale: floats(rng, outs), Bias: floats(rng, outs), Step: 1, Out: out, Stride: outs, OtherScale: 1}
	strides := g.Filters()
	Convolve(g, x, l, zero, PackFilters(w, strides, g), &f)
	for i, got := range out {
		p, o := i/outs, i%outs
		pos := [3]int{p / g.Out[2] / g.Out[1] % g.Out[0], p / g.Out[2] % g.Out[1], p % g.Out[2]}
		n := p / g.Out[2] / g.Out[1] / g.Out[0]
		var sum int32
		for c := range g.CIn {
			for k0 := range g.Kernel[0] {
				for k1 := range g.Kernel[1] {
					for k2 := range g.Kernel[2] {
						at, inside := n*l.Batch+(o/g.COut*g.CIn+c)*l.Channel, true
						for d, k := range [3]int{k0, k1, k2} {
							q := pos[d]*g.Stride[d] + k*g.Dilation[d] - g.Pad[d]
							inside = inside && q >= 0 && q < g.In[d]
							at += q * l.Spatial[d]
						}
						if inside {
							sum += (int32(x[at]) - zero) * int32(w[o*strides[0]+c*strides[1]+k0*strides[2]+k1*strides[3]+k2*strides[4]])
						}
					}
				}
			}
		}
		if want := float32(float32(float32(sum)*0.5)*f.Scale[o]) + f.Bias[o]; got != want {
			t.Fatalf("output %v of channel %d is %v, want %v", pos, o, got, want)
		}
	}
}

func BenchmarkConvolve(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		name string
		g    conv.Geometry
	}{
		{"3x3x64", geometry(1, 1, 64, 64, [3]int{1, 56, 56}, [3]int{1, 3, 3}, 1, [3]int{0, 1, 1}, 1)},
		{"1x1x256", geometry(1, 1, 256, 64, [3]int{1, 56, 56}, [3]int{1, 1, 1}, 1, [3]int{}, 1)},
		{"depthwise", geometry(1, 96, 1, 1, [3]int{1, 56, 56}, [3]int{1, 3, 3}, 1, [3]int{0, 1, 1}, 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := c.g
			outs := g.COut * g.Groups
			x, w := make([]uint8, g.CIn*g.Groups*g.In[1]*g.In[2]), make([]int8, outs*g.CIn*g.Kernel[1]*g.Kernel[2])
			f := Finish{Factor: 1, Scale: floats(rng, outs), Step: 2, Out: make(U8s, g.Out[1]*g.Out[2]*outs), Stride: outs}
			packed := PackFilters(w, g.Filters(), g)
			for b.Loop() {
				Convolve(g, x, channelsLast(g.CIn*g.Groups, g.In), 3, packed, &f)
			}
			ops := 2 * float64(g.Out[1]*g.Out[2]*len(w))
			b.ReportMetric(ops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
		})
	}
}

// channelsLast is the layout of an image whose channels adjoin.
func channelsLast(channels int, dims [3]int) conv.Layout {
	row := dims[2] * channels
	return conv.Layout{Batch: dims[0] * dims[1] * row, Channel: 1, Spatial: [3]int{dims[1] * row, row, channels}}
}
