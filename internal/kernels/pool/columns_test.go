package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Each element of the image is the sum of its columns' along rows and then between them, with the same bits
// whether rows adjoin or not, and what is not a number stays where it belongs.
func TestToImage(t *testing.T) {
	for _, g := range []Columns{
		{In: [2]int{5, 7}, Kernel: [2]int{3, 3}, Dilation: [2]int{1, 1}, Pad: [2]int{1, 1}, Stride: [2]int{1, 1}},
		{In: [2]int{9, 40}, Kernel: [2]int{2, 5}, Dilation: [2]int{3, 2}, Pad: [2]int{0, 4}, Stride: [2]int{1, 1}},
		{In: [2]int{4, 6}, Kernel: [2]int{1, 1}, Dilation: [2]int{1, 1}, Pad: [2]int{0, 0}, Stride: [2]int{1, 1}},
		{In: [2]int{6, 3}, Kernel: [2]int{3, 5}, Dilation: [2]int{1, 1}, Pad: [2]int{2, 2}, Stride: [2]int{1, 1}},
		{In: [2]int{8, 9}, Kernel: [2]int{3, 3}, Dilation: [2]int{1, 1}, Pad: [2]int{1, 1}, Stride: [2]int{2, 1}},
		{In: [2]int{8, 9}, Kernel: [2]int{3, 2}, Dilation: [2]int{2, 1}, Pad: [2]int{1, 0}, Stride: [2]int{1, 2}},
		{In: [2]int{1, 30}, Kernel: [2]int{3, 3}, Dilation: [2]int{1, 1}, Pad: [2]int{1, 1}, Stride: [2]int{1, 1}},
	} {
		for d := range g.Windows {
			g.Windows[d] = (g.In[d]+2*g.Pad[d]-g.Dilation[d]*(g.Kernel[d]-1)-1)/g.Stride[d] + 1
		}
		t.Run(fmt.Sprint(g), func(t *testing.T) { testToImage[float32](t, &g, nil) })
		t.Run(fmt.Sprint(g, "rounded"), func(t *testing.T) {
			testToImage(t, &g, func(x []float64) {
				for i := range x {
					x[i] = float64(float32(x[i]))
				}
			})
		})
	}
}

func testToImage[T float32 | float64](t *testing.T, g *Columns, round func([]T)) {
	rng := rand.New(rand.NewPCG(1, 2))
	columns := make([]T, g.Kernel[0]*g.Kernel[1]*g.Windows[0]*g.Windows[1])
	for i := range columns {
		if columns[i] = T(rng.NormFloat64()); rng.IntN(50) == 0 {
			columns[i] = T(math.Inf(1 - 2*rng.IntN(2)))
		}
	}
	want := make([]T, g.In[0]*g.In[1])
	for i := range g.Kernel[0] {
		for h := range g.Windows[0] {
			y := h*g.Stride[0] + i*g.Dilation[0] - g.Pad[0]
			if y < 0 || y >= g.In[0] {
				continue
			}
			line := make([]T, g.In[1])
			for j := range g.Kernel[1] {
				for w := range g.Windows[1] {
					if x := w*g.Stride[1] + j*g.Dilation[1] - g.Pad[1]; x >= 0 && x < g.In[1] {
						line[x] += columns[((i*g.Kernel[1]+j)*g.Windows[0]+h)*g.Windows[1]+w]
					}
				}
			}
			if round != nil {
				round(line)
			}
			for x, v := range line {
				want[y*g.In[1]+x] += v
			}
		}
	}
	got := make([]T, len(want))
	ToImage(g, got, columns, make([]T, g.Scratch()), round)
	for i, v := range want {
		if got[i] != v && (got[i] == got[i] || v == v) {
			t.Fatalf("element %d is %v, want %v", i, got[i], v)
		}
	}
}
