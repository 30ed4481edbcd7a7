package cpu

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	elems "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

// fractionalSpatial is the spatial dimensions of the ops that pool windows at random places.
var fractionalSpatial = map[ir.Op]int{aten.FractionalMaxPool2d: 2, aten.FractionalMaxPool3d: 3}

var fractionalMaxPools = numbers(fractionalMaxPool[uint8], fractionalMaxPool[int8], fractionalMaxPool[int16], fractionalMaxPool[int32],
	fractionalMaxPool[int64], fractionalMaxPool[float32], fractionalMaxPool[float64])

func init() {
	for op := range fractionalSpatial {
		composites[op] = true
		lowerings[op] = func(c *call) {
			samples := c.Operands[1].DType()
			if c.Operands[0].DType() != ir.F64 {
				samples = ir.F32
			}
			c.Operands[1] = c.l.cast(c.Instr, c.Operands[1], samples)
			widened(func(c *call) { fractionalMaxPools.of(c.Operands[0].DType())(c, samples) })(c)
		}
	}
}

// fractionalMaxPool computes where windows begin in the dtype d.
func fractionalMaxPool[T kernels.Number](c *call, d ir.DType) {
	n := fractionalSpatial[c.Instr.Op]
	dims, windows := c.Operands[0].Shape.Dims(), c.Shapes[0].Dims()
	lead := len(dims) - n
	var in, out, kernel [3]int
	sizes := c.Ints("kernel_size")
	for i := range 3 {
		in[i], out[i], kernel[i] = 1, 1, 1
		if at := i - 3 + n; at >= 0 {
			in[i], out[i], kernel[i] = dims[lead+at], windows[lead+at], sizes[min(at, len(sizes)-1)]
		}
	}
	planes := 1
	for _, d := range dims[:lead] {
		planes *= d
	}
	x, s, values, indices := c.dense(c.Operands[0]), c.dense(c.Operands[1]), c.result(), c.result()
	m, drawn, w := c.l.mem, c.Operands[1].DType(), pool.NewPlaced(in, kernel, out)
	const element = 1.2 // nanoseconds
	grain := c.l.grain(element * float64(out[0]*out[1]*out[2]*kernel[0]*kernel[1]*kernel[2]))
	round := func(x float64) float64 { return ir.RoundFloat(d, x) }
	c.emit(planes, grain, []operand{values, indices}, []operand{x, s}, func(lo, hi int) {
		begin := func(p int, starts *[3][]int) {
			for i := range 3 - n {
				starts[i][0] = 0
			}
			for i := 3 - n; i < 3; i++ {
				k := i - 3 + n
				if n == 2 { // the sample of the width comes first
					k = 1 - k
				}
				sample := elems.Float(drawn, m.bufs[s.buf], s.off+p*n+k)
				switch d {
				case ir.F32:
					fractionalStarts(starts[i], float32(sample), in[i]-kernel[i], nil)
				case ir.F64:
					fractionalStarts(starts[i], sample, in[i]-kernel[i], nil)
				default:
					fractionalStarts(starts[i], sample, in[i]-kernel[i], round)
				}
			}
		}
		pool.MaximaOf(w, elements[T](m, values), elements[int64](m, indices), elements[T](m, x), begin, lo, hi)
	})
}

// elementsOf returns part i of an operand in parts of n elements.
func elementsOf[T any](m *memory, o operand, i, n int) []T { return elements[T](m, o)[i*n : (i+1)*n] }

// fractionalStarts is where windows along one axis begin, computed in the dtype of the samples as the op is
// defined: that of F, or what round makes of its results unless it is nil. last is where the last one does.
func fractionalStarts[F float32 | float64](starts []int, sample F, last int, round func(F) F) {
	n := len(starts)
	starts[n-1] = last
	if n == 1 {
		return
	}
	rounded := func(x F) F {
		if round == nil {
			return x
		}
		return round(x)
	}
	alpha := rounded(rounded(F(last)) / rounded(F(n-1)))
	first := math.Trunc(float64(rounded(sample * alpha)))
	for i := range n - 1 {
		from := rounded(rounded(F(i)) + sample)
		at := math.Trunc(float64(rounded(from*alpha))) - first
		if !(at >= 0 && at <= float64(last)) {
			panic(kernels.IndexError{Index: ir.FloatToInt(ir.I64, at), Size: last + 1})
		}
		starts[i] = int(at)
	}
}
