package tile

import "unsafe"

// portableWidth and portableRows are the shape of the portable tile: its inner
// blocks of 2×4 fit in the registers of every processor.
const (
	portableWidth = 8
	portableRows  = 8
	blockCols     = 4
)

func portable[A Float]() *Set[A] {
	s := &Set[A]{Name: "portable", Width: portableWidth, winograd: portableTransforms[A]()}
	for rows := 1; rows <= portableRows; rows++ {
		of := func(cols int) tileFunc {
			return func(a *byte) { blocks((*Args[A])(unsafe.Pointer(a)), rows, cols) }
		}
		s.depthwise = append(s.depthwise, func(a *byte) { byColumns((*Args[A])(unsafe.Pointer(a)), rows) })
		s.half = append(s.half, of(portableWidth/2))
		s.one = append(s.one, of(portableWidth))
		s.two = append(s.two, of(2*portableWidth))
	}
	return s
}

func blocks[A Float](a *Args[A], rows, cols int) {
	for row := 0; row < rows; row += 2 {
		for col := 0; col < cols; col += blockCols {
			w, first := a.W, col
			if col >= portableWidth {
				w, first = a.W2, col-portableWidth
			}
			block(a, w, first*elemSize[A](), row, col, row+1 < rows)
		}
	}
}

func elemSize[A Float]() int {
	var a A
	return int(unsafe.Sizeof(a))
}

func at[A Float](p unsafe.Pointer, off int) *[blockCols]A {
	return (*[blockCols]A)(unsafe.Add(p, off))
}

// block computes rows row and, if both, row+1 of four columns, whose first right
// element is wOff bytes from w. A product of no steps may have no right operand.
func block[A Float](a *Args[A], w unsafe.Pointer, wOff, row, col int, both bool) {
	next := 0
	if both {
		next = 1
	}
	size := elemSize[A]()
	i0 := *at[A](a.Init, row*a.InitStep+col*size)
	i1 := *at[A](a.Init, (row+next)*a.InitStep+col*size)
	c00, c01, c02, c03 := i0[0], i0[1], i0[2], i0[3]
	c10, c11, c12, c13 := i1[0], i1[1], i1[2], i1[3]
	for s := range a.NSegs {
		off := *(*int)(unsafe.Add(a.Segs, s*int(unsafe.Sizeof(0)))) + row*a.XStep
		for range a.Run {
			x := *(*A)(unsafe.Add(a.X, off))
			y := *(*A)(unsafe.Add(a.X, off+next*a.XStep))
			b := at[A](w, wOff)
			c00 += x * b[0]
			c01 += x * b[1]
			c02 += x * b[2]
			c03 += x * b[3]
			c10 += y * b[0]
			c11 += y * b[1]
			c12 += y * b[2]
			c13 += y * b[3]
			off += a.KStep
			wOff += a.WStep
		}
	}
	finish(a, row, col*size, [blockCols]A{c00, c01, c02, c03})
	if both {
		finish(a, row+1, col*size, [blockCols]A{c10, c11, c12, c13})
	}
}

// finish stores four columns of a row; off is theirs in bytes.
func finish[A Float](a *Args[A], row, off int, c [blockCols]A) {
	dst, add := at[A](a.C, row*a.CStep+off), at[A](a.Add, row*a.AddStep+off)
	for i := range c {
		c[i] += add[i]
	}
	bound(dst, c, a)
}

// bound stores four results within the bounds.
func bound[A Float](dst *[blockCols]A, c [blockCols]A, a *Args[A]) {
	for i, v := range c {
		if v < a.Lo {
			v = a.Lo
		}
		if v > a.Hi {
			v = a.Hi
		}
		dst[i] = v
	}
}

// byColumns is the depthwise tile, four columns at a time.
func byColumns[A Float](a *Args[A], rows int) {
	size := elemSize[A]()
	for row := range rows {
		for off := 0; off < a.Run*portableWidth/2*size; off += blockCols * size {
			c := *at[A](a.Init, off)
			for s := range a.NSegs {
				x := at[A](a.X, *(*int)(unsafe.Add(a.Segs, s*int(unsafe.Sizeof(0))))+row*a.XStep+off)
				w := at[A](a.W, s*a.WStep+off)
				for i := range c {
					c[i] += x[i] * w[i]
				}
			}
			bound(at[A](a.C, row*a.CStep+off), c, a)
		}
	}
}
