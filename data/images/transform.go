package images

import (
	"math"
	"math/rand/v2"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// A Transform makes an image of another, which it leaves as it is. Random ones take their numbers
// from r. Settings that cannot be panic with an *OpError where the Transform is made; an image that
// is too small for it, where it is applied.
type Transform func(r *rand.Rand, im *Image) *Image

// Compose returns a transform that applies all, one after the other.
func Compose(ts ...Transform) Transform {
	return func(r *rand.Rand, im *Image) *Image {
		for _, t := range ts {
			im = t(r, im)
		}
		return im
	}
}

func misuse(op, format string, args ...any) error {
	return ir.NewOpError("images."+op, loris.ErrArg, nil, format, args...)
}

// Resize returns a transform to h rows and w columns: bilinear, and where the image becomes smaller
// with the mean of what a pixel covers, weighted by distance, as in PyTorch with antialias.
func Resize(h, w int) Transform {
	if h < 1 || w < 1 {
		panic(misuse("Resize", "%d by %d pixels", h, w))
	}
	return func(_ *rand.Rand, im *Image) *Image {
		wide := New(im.C, im.H, w)
		weights := triangle(im.W, w)
		for i := range im.C * im.H {
			weights.apply(wide.Pix[i*w:(i+1)*w], im.Pix[i*im.W:(i+1)*im.W], 1)
		}
		out := New(im.C, h, w)
		weights = triangle(im.H, h)
		for c := range im.C {
			for x := range w {
				weights.apply(out.Pix[c*h*w+x:], wide.Pix[c*im.H*w+x:], w)
			}
		}
		return out
	}
}

// filter says of which elements each element of a resized line is the weighted mean.
type filter []struct {
	first   int
	weights []float32
}

// triangle returns the weights from n to m elements.
func triangle(n, m int) filter {
	scale := float64(n) / float64(m)
	reach := max(scale, 1)
	f := make(filter, m)
	for i := range f {
		centre := (float64(i) + 0.5) * scale
		first := max(0, int(centre-reach+0.5))
		last := min(n, int(centre+reach+0.5))
		sum := 0.0
		weights := make([]float64, last-first)
		for k := range weights {
			weights[k] = max(0, 1-math.Abs((float64(first+k)-centre+0.5)/reach))
			sum += weights[k]
		}
		f[i].first = first
		for _, w := range weights {
			f[i].weights = append(f[i].weights, float32(w/sum))
		}
	}
	return f
}

// apply computes a line whose elements are stride apart in both slices.
func (f filter) apply(dst, src []float32, stride int) {
	for i, e := range f {
		sum := float32(0)
		for k, w := range e.weights {
			sum += w * src[(e.first+k)*stride]
		}
		dst[i*stride] = sum
	}
}

// crop copies the h by w pixels at y, x; what lies outside of the image is 0.
func (im *Image) crop(y, x, h, w int) *Image {
	out := New(im.C, h, w)
	for c := range im.C {
		for i := max(0, -y); i < min(h, im.H-y); i++ {
			if from, to := max(0, -x), min(w, im.W-x); from < to {
				copy(out.row(c, i)[from:to], im.row(c, y+i)[x+from:])
			}
		}
	}
	return out
}

// CenterCrop returns a transform to the h by w pixels in the middle; outside of the image is 0.
func CenterCrop(h, w int) Transform {
	if h < 1 || w < 1 {
		panic(misuse("CenterCrop", "%d by %d pixels", h, w))
	}
	return func(_ *rand.Rand, im *Image) *Image { return im.crop((im.H-h)/2, (im.W-w)/2, h, w) }
}

// RandomCrop returns a transform to h by w pixels anywhere in the image with pad zeros around it.
func RandomCrop(h, w, pad int) Transform {
	if h < 1 || w < 1 || pad < 0 {
		panic(misuse("RandomCrop", "%d by %d pixels with a padding of %d", h, w, pad))
	}
	return func(r *rand.Rand, im *Image) *Image {
		if im.H+2*pad < h || im.W+2*pad < w {
			panic(misuse("RandomCrop", "%d by %d pixels of an image of %d by %d with a padding of %d", h, w, im.H, im.W, pad))
		}
		return im.crop(r.IntN(im.H+2*pad-h+1)-pad, r.IntN(im.W+2*pad-w+1)-pad, h, w)
	}
}

// RandomFlip returns a transform that exchanges left and right with probability p.
func RandomFlip(p float64) Transform {
	if !(p >= 0 && p <= 1) {
		panic(misuse("RandomFlip", "a probability of %v", p))
	}
	return func(r *rand.Rand, im *Image) *Image {
		if r.Float64() >= p {
			return im
		}
		out := New(im.C, im.H, im.W)
		for c := range im.C {
			for y := range im.H {
				to := out.row(c, y)
				for x, v := range im.row(c, y) {
					to[im.W-1-x] = v
				}
			}
		}
		return out
	}
}

// RandomAffine returns a transform that turns the image about its middle by up to degrees in either
// direction, shifts it by up to shift of its height and width, and scales it by 1-scale to 1+scale,
// each uniformly at random. Pixels are interpolated; outside of the image is 0.
func RandomAffine(degrees, shift, scale float64) Transform {
	if !(degrees >= 0 && shift >= 0 && scale >= 0 && scale < 1) || math.IsInf(degrees+shift, 0) {
		panic(misuse("RandomAffine", "%v degrees, a shift of %v, a scale of %v", degrees, shift, scale))
	}
	return func(r *rand.Rand, im *Image) *Image {
		uniform := func(bound float64) float64 { return bound * (2*r.Float64() - 1) }
		sin, cos := math.Sincos(uniform(degrees) * math.Pi / 180)
		zoom := 1 / (1 + uniform(scale))
		dy, dx := uniform(shift)*float64(im.H), uniform(shift)*float64(im.W)
		return im.sample(func(y, x float64) (float64, float64) {
			y, x = (y-dy)*zoom, (x-dx)*zoom
			return cos*y - sin*x, sin*y + cos*x
		})
	}
}

// sample returns an image whose pixels lie in im where from says; both count from the middle.
func (im *Image) sample(from func(y, x float64) (float64, float64)) *Image {
	out := New(im.C, im.H, im.W)
	midY, midX := float64(im.H-1)/2, float64(im.W-1)/2
	for y := range im.H {
		for x := range im.W {
			fy, fx := from(float64(y)-midY, float64(x)-midX)
			fy, fx = fy+midY, fx+midX
			y0, x0 := math.Floor(fy), math.Floor(fx)
			if !(y0 >= -1 && x0 >= -1 && y0 < float64(im.H) && x0 < float64(im.W)) {
				continue
			}
			wy, wx := float32(fy-y0), float32(fx-x0)
			for c := range im.C {
				out.row(c, y)[x] = (1-wy)*((1-wx)*im.at(c, int(y0), int(x0))+wx*im.at(c, int(y0), int(x0)+1)) +
					wy*((1-wx)*im.at(c, int(y0)+1, int(x0))+wx*im.at(c, int(y0)+1, int(x0)+1))
			}
		}
	}
	return out
}

// at returns a pixel, 0 outside of the image.
func (im *Image) at(c, y, x int) float32 {
	if y < 0 || x < 0 || y >= im.H || x >= im.W {
		return 0
	}
	return im.row(c, y)[x]
}

// Normalize returns a transform that subtracts mean and divides by std, each one number for all
// channels or one for each.
func Normalize(mean, std []float32) Transform {
	for _, s := range std {
		if s == 0 {
			panic(misuse("Normalize", "a standard deviation of 0"))
		}
	}
	return func(_ *rand.Rand, im *Image) *Image {
		if (len(mean) != 1 && len(mean) != im.C) || (len(std) != 1 && len(std) != im.C) {
			panic(misuse("Normalize", "%d means and %d standard deviations for %d channels", len(mean), len(std), im.C))
		}
		out := New(im.C, im.H, im.W)
		n := im.H * im.W
		for i, v := range im.Pix {
			out.Pix[i] = (v - mean[i/n%len(mean)]) / std[i/n%len(std)]
		}
		return out
	}
}
