package gemm

import "unsafe"

// anyOperand is an operand of any element type and form. One of data and
// packed is set, unless the operand is empty.
type anyOperand struct {
	rows, cols int
	format     format
	data       unsafe.Pointer // of element (0, 0)
	rs, cs     int
	packed     unsafe.Pointer // of a right operand: panels of the type that products are summed in
}

func operandOf[T Element](m Matrix[T]) anyOperand {
	return anyOperand{rows: m.Rows, cols: m.Cols, format: formatOf[T](), data: dataOf(m.Data), rs: m.RowStride, cs: m.ColStride}
}

func dataOf[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func (o *anyOperand) strided() bool { return o.packed == nil }

// size returns the bytes of an element, where those of wide ones are given.
func (o *anyOperand) size(wideSize int) int {
	if o.format == wide {
		return wideSize
	}
	return 2
}

func (o *anyOperand) transposed() anyOperand {
	t := *o
	t.rows, t.cols, t.rs, t.cs = o.cols, o.rows, o.cs, o.rs
	return t
}

// at returns the address of element (i, j) of a strided operand.
func (o *anyOperand) at(i, j int, size uintptr) unsafe.Pointer {
	return unsafe.Add(o.data, (i*o.rs+j*o.cs)*int(size))
}

// pack writes a panel: for each k of k0..k1-1 the elements x0..x1-1 across it,
// width elements apart in dst. A panel of a left operand goes across rows, one
// of a right operand across columns; across and along are the strides of the
// operand in those directions.
func pack[A Float](kn *kernel[A], w *scratch[A], dst []A, width int, o *anyOperand, across, along, x0, x1, k0, k1 int) {
	n, depth := x1-x0, k1-k0
	if n == 0 || depth == 0 {
		return
	}
	if o.format == wide {
		size := int(unsafe.Sizeof(dst[0]))
		for k := 0; k < depth; k += packDepth {
			src := (*A)(unsafe.Add(o.data, (x0*across+(k0+k)*along)*size))
			packWide(kn, dst[k*width:], width, src, across, along, n, min(packDepth, depth-k))
		}
		return
	}
	// 16-bit elements are widened in pieces that stay in the cache.
	src := unsafe.Add(o.data, (x0*across+k0*along)*2)
	w.wide = grown(w.wide, n*min(depth, narrowDepth))
	for k := 0; k < depth; k += narrowDepth {
		part := min(narrowDepth, depth-k)
		from := unsafe.Add(src, k*along*2)
		to := dst[k*width:]
		if across == 1 {
			for p := range part {
				widen(o.format, to[p*width:][:n], unsafe.Add(from, p*along*2), 1)
			}
			continue
		}
		for i := range n {
			widen(o.format, w.wide[i*part:][:part], unsafe.Add(from, i*across*2), along)
		}
		packWide(kn, to, width, &w.wide[0], part, 1, n, part)
	}
}

// narrowDepth is how deep the pieces are in which 16-bit operands are widened.
const narrowDepth = 256

// packWide packs elements of the type that products are summed in.
func packWide[A Float](kn *kernel[A], dst []A, width int, src *A, across, along, n, depth int) {
	to := unsafe.SliceData(dst)
	switch {
	case across == 1 && kn.copyRows != nil:
		kn.copyRows(to, width, src, along, n, depth)
	case along == 1 && kn.transpose != nil:
		kn.transpose(to, width, src, across, n, depth)
	default:
		packStrided(dst, width, unsafe.Slice(src, (n-1)*across+(depth-1)*along+1), across, along, n, depth)
	}
}

// packStrided is the portable packing.
func packStrided[A Float](dst []A, width int, src []A, across, along, n, depth int) {
	if across == 1 {
		for p := range depth {
			copy(dst[p*width:][:n], src[p*along:])
		}
		return
	}
	for i := range n {
		from := src[i*across:]
		for p := range depth {
			dst[p*width+i] = from[p*along]
		}
	}
}
