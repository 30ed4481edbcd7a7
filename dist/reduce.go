package dist

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/ir"
)

// reduceTo writes the reduction over ranks to out. parts holds the elements of all ranks one after
// another and is overwritten. Elements are joined in a balanced tree over the ranks: neighbours first,
// then neighbouring pairs. So sums do not depend on which rank computes them, and a rank with a power of
// two of neighbouring shards may join those itself. f16 and bf16 are joined in f32 and rounded once.
func reduceTo(out, parts []byte, d ir.DType, how string) {
	n := len(parts) / max(len(out), 1)
	switch d {
	case ir.F32:
		reduceFloats(as[float32](out), as[float32](parts), n, how)
	case ir.F64:
		reduceFloats(as[float64](out), as[float64](parts), n, how)
	case ir.F16:
		reduceNarrow(as[uint16](out), as[uint16](parts), n, how, half.F16sToF32s, half.F32sToF16s)
	case ir.BF16:
		reduceNarrow(as[uint16](out), as[uint16](parts), n, how, half.BF16sToF32s, half.F32sToBF16s)
	case ir.U8:
		joinRuns(out, parts, n, how)
	case ir.I8:
		joinRuns(as[int8](out), as[int8](parts), n, how)
	case ir.I16:
		joinRuns(as[int16](out), as[int16](parts), n, how)
	case ir.I32:
		joinRuns(as[int32](out), as[int32](parts), n, how)
	case ir.I64:
		joinRuns(as[int64](out), as[int64](parts), n, how)
	default:
		panic(fmt.Errorf("%w: no reduction of %v", ir.ErrDType, d)) // the rows of the ops refuse them
	}
}

// as returns bytes as elements; buffers are aligned for all dtypes.
func as[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

type number interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// joinRuns reduces n runs of elements to the first, and copies that to out.
func joinRuns[T number](out, parts []T, n int, how string) {
	m := len(out)
	for step := 1; step < n; step *= 2 {
		for i := 0; i+step < n; i += 2 * step {
			x, y := parts[i*m:(i+1)*m], parts[(i+step)*m:(i+step+1)*m]
			switch how {
			case "max":
				for k, v := range y {
					x[k] = max(x[k], v)
				}
			case "min":
				for k, v := range y {
					x[k] = min(x[k], v)
				}
			default:
				for k, v := range y {
					x[k] += v
				}
			}
		}
	}
	copy(out, parts[:m])
}

func reduceFloats[T float32 | float64](out, parts []T, n int, how string) {
	joinRuns(out, parts, n, how)
	if how == "mean" {
		for i := range out {
			out[i] /= T(n)
		}
	}
}

func reduceNarrow(out, parts []uint16, n int, how string, widen func([]float32, []uint16), narrow func([]uint16, []float32)) {
	wide, sum := make([]float32, len(parts)), make([]float32, len(out))
	widen(wide, parts)
	reduceFloats(sum, wide, n, how)
	narrow(out, sum)
}
