package kernels

import "unsafe"

// A vectorLoop sets n vectors of vectorBytes, n above 0, of dst to what they and those of src give.
type vectorLoop = func(dst, src *byte, n int)

const vectorBytes = 32

// combiners are the processor's loops for one element type, nil where it has none; allCombiners are those
// of each.
type (
	combiners    struct{ add, max, min vectorLoop }
	allCombiners struct{ u8, i8, i16, i32, i64, f32, f64 combiners }
)

var rowLoops = nativeRowLoops()

// AddRow adds the elements of from to those of row.
func AddRow[T Number](row, from []T) { combineRow(CombineSum, row, from) }

// combineRow sets the elements of row to what they and those of from give.
func combineRow[T Number](how Combine, row, from []T) {
	from = from[:len(row)]
	if f := rowLoop[T](how); f != nil {
		if n := len(row) * int(unsafe.Sizeof(row[0])) / vectorBytes; n > 0 {
			f((*byte)(unsafe.Pointer(&row[0])), (*byte)(unsafe.Pointer(&from[0])), n)
			done := n * vectorBytes / int(unsafe.Sizeof(row[0]))
			row, from = row[done:], from[done:]
		}
	}
	switch how {
	case CombineProd:
		Mul(row, row, from)
	case CombineMax:
		for i, v := range row {
			row[i] = max(v, from[i])
		}
	case CombineMin:
		for i, v := range row {
			row[i] = min(v, from[i])
		}
	default:
		Add(row, row, from)
	}
}

// rowLoop returns the processor's loop for a way and T, or nil.
func rowLoop[T Number](how Combine) vectorLoop {
	var c combiners
	var x T
	switch any(x).(type) {
	case uint8:
		c = rowLoops.u8
	case int8:
		c = rowLoops.i8
	case int16:
		c = rowLoops.i16
	case int32:
		c = rowLoops.i32
	case int64:
		c = rowLoops.i64
	case float32:
		c = rowLoops.f32
	case float64:
		c = rowLoops.f64
	}
	switch how {
	case CombineSum, CombineMean:
		return c.add
	case CombineMax:
		return c.max
	case CombineMin:
		return c.min
	}
	return nil
}
