package kernels

import "unsafe"

// A byteLoop sets n bytes of dst, a multiple of loopBytes, to what their elements and those of src give.
type byteLoop = func(dst, src *byte, n int)

// A rowsLoop does the same for n rows of bytes bytes of dst that an index selects and as many of src, one
// after another, until an index is not that of one of size rows, and returns how many those were. Rows of
// dst are stride bytes apart, those of src step.
type rowsLoop = func(dst, src *byte, index *int64, size, n, bytes, stride, step int) int

const loopBytes = 4

// combiners are the processor's loops for one element type, nil where it has none; allCombiners are those
// of each.
type (
	combiners struct {
		add, max, min byteLoop
		addRows       rowsLoop
	}
	allCombiners struct{ u8, i8, i16, i32, i64, f32, f64 combiners }
)

var rowLoops = nativeRowLoops()

// AddRow adds the elements of from to those of row.
func AddRow[T Number](row, from []T) { CombineRow(CombineSum, row, from) }

// CombineRow sets the elements of row to what they and those of from give.
func CombineRow[T Number](how Combine, row, from []T) {
	from = from[:len(row)]
	c := combiner[T]()
	if f := c.loop(how); f != nil {
		if n := len(row) * int(unsafe.Sizeof(row[0])) &^ (loopBytes - 1); n > 0 {
			f((*byte)(unsafe.Pointer(&row[0])), (*byte)(unsafe.Pointer(&from[0])), n)
			done := n / int(unsafe.Sizeof(row[0]))
			row, from = row[done:], from[done:]
		}
		if len(row) == 0 {
			return
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

// addIndexedRows adds pieces of n elements of source, one for each of an index and step elements apart, to those
// of the rows that it selects of size rows of dst, stride elements apart, in the order of the index.
func addIndexedRows[T Number](dst []T, index []int64, source []T, size, n, stride, step int) {
	done := 0
	if f, width := combiner[T]().addRows, int(unsafe.Sizeof(*new(T))); f != nil && size > 0 {
		to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(source))
		for most := max(indexMost/(n+1), 1); done < len(index); {
			count := min(most, len(index)-done)
			k := f((*byte)(to), (*byte)(unsafe.Add(from, done*step*width)), &index[done], size, count, n*width, stride*width, step*width)
			if done += k; k < count {
				break
			}
		}
	}
	for j := done; j < len(index); j++ {
		p := checked(index[j], size) * stride
		CombineRow(CombineSum, dst[p:p+n], source[j*step:j*step+n])
	}
}

// combiner returns the processor's loops for T.
func combiner[T Number]() (c combiners) {
	var x T
	switch any(x).(type) {
	case uint8:
		return rowLoops.u8
	case int8:
		return rowLoops.i8
	case int16:
		return rowLoops.i16
	case int32:
		return rowLoops.i32
	case int64:
		return rowLoops.i64
	case float32:
		return rowLoops.f32
	case float64:
		return rowLoops.f64
	}
	return c
}

// loop returns the loop for a way, or nil.
func (c *combiners) loop(how Combine) byteLoop {
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
