package cpu

import (
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/strided"
)

// blockKernel is the function of one pointwise op on one compute dtype.
type blockKernel struct {
	fn   blockFunc
	cost float64 // nanoseconds for an element, roughly
}

type opDType struct {
	op ir.Op
	d  ir.DType
}

// typed has the ops with loops of their own, by the dtype of the last operand.
// The rest call the scalar function of the op's row for each element.
var typed = map[opDType]blockKernel{}

const (
	arithmeticCost = 0.7
	divisionCost   = 2
	elementaryCost = 4
	scalarCost     = 9
)

func init() {
	setNumber[uint8](ir.U8)
	setNumber[int8](ir.I8)
	setNumber[int16](ir.I16)
	setNumber[int32](ir.I32)
	setNumber[int64](ir.I64)
	setNumber[float32](ir.F32)
	setNumber[float64](ir.F64)
	setInteger[uint8](ir.U8)
	setInteger[int8](ir.I8)
	setInteger[int16](ir.I16)
	setInteger[int32](ir.I32)
	setInteger[int64](ir.I64)
	setFloat[float32](ir.F32)
	setFloat[float64](ir.F64)
	setBool()
	for op, k := range map[ir.Op]func(dst, a []float32){aten.Exp: kernels.Exp, aten.Sigmoid: kernels.Sigmoid, aten.Tanh: kernels.Tanh} {
		typed[opDType{op, ir.F32}] = blockKernel{unaryBlock(k), elementaryCost}
	}
}

func set(op ir.Op, d ir.DType, f blockFunc) {
	typed[opDType{op, d}] = blockKernel{f, arithmeticCost}
}

func unaryBlock[R, T any](k func(dst []R, a []T)) blockFunc {
	return func(dst, a, _, _ []byte) { k(as[R](dst), as[T](a)) }
}

func binaryBlock[R, T any](k func(dst []R, a, b []T)) blockFunc {
	return func(dst, a, b, _ []byte) { k(as[R](dst), as[T](a), as[T](b)) }
}

func flippedBlock[R, T any](k func(dst []R, a, b []T)) blockFunc {
	return func(dst, a, b, _ []byte) { k(as[R](dst), as[T](b), as[T](a)) }
}

func where[T strided.Bits](dst, cond, a, b []byte) {
	kernels.Where(as[T](dst), cond, as[T](a), as[T](b))
}

func setCompare[T kernels.Number](d ir.DType) {
	set(aten.Eq, d, binaryBlock(kernels.Eq[T]))
	set(aten.Ne, d, binaryBlock(kernels.Ne[T]))
	set(aten.Lt, d, binaryBlock(kernels.Lt[T]))
	set(aten.Le, d, binaryBlock(kernels.Le[T]))
	set(aten.Gt, d, flippedBlock(kernels.Lt[T]))
	set(aten.Ge, d, flippedBlock(kernels.Le[T]))
	set(aten.LogicalNot, d, unaryBlock(kernels.Not[T]))
	wheres := bySize[blockFunc]{where[uint8], where[uint16], where[uint32], where[uint64], nil}
	set(aten.Where, d, wheres.of(d))
}

func setNumber[T kernels.Number](d ir.DType) {
	setCompare[T](d)
	set(aten.Add, d, binaryBlock(kernels.Add[T]))
	set(aten.Sub, d, binaryBlock(kernels.Sub[T]))
	set(aten.Mul, d, binaryBlock(kernels.Mul[T]))
	set(aten.Maximum, d, binaryBlock(kernels.Max[T]))
	set(aten.Minimum, d, binaryBlock(kernels.Min[T]))
	set(aten.Neg, d, unaryBlock(kernels.Neg[T]))
	set(aten.Relu, d, unaryBlock(kernels.Relu[T]))
}

func setInteger[T kernels.Integer](d ir.DType) {
	set(aten.Abs, d, unaryBlock(kernels.AbsInt[T]))
	set(aten.BitwiseAnd, d, binaryBlock(kernels.And[T]))
	set(aten.BitwiseOr, d, binaryBlock(kernels.Or[T]))
	set(aten.BitwiseXor, d, binaryBlock(kernels.Xor[T]))
}

func setFloat[T kernels.Float](d ir.DType) {
	set(aten.Abs, d, unaryBlock(kernels.AbsFloat[T]))
	for op, k := range map[ir.Op]blockFunc{
		aten.Div: binaryBlock(kernels.Div[T]), aten.Sqrt: unaryBlock(kernels.Sqrt[T]), aten.Reciprocal: unaryBlock(kernels.Reciprocal[T]),
	} {
		typed[opDType{op, d}] = blockKernel{k, divisionCost}
	}
}

// setBool uses that a bool is 0 or 1.
func setBool() {
	setCompare[uint8](ir.Bool)
	and, or, xor := binaryBlock(kernels.And[uint8]), binaryBlock(kernels.Or[uint8]), binaryBlock(kernels.Xor[uint8])
	for _, op := range []ir.Op{aten.Mul, aten.Minimum, aten.LogicalAnd, aten.BitwiseAnd} {
		set(op, ir.Bool, and)
	}
	for _, op := range []ir.Op{aten.Add, aten.Maximum, aten.LogicalOr, aten.BitwiseOr} {
		set(op, ir.Bool, or)
	}
	for _, op := range []ir.Op{aten.LogicalXor, aten.BitwiseXor} {
		set(op, ir.Bool, xor)
	}
	set(aten.BitwiseNot, ir.Bool, unaryBlock(kernels.Not[uint8]))
}

// kernelOf returns the function of an op on operands of a compute dtype.
func kernelOf(sp *ir.Spec, d ir.DType) blockKernel {
	if k, ok := typed[opDType{sp.Op, d}]; ok {
		return k
	}
	f, ok := scalarKernels[d]
	var fn blockFunc
	if ok {
		fn = f(sp)
	}
	if fn == nil {
		panic(fmt.Errorf("%w: no kernel for %v", backend.ErrUnsupported, d))
	}
	return blockKernel{fn, scalarCost}
}

// scalarKernels make a blockFunc of a row's scalar function, or nil.
var scalarKernels = map[ir.DType]func(sp *ir.Spec) blockFunc{
	ir.Bool: scalarBool,
	ir.U8:   scalarInt[uint8], ir.I8: scalarInt[int8], ir.I16: scalarInt[int16], ir.I32: scalarInt[int32], ir.I64: scalarInt[int64],
	ir.F32: scalarFloat[float32], ir.F64: scalarFloat[float64],
}

func scalarFloat[T kernels.Float](sp *ir.Spec) blockFunc {
	s := &sp.Scalar
	if sp.Predicate {
		return scalarFunc[uint8, T](s.F1, s.F2, s.F3)
	}
	return scalarFunc[T, T](s.F1, s.F2, s.F3)
}

func scalarInt[T kernels.Integer](sp *ir.Spec) blockFunc {
	s := &sp.Scalar
	if sp.Predicate {
		return scalarFunc[uint8, T](s.I1, s.I2, s.I3)
	}
	return scalarFunc[T, T](s.I1, s.I2, s.I3)
}

// scalarBool makes results that are neither 0 nor 1 a 1.
func scalarBool(sp *ir.Spec) blockFunc {
	s := sp.Scalar
	one := func(x int64) int64 { return ir.WrapInt(ir.Bool, x) }
	switch {
	case s.B1 != nil:
		f := s.B1
		s.I1 = func(x int64) int64 {
			if f(x != 0) {
				return 1
			}
			return 0
		}
	case s.I1 != nil:
		f := s.I1
		s.I1 = func(x int64) int64 { return one(f(x)) }
	case s.I2 != nil:
		f := s.I2
		s.I2 = func(x, y int64) int64 { return one(f(x, y)) }
	}
	return scalarFunc[uint8, uint8](s.I1, s.I2, s.I3)
}

func scalarFunc[R, T, W kernels.Number](f1 func(W) W, f2 func(x, y W) W, f3 func(x, y, z W) W) blockFunc {
	switch {
	case f1 != nil:
		return func(dst, a, _, _ []byte) { kernels.Map1(as[R](dst), as[T](a), f1) }
	case f2 != nil:
		return func(dst, a, b, _ []byte) { kernels.Map2(as[R](dst), as[T](a), as[T](b), f2) }
	case f3 != nil:
		return func(dst, a, b, c []byte) { kernels.Map3(as[R](dst), as[T](a), as[T](b), as[T](c), f3) }
	}
	return nil
}

// wideners, narrowers and rounders convert the floats that are narrower than
// f32: from storage, to storage, and to a value that storage can hold.
var (
	wideners = map[ir.DType]blockFunc{
		ir.F16: unaryBlock(half.F16sToF32s), ir.BF16: unaryBlock(half.BF16sToF32s),
		ir.F8E4M3FN: unaryBlock(half.E4M3sToF32s), ir.F8E5M2: unaryBlock(half.E5M2sToF32s),
	}
	narrowers = map[ir.DType]blockFunc{
		ir.F16: unaryBlock(half.F32sToF16s), ir.BF16: unaryBlock(half.F32sToBF16s),
		ir.F8E4M3FN: unaryBlock(half.F32sToE4M3s), ir.F8E5M2: unaryBlock(half.F32sToE5M2s),
	}
	rounders = map[ir.DType]blockFunc{
		ir.F16:      rounder(func(x float32) float32 { return half.F16ToF32(half.F32ToF16(x)) }),
		ir.BF16:     rounder(func(x float32) float32 { return half.BF16ToF32(half.F32ToBF16(x)) }),
		ir.F8E4M3FN: rounder(func(x float32) float32 { return half.E4M3ToF32(half.F32ToE4M3(x)) }),
		ir.F8E5M2:   rounder(func(x float32) float32 { return half.E5M2ToF32(half.F32ToE5M2(x)) }),
	}
)

func rounder(f func(float32) float32) blockFunc {
	return unaryBlock(func(dst, a []float32) { kernels.Map1(dst, a, f) })
}

// castKernel returns the conversion between two compute dtypes; a narrow float
// result is rounded by the caller.
func castKernel(from, to ir.DType) blockFunc {
	if from == to {
		return func(dst, a, _, _ []byte) { copy(dst, a) }
	}
	return casts.of(from)(to)
}

var casts = numbers(castFromInt[uint8], castFromInt[int8], castFromInt[int16], castFromInt[int32], castFromInt[int64],
	castFromFloat[float32], castFromFloat[float64])

func castFromInt[S kernels.Integer](to ir.DType) blockFunc {
	if to == ir.Bool {
		return unaryBlock(kernels.NonZero[S])
	}
	return numbers(unaryBlock(kernels.Convert[uint8, S]), unaryBlock(kernels.Convert[int8, S]), unaryBlock(kernels.Convert[int16, S]),
		unaryBlock(kernels.Convert[int32, S]), unaryBlock(kernels.Convert[int64, S]), unaryBlock(kernels.Convert[float32, S]),
		unaryBlock(kernels.Convert[float64, S])).of(to)
}

func castFromFloat[S kernels.Float](to ir.DType) blockFunc {
	if to == ir.Bool {
		return unaryBlock(kernels.NonZero[S])
	}
	return numbers(unaryBlock(kernels.Truncate[uint8, S]), unaryBlock(kernels.Truncate[int8, S]), unaryBlock(kernels.Truncate[int16, S]),
		unaryBlock(kernels.Truncate[int32, S]), unaryBlock(kernels.Truncate[int64, S]), unaryBlock(kernels.Convert[float32, S]),
		unaryBlock(kernels.Convert[float64, S])).of(to)
}
