package emit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/ir"
)

// elements writes small whole numbers as elements of a dtype.
func elements(d ir.DType, x []int) []byte {
	switch d {
	case ir.F32:
		return converted(x, func(v int) float32 { return float32(v) })
	case ir.F64:
		return converted(x, func(v int) float64 { return float64(v) })
	case ir.F16:
		return converted(x, func(v int) uint16 { return half.F64ToF16(float64(v)) })
	case ir.BF16:
		return converted(x, func(v int) uint16 { return half.F64ToBF16(float64(v)) })
	case ir.I64:
		return converted(x, func(v int) int64 { return int64(v) })
	case ir.I32:
		return converted(x, func(v int) int32 { return int32(v) })
	case ir.I8:
		return converted(x, func(v int) int8 { return int8(v) })
	case ir.U8:
		return converted(x, func(v int) uint8 { return uint8(v) })
	}
	return converted(x, func(v int) bool { return v != 0 })
}

func converted[T any](x []int, f func(int) T) []byte {
	out := make([]T, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return bytesOf(out)
}

func TestProducts(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, dt := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I8, ir.U8, ir.Bool} {
		for _, dims := range [][3]int{{1, 1, 1}, {3, 70, 17}, {65, 5, 40}, {2, 3, 0}} {
			m, n, k := dims[0], dims[1], dims[2]
			most := 3 // sums are whole numbers that all floats have
			if dt == ir.Bool {
				most = 2
			}
			batch := []int{2, 3}
			x := random(2*m*k, func() int { return r.IntN(most) })
			y := random(3*k*n, func() int { return r.IntN(most) - most/3 })
			// x lies by rows, one for each first number of the batch; y by columns.
			g := Product{DType: dt, M: m, N: n, K: k, XRow: k, XCol: 1, YRow: 1, YCol: k, Batch: batch, XBatch: []int{m * k, 0}, YBatch: []int{0, k * n}}
			var want []int
			for b := range 6 {
				for i := range m {
					for j := range n {
						sum := 0
						for q := range k {
							sum += x[b/3*m*k+i*k+q] * y[b%3*k*n+j*k+q]
						}
						want = append(want, sum)
					}
				}
			}
			out := elements(dt, want)
			d.routine(fmt.Sprintf("%v %v", dt, dims), g.Plan(small), [][]byte{make([]byte, len(out)), elements(dt, x), elements(dt, y)}, []ir.DType{dt}, 0, out)
		}
	}
	d.run()
}

// convolved is a convolution by its definition: what element x of an input channel
// meets is element o of a result if o·stride - pad + tap·dilation is x, and the
// other way round if it is transposed.
func convolved(g *Convolution, x, f, bias []int) []int {
	in, out, taps := numel(g.In[:]), numel(g.Out[:]), numel(g.Kernel[:])
	all := g.Groups * g.Results
	sums := make([]int, g.Images*all*out)
	place := func(i int, dims [3]int) [3]int {
		return [3]int{i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]}
	}
	meets := func(i, o, tap int) bool {
		a, b, q := place(i, g.In), place(o, g.Out), place(tap, g.Kernel)
		if g.Transposed {
			a, b = b, a
		}
		for d := range 3 {
			if b[d]*g.Stride[d]-g.Pad[d]+q[d]*g.Dilation[d] != a[d] {
				return false
			}
		}
		return true
	}
	for at := range sums {
		image, channel, o := at/out/all, at/out%all, at%out
		group := channel / g.Results
		for c := range g.Channels {
			for tap := range taps {
				for i := range in {
					if meets(i, o, tap) {
						sums[at] += x[image*g.XImage+(group*g.Channels+c)*g.XChannel+i] *
							f[group*g.FGroup+channel%g.Results*g.FResult+c*g.FInput+tap]
					}
				}
			}
		}
		if g.Bias {
			sums[at] += bias[channel]
		}
	}
	return sums
}

func TestConvolutions(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, dt := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16} {
		for _, transposed := range []bool{false, true} {
			for _, w := range []Window{
				{In: [3]int{1, 1, 9}, Out: [3]int{1, 1, 4}, Kernel: [3]int{1, 1, 3}, Stride: [3]int{1, 1, 2}, Dilation: [3]int{1, 1, 1}},
				{In: [3]int{2, 5, 4}, Out: [3]int{3, 5, 2}, Kernel: [3]int{2, 3, 2}, Stride: [3]int{1, 1, 2}, Pad: [3]int{1, 1, 0}, Dilation: [3]int{1, 1, 2}},
			} {
				if transposed {
					w.In, w.Out = w.Out, w.In
				}
				in, taps := numel(w.In[:]), numel(w.Kernel[:])
				g := Convolution{Window: w, DType: dt, Images: 2, Groups: 2, Channels: 3, Results: 2, Transposed: transposed, Bias: in%2 == 0}
				g.XImage, g.XChannel, g.XAt = 6*in, in, [3]int{w.In[1] * w.In[2], w.In[2], 1}
				g.FGroup, g.FResult, g.FInput = 6*taps, 3*taps, taps
				if transposed {
					g.FResult, g.FInput = taps, 2*taps
				}
				g.FAt = [3]int{w.Kernel[1] * w.Kernel[2], w.Kernel[2], 1}
				number := func() int { return r.IntN(5) - 2 }
				x, f, bias := random(12*in, number), random(12*taps, number), random(4, number)
				want := elements(dt, convolved(&g, x, f, bias))
				d.routine(fmt.Sprintf("%+v", g), g.Plan(small), [][]byte{make([]byte, len(want)), elements(dt, x), elements(dt, f), elements(dt, bias)},
					[]ir.DType{dt}, 0, want)
			}
		}
	}
	d.run()
}

func pooled[T kernels.Number](d *device, dt ir.DType, x []T, least T) {
	g := MaxPool{Window{In: [3]int{1, 4, 7}, Out: [3]int{1, 3, 4}, Kernel: [3]int{1, 2, 3}, Stride: [3]int{1, 2, 2}, Pad: [3]int{0, 1, 1}, Dilation: [3]int{1, 3, 1}}, dt, len(x) / 28}
	values, indices := make([]T, 12*g.Batch), make([]int64, 12*g.Batch)
	for at := range values {
		b, o := at/12, at%12
		values[at] = least
		found := false
		for q := range 6 {
			i, j := o/4*2-1+q/3*3, o%4*2-1+q%3
			if i < 0 || i > 3 || j < 0 || j > 6 {
				continue
			}
			if v := x[b*28+i*7+j]; !found || v > values[at] || v != v {
				found, values[at], indices[at] = true, v, int64(i*7+j)
			}
		}
	}
	d.routine(fmt.Sprintf("max_pool %v", dt), g.Plan(small), [][]byte{make([]byte, len(bytesOf(values))), make([]byte, 8*len(indices)), bytesOf(x)},
		[]ir.DType{dt, ir.I64}, 0, bytesOf(values), bytesOf(indices))
}

func TestMaxPool(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	float := func() float64 {
		if r.IntN(8) == 0 {
			return math.NaN()
		}
		return float64(r.IntN(4))
	}
	pooled(d, ir.F32, random(84, func() float32 { return float32(float()) }), float32(math.Inf(-1)))
	pooled(d, ir.F64, random(84, float), math.Inf(-1))
	pooled(d, ir.I8, random(84, func() int8 { return int8(r.Uint32()) }), math.MinInt8)
	pooled(d, ir.U8, random(84, func() uint8 { return uint8(r.Uint32()) }), 0)
	pooled(d, ir.I64, random(84, func() int64 { return int64(r.Uint64()) }), math.MinInt64)
	d.run()
}
