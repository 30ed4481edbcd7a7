package dist

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// reduceTo writes the reduction over ranks to out. parts has the elements of each rank; they are overwritten
// but for those of keep. Elements are joined in a balanced tree over the ranks: neighbours first, then
// neighbouring pairs. So sums do not depend on which rank computes them, and a rank with a power of two of
// neighbouring shards may join those itself. f16 and bf16 are joined in f32 and rounded once.
func reduceTo(out []byte, parts [][]byte, keep int, d ir.DType, how string) {
	switch d {
	case ir.F32:
		reduceFloats[float32](out, parts, keep, how)
	case ir.F64:
		reduceFloats[float64](out, parts, keep, how)
	case ir.F16:
		reduceNarrow(out, parts, how, half.F16sToF32s, half.F32sToF16s)
	case ir.BF16:
		reduceNarrow(out, parts, how, half.BF16sToF32s, half.F32sToBF16s)
	case ir.U8:
		joinRuns[uint8](out, parts, keep, how)
	case ir.I8:
		joinRuns[int8](out, parts, keep, how)
	case ir.I16:
		joinRuns[int16](out, parts, keep, how)
	case ir.I32:
		joinRuns[int32](out, parts, keep, how)
	case ir.I64:
		joinRuns[int64](out, parts, keep, how)
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

// joinRuns reduces runs of elements to out, and overwrites those that it needs no more, but for keep.
func joinRuns[T number](out []byte, parts [][]byte, keep int, how string) {
	var few [8][]byte
	level := append(few[:0], parts...)
	for len(level) > 2 {
		next := level[:0]
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				next = append(next, level[i])
				break
			}
			to := level[i]
			if keep >= 0 && unsafe.SliceData(to) == unsafe.SliceData(parts[keep]) {
				to = level[i+1]
			}
			pair(as[T](to), as[T](level[i]), as[T](level[i+1]), how)
			next = append(next, to)
		}
		level = next
	}
	if len(level) == 1 {
		copy(out, level[0])
		return
	}
	pair(as[T](out), as[T](level[0]), as[T](level[1]), how)
}

// pair writes x and y, joined, to out, which may be one of them.
func pair[T number](out, x, y []T, how string) {
	x, y = x[:len(out)], y[:len(out)]
	switch how {
	case "max":
		for k := range out {
			out[k] = max(x[k], y[k])
		}
	case "min":
		for k := range out {
			out[k] = min(x[k], y[k])
		}
	default:
		if o, ok := any(out).([]float32); ok {
			vec.Add(o, any(x).([]float32), any(y).([]float32))
			return
		}
		for k := range out {
			out[k] = x[k] + y[k]
		}
	}
}

func reduceFloats[T float32 | float64](out []byte, parts [][]byte, keep int, how string) {
	joinRuns[T](out, parts, keep, how)
	if how == "mean" {
		for i, x := range as[T](out) {
			as[T](out)[i] = x / T(len(parts))
		}
	}
}

// narrowRun is how many elements are widened at a time: those of some ranks stay in the cache.
const narrowRun = 4096

func reduceNarrow(out []byte, parts [][]byte, how string, widen func([]float32, []uint16), narrow func([]uint16, []float32)) {
	n := len(out) / 2
	wide := aligned(4 * min(n, narrowRun) * (len(parts) + 1))
	runs := make([][]byte, len(parts))
	for at := 0; at < n; at += narrowRun {
		m := min(narrowRun, n-at)
		for r, p := range parts {
			runs[r] = wide[4*m*r : 4*m*(r+1)]
			widen(as[float32](runs[r]), as[uint16](p)[at:at+m])
		}
		sum := wide[4*m*len(parts) : 4*m*(len(parts)+1)]
		reduceFloats[float32](sum, runs, -1, how)
		narrow(as[uint16](out)[at:at+m], as[float32](sum))
	}
}
