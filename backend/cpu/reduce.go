package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
)

func init() {
	lowerings[aten.Sum] = lowerSum(sums)
	lowerings[aten.Prod] = lowerSum(prods)
	lowerings[aten.Amax] = widened(lowerFold(maxima))
	lowerings[aten.Amin] = widened(lowerFold(minima))
	lowerings[aten.Any] = widened(lowerFold(anys))
	lowerings[aten.All] = widened(lowerFold(alls))
	lowerings[aten.Argmax] = widened(func(c *call) { argmaxima.of(c.Operands[0].DType())(c) })
	lowerings[aten.Argmin] = widened(func(c *call) { argminima.of(c.Operands[0].DType())(c) })
	lowerings[aten.Cumsum] = lowerScan(cumsums, kernels.Cumsum[float32, float32, float64])
	lowerings[aten.Cumprod] = lowerScan(cumprods, kernels.Cumprod[float32, float32, float64])
	composites[aten.Cummin], composites[aten.CumprodGradient], composites[aten.ProductsOfOthers] = true, true, true
	composites[aten.LinearScan] = true
	lowerings[aten.ProductsOfOthers] = lowerProductsOfOthers
	lowerings[aten.Cummax] = lowerCummax
	lowerings[aten.Cummin] = lowerings[aten.Cummax]
	lowerings[aten.LinearScan] = widened(singleOrDouble(linearScan[float32], linearScan[float64]))
	lowerings[aten.CumprodGradient] = widened(singleOrDouble(cumprodGradient[float32], cumprodGradient[float64]))
}

// The instantiations of each reduction by operand dtype. Those of sums are for
// results of the operand's dtype, or i64 for integers.
var (
	sums = numbers(sumInt[uint8], sumInt[int8], sumInt[int16], sumInt[int32], sumInt[int64], sumFloat[float32], sumFloat[float64])

	prods = numbers(prodInt[uint8], prodInt[int8], prodInt[int16], prodInt[int32], prodInt[int64], prodFloat[float32], prodFloat[float64])

	maxima = numbers(reduceMax[uint8], reduceMax[int8], reduceMax[int16], reduceMax[int32], reduceMax[int64], reduceMax[float32], reduceMax[float64])
	minima = numbers(reduceMin[uint8], reduceMin[int8], reduceMin[int16], reduceMin[int32], reduceMin[int64], reduceMin[float32], reduceMin[float64])

	anys = numbers(reduceAny[uint8], reduceAny[int8], reduceAny[int16], reduceAny[int32], reduceAny[int64], reduceAny[float32], reduceAny[float64])
	alls = numbers(reduceAll[uint8], reduceAll[int8], reduceAll[int16], reduceAll[int32], reduceAll[int64], reduceAll[float32], reduceAll[float64])

	argmaxima = numbers(argmax[uint8], argmax[int8], argmax[int16], argmax[int32], argmax[int64], argmax[float32], argmax[float64])
	argminima = numbers(argmin[uint8], argmin[int8], argmin[int16], argmin[int32], argmin[int64], argmin[float32], argmin[float64])

	cumsums = scans{
		numbers(scanSum[uint8, uint8, int64], scanSum[int8, int8, int64], scanSum[int16, int16, int64], scanSum[int32, int32, int64], scanSum[int64, int64, int64],
			scanSum[float32, float32, float64], scanSum[float64, float64, float64]),
		integers(scanSum[int64, uint8, int64], scanSum[int64, int8, int64], scanSum[int64, int16, int64], scanSum[int64, int32, int64], scanSum[int64, int64, int64]),
	}
	cumprods = scans{
		numbers(scanProd[uint8, uint8, int64], scanProd[int8, int8, int64], scanProd[int16, int16, int64], scanProd[int32, int32, int64], scanProd[int64, int64, int64],
			scanProd[float32, float32, float64], scanProd[float64, float64, float64]),
		integers(scanProd[int64, uint8, int64], scanProd[int64, int8, int64], scanProd[int64, int16, int64], scanProd[int64, int32, int64], scanProd[int64, int64, int64]),
	}
	cummaxima = numbers(cummax[uint8], cummax[int8], cummax[int16], cummax[int32], cummax[int64], cummax[float32], cummax[float64])
)

// lowerSum lowers a reduction whose elements are converted to the result dtype
// first. From integers to i64 the kernel does that itself.
func lowerSum(t byType[lowerFunc]) lowerFunc {
	return func(c *call) {
		in, out := c.Operands[0].DType(), c.Shapes[0].DType()
		if in != out && !(in.IsIntegral() && out == ir.I64) {
			c.Operands[0] = c.l.cast(c.Instr, c.Operands[0], out)
		}
		widened(lowerFold(t))(c)
	}
}

func lowerFold(t byType[lowerFunc]) lowerFunc {
	return func(c *call) { t.of(c.Operands[0].DType())(c) }
}

func sumInt[T kernels.Integer](c *call) {
	switch part, last := kernels.SumReducer[int64, T, int64](), kernels.SumReducer[int64, int64, int64](); c.Shapes[0].DType() {
	case ir.I64:
		reduce(c, part, part, last)
	case ir.Bool:
		reduce(c, kernels.BoolReducer(part), part, kernels.BoolReducer(last))
	default:
		reduce(c, kernels.SumReducer[T, T, int64](), part, kernels.SumReducer[T, int64, int64]())
	}
}

func sumFloat[T kernels.Float](c *call) {
	reduce(c, kernels.SumReducer[T, T, float64](), kernels.SumReducer[float64, T, float64](), kernels.SumReducer[T, float64, float64]())
}

func prodInt[T kernels.Integer](c *call) {
	switch part, last := kernels.ProdReducer[int64, T, int64](), kernels.ProdReducer[int64, int64, int64](); c.Shapes[0].DType() {
	case ir.I64:
		reduce(c, part, part, last)
	case ir.Bool:
		reduce(c, kernels.BoolReducer(part), part, kernels.BoolReducer(last))
	default:
		reduce(c, kernels.ProdReducer[T, T, int64](), part, kernels.ProdReducer[T, int64, int64]())
	}
}

func prodFloat[T kernels.Float](c *call) {
	reduce(c, kernels.ProdReducer[T, T, float64](), kernels.ProdReducer[float64, T, float64](), kernels.ProdReducer[T, float64, float64]())
}

func reduceMax[T kernels.Number](c *call) {
	least, _ := kernels.Limits[T]()
	f := kernels.MaxReducer(least)
	reduce(c, f, f, f)
}

func reduceMin[T kernels.Number](c *call) {
	_, greatest := kernels.Limits[T]()
	f := kernels.MinReducer(greatest)
	reduce(c, f, f, f)
}

func reduceAny[T kernels.Number](c *call) {
	f := kernels.AnyReducer[T]()
	reduce(c, f, f, kernels.AnyReducer[uint8]())
}

func reduceAll[T kernels.Number](c *call) {
	f := kernels.AllReducer[T]()
	reduce(c, f, f, kernels.AllReducer[uint8]())
}

const (
	// A reduction to few results is done in parts, so that processors can share
	// it. Their number does not depend on that of the processors, and so neither
	// does the result.
	maxParts = 64
	// fewResults is when results alone give the processors too little to share.
	fewResults = 128
	reduceCost = 1.0
)

// reduce emits a reduction in one step by whole, or, to few results of many
// elements, in parts by part and then over their results by last.
func reduce[R, T, A any](c *call, whole *kernels.Reducer[R, T, A], part *kernels.Reducer[A, T, A], last *kernels.Reducer[R, A, A]) {
	mask, _ := ir.ReduceDims(c.Args)
	in := c.Operands[0]
	x := c.dense(in)
	m := c.l.mem
	r := kernels.NewReduction(in.Shape.Dims(), mask[:in.Shape.Rank()])
	out := c.result()
	n, splits := r.Splits()
	parts := min(r.Elements()/c.l.tune.cut.Part, n, maxParts)
	if !splits || parts < 2 || r.Outs() >= fewResults {
		c.emit(r.Outs(), c.resultGrain(&r), []operand{out}, []operand{x}, func(lo, hi int) {
			reduceBy(elements[R](m, out), elements[T](m, x), &r, lo, hi, whole)
		})
		return
	}
	partials := c.l.bytesTemp(sizeOf[A](), parts*r.Outs())
	c.emit(parts, 1, []operand{partials}, []operand{x}, func(lo, hi int) {
		dst, src := elements[A](m, partials), elements[T](m, x)
		for p := lo; p < hi; p++ {
			g, off := r.Part(p*n/parts, (p+1)*n/parts)
			reduceBy(dst[p*r.Outs():(p+1)*r.Outs()], src[off:], &g, 0, r.Outs(), part)
		}
	})
	over := kernels.NewReduction([]int{parts, r.Outs()}, []bool{true, false})
	c.emit(r.Outs(), c.resultGrain(&over), []operand{out}, []operand{partials}, func(lo, hi int) {
		reduceBy(elements[R](m, out), elements[A](m, partials), &over, lo, hi, last)
	})
}

// reduceBy is kernels.Reduce in the memory of a goroutine.
func reduceBy[R, T, A any](dst []R, x []T, r *kernels.Reduction, lo, hi int, f *kernels.Reducer[R, T, A]) {
	w := workers.Get().(*worker)
	kernels.Reduce(dst, x, r, scratchOf[A](w, kernels.ReduceRoom), lo, hi, f)
	workers.Put(w)
}

// resultGrain is the grain in results; columns are read in whole cache lines.
func (c *call) resultGrain(r *kernels.Reduction) int {
	g := c.l.grain(reduceCost * float64(r.Count()))
	if r.InnerKept {
		g = max(g, 64)
	}
	return g
}

func argmax[T kernels.Number](c *call) { argReduce(c, kernels.Argmax[T]) }
func argmin[T kernels.Number](c *call) { argReduce(c, kernels.Argmin[T]) }

func argReduce[T any](c *call, k func(dst []int64, x []T, n, inner, lo, hi int)) {
	s := c.Operands[0].Shape
	outer, n, inner := 1, s.Numel(), 1
	if d, ok := c.OptInt("dim"); ok {
		outer, n, inner = s.Around(c.NormDim(d, s.Rank()))
	}
	x, out := c.dense(c.Operands[0]), c.result()
	m := c.l.mem
	c.emit(outer*inner, c.l.grain(reduceCost*float64(n)), []operand{out}, []operand{x}, func(lo, hi int) {
		k(elements[int64](m, out), elements[T](m, x), n, inner, lo, hi)
	})
}

// scans are the instantiations for results of the operand's dtype, and for those of integers in i64.
type scans struct{ same, long byType[lowerFunc] }

// lowerScan lowers a scan, that of lines of 16-bit floats by the kernel of float32.
func lowerScan(t scans, single func(dst, x []float32, n, inner, lo, hi int)) lowerFunc {
	narrow := func(dst, x []float32, _ []int64, n, lines int) { single(dst, x, n, 1, 0, lines) }
	return func(c *call) {
		if in, out := c.Operands[0].DType(), c.Shapes[0].DType(); in.IsIntegral() && out == ir.I64 {
			t.long.of(in)(c)
			return
		}
		c.Operands[0] = c.l.cast(c.Instr, c.Operands[0], c.Shapes[0].DType())
		if _, n, inner := c.along(); !c.narrowLines(n, inner, narrow) {
			widened(lowerFold(t.same))(c)
		}
	}
}

// along returns the first operand as [outer, n, inner] around its dimension dim.
func (c *call) along() (outer, n, inner int) {
	s := c.Operands[0].Shape
	return s.Around(c.Dim("dim", s.Rank()))
}

func scanSum[R, T kernels.Number, A int64 | float64](c *call)  { scan(c, kernels.Cumsum[R, T, A]) }
func scanProd[R, T kernels.Number, A int64 | float64](c *call) { scan(c, kernels.Cumprod[R, T, A]) }

func scan[R, T any](c *call, k func(dst []R, x []T, n, inner, lo, hi int)) {
	outer, n, inner := c.along()
	x, out := c.dense(c.Operands[0]), c.result()
	m := c.l.mem
	c.emit(outer*inner, c.l.grain(float64(2*n)), []operand{out}, []operand{x}, func(lo, hi int) {
		k(elements[R](m, out), elements[T](m, x), n, inner, lo, hi)
	})
}

func lowerCummax(c *call) {
	least := c.Instr.Op == aten.Cummin
	if _, n, inner := c.along(); !c.narrowLines(n, inner, func(dst, x []float32, places []int64, n, lines int) {
		kernels.Cummax(dst, places, x, least, n, 1, 0, lines)
	}) {
		widened(func(c *call) { cummaxima.of(c.Operands[0].DType())(c) })(c)
	}
}

func cummax[T kernels.Number](c *call) {
	outer, n, inner := c.along()
	x, values, indices := c.dense(c.Operands[0]), c.result(), c.result()
	m, least := c.l.mem, c.Instr.Op == aten.Cummin
	c.emit(outer*inner, c.l.grain(float64(2*n)), []operand{values, indices}, []operand{x}, func(lo, hi int) {
		kernels.Cummax(elements[T](m, values), elements[int64](m, indices), elements[T](m, x), least, n, inner, lo, hi)
	})
}

func cumprodGradient[T kernels.Float](c *call) {
	s := c.Operands[1].Shape
	outer, n, inner := s.Around(c.Dim("dim", s.Rank()))
	g, x, y, out := c.dense(c.Operands[0]), c.dense(c.Operands[1]), c.dense(c.Operands[2]), c.result()
	m := c.l.mem
	c.emit(outer*inner, c.l.grain(float64(4*n)), []operand{out}, []operand{g, x, y}, func(lo, hi int) {
		kernels.CumprodGradient(elements[T](m, out), elements[T](m, g), elements[T](m, x), elements[T](m, y), n, inner, lo, hi)
	})
}

func linearScan[T kernels.Float](c *call) {
	outer, n, inner := c.along()
	a, b, out := c.dense(c.Operands[0]), c.dense(c.Operands[1]), c.result()
	m, reverse := c.l.mem, c.Bool("reverse")
	c.emitOver(b, outer*inner, c.l.grain(float64(3*n)), out, []operand{a, b}, func(lo, hi int) {
		kernels.LinearScan(elements[T](m, out), elements[T](m, a), elements[T](m, b), reverse, n, inner, lo, hi)
	})
}
