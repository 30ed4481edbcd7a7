package emit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
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

// productCase is a product that is computed in a certain way.
type productCase struct {
	dtype   ir.DType
	m, n, k int
	// x lies by rows and y by columns unless they are turned; gap is between lines.
	turnX, turnY bool
	gap          int
	tf32         bool
	post         Post
	processors   int
	want         string // in the names of the entries
}

// productCases have each tile, each way to it and each unit.
var productCases = []productCase{
	{dtype: ir.F32, m: 120, n: 125, k: 100, want: "f32_TileForm_128_128_by_chunks_by_chunks_by_fma_false"},
	{dtype: ir.F32, m: 1, n: 1, k: 0, gap: 4, want: "128_32_by_chunks_by_chunks_by_fma"},
	{dtype: ir.F32, m: 3, n: 70, k: 17, turnY: true, want: "32_128_along_depth_across_rows_by_fma"},
	{dtype: ir.F32, m: 50, n: 90, k: 40, gap: 1, want: "64_128_along_depth_along_depth_by_fma"},
	{dtype: ir.F32, m: 120, n: 60, k: 40, tf32: true, want: "128_64_by_chunks_by_chunks_by_tf32"},
	{dtype: ir.F32, m: 20, n: 30, k: 3000, processors: 16, want: "by_fma_false loris_join_parts_f32_false"},
	{dtype: ir.F32, m: 20, n: 30, k: 24, post: Post{Links: []Link{{aten.Mul, false}, {aten.Add, true}}, Addend: true, Act: ReLU}, want: "by_fma_true"},
	{dtype: ir.F16, m: 120, n: 125, k: 72, want: "f16_TileForm_128_128_by_chunks_by_chunks_by_mma_false"},
	{dtype: ir.F16, m: 65, n: 5, k: 40, gap: 1, turnX: true, want: "128_32_across_rows_along_depth_by_mma"},
	{dtype: ir.BF16, m: 50, n: 60, k: 40, turnX: true, turnY: true, want: "64_64_across_rows_across_rows_by_mma"},
	{dtype: ir.BF16, m: 20, n: 30, k: 3000, processors: 16, gap: 8, post: Post{Addend: true, Act: ReLU}, want: "by_mma_false loris_join_parts_bf16_true"},
	{dtype: ir.F64, m: 65, n: 5, k: 40, want: "f64_TileForm_128_32_by_chunks_by_chunks_by_fma"},
	{dtype: ir.I64, m: 3, n: 70, k: 17, want: "i64_TileForm_32_128_along_depth_along_depth_by_fma"},
	{dtype: ir.I8, m: 50, n: 60, k: 80, want: "i8_TileForm_64_64_by_chunks_by_chunks_by_fma"},
	{dtype: ir.Bool, m: 3, n: 7, k: 17, turnX: true, want: "bool8_TileForm_64_64_across_rows_along_depth_by_fma"},
}

// strides returns those of a batch of two matrices of rows × cols, and the elements
// that they have.
func strides(rows, cols, gap int, turned bool) (row, col, batch, n int) {
	if turned {
		row, col = 1, rows+gap
		return row, col, cols * col, 2 * cols * col
	}
	row, col = cols+gap, 1
	return row, col, rows * row, 2 * rows * row
}

func TestProducts(t *testing.T) {
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range productCases {
		most := 3 // sums are whole numbers that all floats have
		if c.dtype == ir.Bool {
			most = 2
		}
		g := Product{DType: c.dtype, M: c.m, N: c.n, K: c.k, Batch: []int{2, 2}, XAlign: 256, YAlign: 256, TF32: c.tf32, Post: c.post}
		var xBatch, xs, yBatch, ys int
		g.XRow, g.XCol, xBatch, xs = strides(c.m, c.k, c.gap, c.turnX)
		g.YCol, g.YRow, yBatch, ys = strides(c.n, c.k, c.gap, c.turnY)
		g.XBatch, g.YBatch = []int{xBatch, 0}, []int{0, yBatch} // each is shared by some
		x := random(xs, func() int { return r.IntN(most) })
		y := random(ys, func() int { return r.IntN(most) - most/3 })
		vector := random(c.n, func() int { return r.IntN(most) })
		addend := random(4*c.m*c.n, func() int { return r.IntN(most) })
		var want []int
		for b := range 4 {
			for i := range c.m {
				for j := range c.n {
					sum := 0
					for q := range c.k {
						sum += x[b/2*xBatch+i*g.XRow+q*g.XCol] * y[b%2*yBatch+j*g.YCol+q*g.YRow]
					}
					want = append(want, posted(&c.post, sum, vector[j], addend, len(want)))
				}
			}
		}
		out := elements(c.dtype, want)
		operands := [][]byte{make([]byte, len(out)), elements(c.dtype, x), elements(c.dtype, y)}
		operands = append(operands, postOperands(&c.post, c.dtype, vector, addend)...)
		p := g.Plan(Limits{Processors: max(c.processors, 2), Threads: 64, Tensor: true})
		d.routine(fmt.Sprintf("%+v", c), p, operands, []ir.DType{c.dtype}, 0, out)
		checkEntries(t, p, c.want)
	}
	d.run()
}

// posted does what a Post does to a whole number: of links it knows factors of 2,
// and vectors that are added.
func posted(p *Post, sum, vector int, addend []int, at int) int {
	for _, l := range p.Links {
		if l.Op == aten.Mul {
			sum *= 2
		} else {
			sum += vector
		}
	}
	if p.Addend {
		sum += addend[at]
	}
	if p.Act == ReLU {
		sum = max(sum, 0)
	}
	return sum
}

func postOperands(p *Post, d ir.DType, vector, addend []int) (operands [][]byte) {
	for _, l := range p.Links {
		if l.Vector {
			operands = append(operands, elements(d, vector))
		} else {
			operands = append(operands, elements(d, []int{2}))
		}
	}
	if p.Addend {
		operands = append(operands, elements(d, addend))
	}
	return operands
}

// convolved is a convolution by its definition: element o of a result meets by a
// tap what is at o·stride - pad + tap·dilation of an input channel, and the other
// way round if it is transposed.
func convolved(g *Convolution, x, f, vector, addend []int) []int {
	out, all := numel(g.Out[:]), g.Groups*g.Results
	sums := make([]int, g.Images*all*out)
	for at := range sums {
		image, channel, o := at/out/all, at/out%all, spot(at%out, g.Out)
		group := channel / g.Results
		for t := range numel(g.Kernel[:]) {
			i, j := image*g.XImage+group*g.Channels*g.XChannel, group*g.FGroup+channel%g.Results*g.FResult
			met := true
			for d, tap := range spot(t, g.Kernel) {
				p := o[d]*g.Stride[d] - g.Pad[d] + tap*g.Dilation[d]
				if g.Transposed {
					p = o[d] + g.Pad[d] - tap*g.Dilation[d]
					met = met && p%g.Stride[d] == 0
					p /= g.Stride[d]
				}
				met = met && p >= 0 && p < g.In[d]
				i, j = i+p*g.XAt[d], j+tap*g.FAt[d]
			}
			for c := 0; met && c < g.Channels; c++ {
				sums[at] += x[i+c*g.XChannel] * f[j+c*g.FInput]
			}
		}
		sums[at] = posted(&g.Post, sums[at], vector[channel], addend, at)
	}
	return sums
}

// spot returns where element i of dimensions is.
func spot(i int, dims [3]int) [3]int {
	return [3]int{i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]}
}

// plane is a window of two dimensions.
func plane(in, kernel, stride, pad, dilation [2]int) (w Window) {
	three := func(v [2]int, lead int) [3]int { return [3]int{lead, v[0], v[1]} }
	w = Window{In: three(in, 1), Kernel: three(kernel, 1), Stride: three(stride, 1), Pad: three(pad, 0), Dilation: three(dilation, 1)}
	for d := range 3 {
		w.Out[d] = (w.In[d]+2*w.Pad[d]-w.Dilation[d]*(w.Kernel[d]-1)-1)/w.Stride[d] + 1
	}
	return w
}

// turned is the window of the transposed convolution, with more rows behind.
func turned(w Window, more int) Window {
	w.In, w.Out = w.Out, w.In
	w.Out[1] += more
	return w
}

func TestConvolutions(t *testing.T) {
	one, none := [2]int{1, 1}, [2]int{}
	cube := Window{In: [3]int{2, 5, 4}, Out: [3]int{3, 5, 2}, Kernel: [3]int{2, 3, 2}, Stride: [3]int{1, 1, 2}, Pad: [3]int{1, 1, 0}, Dilation: [3]int{1, 1, 2}}
	wide := plane([2]int{9, 8}, [2]int{3, 2}, [2]int{2, 3}, one, [2]int{1, 2})
	even := plane([2]int{9, 8}, [2]int{3, 2}, one, [2]int{1, 2}, [2]int{1, 2})
	same := plane([2]int{7, 6}, [2]int{3, 3}, one, one, one)
	all := Post{Links: []Link{{aten.Add, true}, {aten.Mul, false}}, Addend: true, Act: ReLU}
	d := newDevice(t)
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		g          Convolution
		last       bool // the channels lie last
		processors int
		want       string // in the names of the entries
	}{
		{Convolution{Window: cube, DType: ir.F32, Images: 2, Groups: 2, Channels: 3, Results: 5}, false, 2, "Convolution_f32_false_false_TileForm_64_64_by_chunks_across_rows_by_fma_false"},
		{Convolution{Window: turned(cube, 0), DType: ir.F64, Images: 2, Groups: 2, Channels: 3, Results: 5, Transposed: true}, false, 2, "f64_true_false_TileForm_64_64_along_depth_across_rows_by_fma_false"},
		{Convolution{Window: turned(wide, 1), DType: ir.F32, Images: 3, Groups: 1, Channels: 4, Results: 70, Transposed: true}, false, 2, "f32_true_false_TileForm_128_64_along_depth"},
		{Convolution{Window: turned(wide, 1), DType: ir.F16, Images: 3, Groups: 2, Channels: 16, Results: 20, Transposed: true, Post: all}, true, 2, "f16_true_true_TileForm_64_64_by_chunks_by_chunks_by_mma_true"},
		{Convolution{Window: turned(even, 0), DType: ir.F16, Images: 2, Groups: 2, Channels: 8, Results: 9, Transposed: true}, true, 2, "f16_false_true_TileForm_32_128_by_chunks_by_chunks_by_mma_false"},
		{Convolution{Window: same, DType: ir.BF16, Images: 3, Groups: 2, Channels: 8, Results: 40}, true, 2, "bf16_false_true_TileForm_128_128_by_chunks_by_chunks_by_mma"},
		{Convolution{Window: same, DType: ir.F16, Images: 3, Groups: 1, Channels: 3, Results: 20}, false, 2, "f16_false_false_TileForm_128_128_along_depth_across_rows_by_mma"},
		{Convolution{Window: wide, DType: ir.F32, Images: 20, Groups: 1, Channels: 12, Results: 20, TF32: true}, true, 2, "f32_false_true_TileForm_32_128_by_chunks_by_chunks_by_tf32"},
		{Convolution{Window: plane([2]int{22, 22}, [2]int{20, 20}, one, none, one), DType: ir.F32, Images: 3, Groups: 1, Channels: 8, Results: 5, Post: all}, false, 16,
			"by_fma_false loris_join_parts_f32_true"},
		{Convolution{Window: wide, DType: ir.F64, Images: 2, Groups: 6, Channels: 1, Results: 1, Post: all}, false, 2, "convolve_each_f64_false_true_4"},
		{Convolution{Window: turned(wide, 1), DType: ir.F16, Images: 2, Groups: 3, Channels: 2, Results: 2, Transposed: true}, false, 2, "convolve_each_f16_true_false_1"},
		{Convolution{Window: plane([2]int{18, 18}, [2]int{13, 14}, one, one, one), DType: ir.F32, Images: 1, Groups: 3, Channels: 4, Results: 1, Post: all}, false, 9, "convolve_sums_f32_false_true"},
	} {
		g := c.g
		in, taps := numel(g.In[:]), numel(g.Kernel[:])
		g.XAlign, g.FAlign = 256, 256
		// Images are [channels, places] or the other way round, filters [groups, results,
		// channels, taps] or [groups, results, taps, channels].
		g.XImage, g.XChannel = g.Groups*g.Channels*in, in
		g.FGroup, g.FResult, g.FInput = g.Results*g.Channels*taps, g.Channels*taps, taps
		xAt, fAt := 1, 1
		if c.last {
			xAt, g.XChannel = g.Groups*g.Channels, 1
			fAt, g.FInput = g.Channels, 1
		}
		g.XAt, g.FAt = [3]int{g.In[1] * g.In[2] * xAt, g.In[2] * xAt, xAt}, [3]int{g.Kernel[1] * g.Kernel[2] * fAt, g.Kernel[2] * fAt, fAt}
		number := func() int { return r.IntN(3) - 1 }
		total := g.Images * g.Groups * g.Results * numel(g.Out[:])
		x, f := random(g.Images*g.XImage, number), random(g.Groups*g.FGroup, number)
		vector, addend := random(g.Groups*g.Results, number), random(total, number)
		want := elements(g.DType, convolved(&g, x, f, vector, addend))
		operands := append([][]byte{make([]byte, len(want)), elements(g.DType, x), elements(g.DType, f)}, postOperands(&g.Post, g.DType, vector, addend)...)
		p := g.Plan(Limits{Processors: c.processors, Threads: 64, Tensor: true})
		d.routine(fmt.Sprintf("%+v", g), p, operands, []ir.DType{g.DType}, 0, want)
		checkEntries(t, p, c.want)
	}
	d.run()
}

// checkEntries looks for what should be in the names of a plan's entries.
func checkEntries(t *testing.T, p *Plan, want string) {
	t.Helper()
	var entries []string
	for _, l := range p.Launches {
		entries = append(entries, l.Entry)
	}
	if got := strings.Join(entries, " "); !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
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
