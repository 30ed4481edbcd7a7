// Package gemm multiplies matrices of floats: one dense kernel library for
// linear layers, convolutions, attention and recurrent networks.
//
// Every operand is strided, so that no transpose is ever copied by a caller.
// Products are summed in float32 for float32 and the 16-bit floats, and in
// float64 for float64, in blocks along the depth: a sum of k products errs by at
// most k·2⁻²⁴ of the sum of their magnitudes (2⁻⁵³ for float64), and is then rounded
// to the result's type. Processors that are fast with pairs of bfloat16 (AVX512-BF16)
// take subnormal ones, below 1.2e-38, as zero, as oneDNN does there. What is done to a finished
// result (bias, residual, activation) is part of the call and happens while the
// result is in cache.
//
// The inner loops are chosen once by what the processor has; the tag noasm and
// processors without such loops use the ones in Go. Nothing is allocated by a
// call once its scratch memory has been pooled.
package gemm

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// BF16 and F16 are the bits of the 16-bit floats.
type (
	BF16 = vec.BF16
	F16  = vec.F16
)

// Float is the element types that products are summed in.
type Float = vec.Float

// Element is the element types of operands and results.
type Element = vec.Element

// Matrix is a strided matrix: element (i, j) is Data[i·RowStride + j·ColStride].
// Strides are not negative; a stride of zero repeats a row or column, which the
// result of a product must not do. The zero Matrix is empty.
type Matrix[T Element] struct {
	Data                 []T
	Rows, Cols           int
	RowStride, ColStride int
}

// Dense returns the matrix whose rows follow one another in data.
func Dense[T Element](data []T, rows, cols int) Matrix[T] {
	return Matrix[T]{data, rows, cols, cols, 1}
}

// T returns the transpose, which shares the data.
func (m Matrix[T]) T() Matrix[T] {
	return Matrix[T]{m.Data, m.Cols, m.Rows, m.ColStride, m.RowStride}
}

// extent returns how many elements of Data the matrix spans.
func (m *Matrix[T]) extent() int {
	if m.Rows <= 0 || m.Cols <= 0 {
		return 0
	}
	return (m.Rows-1)*m.RowStride + (m.Cols-1)*m.ColStride + 1
}

// check panics if the matrix would reach outside its data.
func (m *Matrix[T]) check(name string) {
	if m.Rows < 0 || m.Cols < 0 || m.RowStride < 0 || m.ColStride < 0 || m.extent() > len(m.Data) {
		panic(fmt.Sprintf("gemm: %s of %d×%d with strides %d, %d does not fit %d elements",
			name, m.Rows, m.Cols, m.RowStride, m.ColStride, len(m.Data)))
	}
}

// Activation is a function of one element, applied to a finished result.
type Activation = vec.Kind

// Activations of products; others of package vec do, too, if they have no
// parameters. Gelu is x·Φ(x) by the error function, GeluTanh its approximation by
// tanh, Silu x·sigmoid(x).
const (
	Identity = vec.Identity
	Relu     = vec.ReLU
	Gelu     = vec.GELU
	GeluTanh = vec.GELUTanh
	Sigmoid  = vec.Sigmoid
	Tanh     = vec.Tanh
	Silu     = vec.SiLU
)

// Options says what a product does besides multiplying. The result is
//
//	c = act(RowScale·(Alpha·a·b + Beta·c) + ColBias + RowBias + Residual)
//
// computed in the type that products are summed in and rounded once. The zero
// value is the plain product.
type Options[T Element] struct {
	// Alpha is the factor of the product; zero stands for one unless Scaled.
	Alpha float64
	// Scaled says that Alpha counts even where it is zero.
	Scaled bool
	// Beta is the factor of what c holds; with zero c is not read.
	Beta float64
	// ColBias has one summand for each column, RowBias for each row; nil for
	// none.
	ColBias, RowBias []T
	// RowScale has a factor for each row; nil for ones.
	RowScale []T
	// Residual is a matrix of the result's size to add; empty for none.
	Residual Matrix[T]
	// Residuals returns that of the i-th product of a MulBatch; nil if they have
	// none, or all have Residual.
	Residuals func(i int) Matrix[T]
	// Act is applied last.
	Act Activation
	// Finish is called after all that with each finished piece of a row:
	// elements (row, col), (row, col+1), …; it may change them. Each element is
	// seen once. Calls come from several goroutines at once.
	Finish func(row, col int, piece []T)
	// Limiter bounds the goroutines of this call; nil stands for any.
	Limiter *parallel.Limiter
	// Threads bounds them further; zero does not.
	Threads int
}

// Mul sets c = a·b, for a of m×k, b of k×n and c of m×n, with what the options
// (nil for none) add. c must not overlap the operands. It panics if sizes do
// not agree. R may differ from T if both are summed in one type: products of 16-bit floats may be
// stored in float32, without being rounded.
func Mul[R, T Element](c Matrix[R], a, b Matrix[T], o *Options[R]) {
	checkTypes[R, T]()
	a.check("left operand")
	b.check("right operand")
	product(c, operandOf(a), operandOf(b), o)
}

// MulWide is Mul for a left operand of the type that products are summed in.
func MulWide[A Float, T Element](c, a Matrix[A], b Matrix[T], o *Options[A]) {
	checkTypes[A, T]()
	a.check("left operand")
	b.check("right operand")
	product(c, operandOf(a), operandOf(b), o)
}

// checkTypes panics unless products of T and results of R are summed in one type.
func checkTypes[R, T Element]() {
	var r R
	var t T
	_, wideResult := any(r).(float64)
	if _, wideFactors := any(t).(float64); wideResult != wideFactors {
		panic(fmt.Sprintf("gemm: a result of %T from factors of %T", r, t))
	}
}

// product runs a product over prepared operands in the type it is summed in.
func product[T Element](c Matrix[T], a, b anyOperand, o *Options[T]) {
	c.check("result")
	if am, ak, bk, bn := a.rows, a.cols, b.rows, b.cols; am != c.Rows || bn != c.Cols || ak != bk {
		panic(fmt.Sprintf("gemm: a result of %d×%d from %d×%d and %d×%d", c.Rows, c.Cols, am, ak, bk, bn))
	}
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	switch any(c.Data).(type) {
	case []float64:
		compute[T, float64](c, a, b, o)
	default:
		compute[T, float32](c, a, b, o)
	}
}

// format is how an operand's elements are stored.
type format uint8

const (
	wide   format = iota // in the type that products are summed in
	bf16                 // as bfloat16
	binary               // as binary16
	formats
)

func formatOf[T Element]() format {
	var x T
	switch any(x).(type) {
	case BF16:
		return bf16
	case F16:
		return binary
	}
	return wide
}

// widen sets dst to n elements of a 16-bit format, stride elements apart.
func widen[A Float](f format, dst []A, src unsafe.Pointer, stride int) {
	if len(dst) == 0 {
		return
	}
	from := unsafe.Slice((*uint16)(src), (len(dst)-1)*stride+1)
	if d, ok := any(dst).([]float32); ok && stride == 1 {
		if f == bf16 {
			half.BF16sToF32s(d, from)
		} else {
			half.F16sToF32s(d, from)
		}
		return
	}
	for i := range dst {
		if f == bf16 {
			dst[i] = A(half.BF16ToF32(from[i*stride]))
		} else {
			dst[i] = A(half.F16ToF32(from[i*stride]))
		}
	}
}

// narrow stores elements in a 16-bit format, stride elements apart.
func narrow[A Float](f format, dst unsafe.Pointer, stride int, src []A) {
	if len(src) == 0 {
		return
	}
	to := unsafe.Slice((*uint16)(dst), (len(src)-1)*stride+1)
	if s, ok := any(src).([]float32); ok && stride == 1 {
		if f == bf16 {
			half.F32sToBF16s(to, s)
		} else {
			half.F32sToF16s(to, s)
		}
		return
	}
	for i, v := range src {
		if f == bf16 {
			to[i*stride] = half.F32ToBF16(float32(v))
		} else {
			to[i*stride] = half.F32ToF16(float32(v))
		}
	}
}
