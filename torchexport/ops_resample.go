package torchexport

import "math"

// antialiased resizes images by a filter that is as much wider as the image gets smaller: a product
// with a matrix for each direction, which only sizes decide. support is how far the filter reaches.
func antialiased(filter func(x float64) float64, support float64) func(c *call) []any {
	return func(c *call) []any {
		x, ok := c.first()
		if !ok || x.value().Rank() != 4 {
			panic(misuse(c.n.target, "it resizes batches of images"))
		}
		t := x.value()
		scales := c.scales(2)
		size := c.intsOr("output_size", nil)
		if size == nil {
			for i, s := range scales {
				f, _ := s.(float64)
				size = append(size, int(math.Floor(float64(t.Dim(2+i))*f)))
			}
		}
		if len(size) != 2 || size[0] <= 0 || size[1] <= 0 {
			panic(misuse(c.n.target, "output_size %v", size))
		}
		corners := c.boolOr("align_corners", false)
		for i, n := range size {
			from := t.Dim(2 + i)
			if from == 0 || n > maxResampled/from {
				panic(misuse(c.n.target, "resizing %d to %d", from, n))
			}
			m := resampling(from, n, step(from, n, scales[i], corners), filter, support)
			w := c.maker().FromSlice(m, n, from).Cast(t.DType())
			if i == 0 {
				t = w.MatMul(t)
			} else {
				t = t.MatMul(w.Transpose(0, 1))
			}
		}
		return one(t)
	}
}

// maxResampled bounds the elements of a matrix that resizes.
const maxResampled = 1 << 26

// step is the distance of two results in pixels of the image.
func step(from, to int, scale any, corners bool) float64 {
	if corners {
		if to == 1 {
			return 0
		}
		return float64(from-1) / float64(to-1)
	}
	if f, ok := scale.(float64); ok && f > 0 {
		return 1 / f
	}
	return float64(from) / float64(to)
}

// resampling returns the weights of each of n pixels for each result, row by row.
func resampling(from, to int, step float64, filter func(float64) float64, support float64) []float32 {
	out := make([]float32, to*from)
	wide := max(step, 1)
	for i := range to {
		center := step * (float64(i) + 0.5)
		lo, hi := max(int(center-support*wide+0.5), 0), min(int(center+support*wide+0.5), from)
		row, sum := out[i*from:][:from], 0.0
		for j := lo; j < hi; j++ {
			sum += filter((float64(j) - center + 0.5) / wide)
		}
		for j := lo; j < hi && sum != 0; j++ {
			row[j] = float32(filter((float64(j)-center+0.5)/wide) / sum)
		}
	}
	return out
}

func triangle(x float64) float64 { return max(1-math.Abs(x), 0) }

// cubic is Keys' filter with a = -0.5, which PyTorch takes where it antialiases.
func cubic(x float64) float64 {
	const a = -0.5
	switch x = math.Abs(x); {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}
