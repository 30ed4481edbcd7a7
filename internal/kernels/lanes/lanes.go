// Package lanes factors and solves with groups of small matrices of float64, each matrix in a lane of vectors,
// so that a group takes about as long as one matrix by itself. Each does the arithmetic of package dense's loops
// for one small matrix in the same order, so that results are the same bits, but for signs and payloads of NaNs.
//
// A group lies in blocks: block i has element i of each of its Width matrices.
package lanes

// Width is the matrices of a group.
const Width = 8

// Room is the numbers of room for n elements of each matrix of a group.
func Room(n int) int { return (n + Width - 1) / Width * Width * Width }

// kernel computes parts of a group at a time, those that a vector has lanes for.
type kernel struct {
	name        string
	factor      func(a *float64, rows, cols, count int, pivots, info *float64)
	exchange    func(x *float64, cols, row, n int, pivots *float64)
	reduce      func(to *float64, cols, across int, t *float64, step int, x *float64, width, depth int, d *float64)
	root        func(row *float64, n int) bool
	determinant func(lu *float64, n int, pivots, det *float64)
	f64         mover[float64]
	f32         mover[float32]
	i32         mover[int32]
}

// mover converts groups from and to how matrices lie in tensors.
type mover[T Number] struct {
	gather  func(dst *float64, src *T, stride, n int)
	scatter func(dst *T, src *float64, stride, n int)
}

// Number is a type of the elements of tensors.
type Number interface{ float64 | float32 | int32 }

// use is what the processor can run, nil if it is nothing; tests change it.
var use = fastest()

func fastest() *kernel {
	if list := available(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// Available reports whether the processor can run the functions below.
func Available() bool { return use != nil }

func moverOf[T Number]() *mover[T] {
	var m any
	switch any(T(0)).(type) {
	case float64:
		m = &use.f64
	case float32:
		m = &use.f32
	case int32:
		m = &use.i32
	}
	return m.(*mover[T])
}

// Gather makes a group of matrices of n elements, which begin stride elements apart. dst has Room for it.
func Gather[T Number](dst []float64, src []T, stride, n int) {
	if n > 0 {
		_, _ = dst[Room(n)-1], src[(Width-1)*stride+n-1]
		moverOf[T]().gather(&dst[0], &src[0], stride, n)
	}
}

// Scatter writes matrices of n elements, which begin stride elements apart, as they are after a group in Room for it.
func Scatter[T Number](dst []T, src []float64, stride, n int) {
	if n > 0 {
		_, _ = src[Room(n)-1], dst[(Width-1)*stride+n-1]
		moverOf[T]().scatter(&dst[0], &src[0], stride, n)
	}
}

// Block returns element i of each matrix.
func Block(x []float64, i int) *[Width]float64 { return (*[Width]float64)(x[i*Width:]) }

// Factor is dense.SmallLU. Pivots and info, of one element, count rows from 1: info is the first pivot that is
// zero, or 0.
func Factor(a []float64, rows, cols int, pivots, info []float64) {
	count := min(rows, cols)
	if count == 0 {
		*Block(info, 0) = [Width]float64{}
		return
	}
	_, _ = a[rows*cols*Width-1], pivots[count*Width-1]
	use.factor(&a[0], rows, cols, count, &pivots[0], &Block(info, 0)[0])
}

// Exchange exchanges a row of n, each of cols elements, with those that one element of pivots names, counted from 1.
func Exchange(x []float64, cols, row, n int, pivots []float64) {
	if n > 0 && cols > 0 {
		_, _ = x[n*cols*Width-1], x[row*cols*Width]
		use.exchange(&x[0], cols, row, n, &Block(pivots, 0)[0])
	}
}

// Solve is dense.SmallSolve: element i, k of the triangles is block i*row + k*col.
func Solve(t []float64, n, row, col int, x []float64, cols int, upper, unit bool) {
	solve(t, n, row, col, x, cols, cols, 1, upper, unit)
}

// SolveRows is Solve of right sides that are rows of n blocks in place of columns.
func SolveRows(t []float64, n, row, col int, x []float64, rows int, upper, unit bool) {
	solve(t, n, row, col, x, rows, 1, n, upper, unit)
}

// solve solves for count right sides: element i of them begins at block i*width, and they lie across blocks apart.
func solve(t []float64, n, row, col int, x []float64, count, width, across int, upper, unit bool) {
	if n == 0 || count == 0 {
		return
	}
	_, _ = t[((n-1)*(row+col)+1)*Width-1], x[n*count*Width-1]
	for c := range n {
		i, first, back := c, 0, 1
		if upper {
			i, first, back = n-1-c, n-1, -1
		}
		var d *float64
		if !unit {
			d = &t[i*(row+col)*Width]
		}
		use.reduce(&x[i*width*Width], count, across, &t[(i*row+first*col)*Width], back*col, &x[first*width*Width], back*width, c, d)
	}
}

// Cholesky is dense.SmallCholesky of the transposed matrices: of a symmetric matrix what is above the diagonal
// becomes the transposed factor. If it is not one that all matrices have, it reports false, and results are none.
func Cholesky(a []float64, n int) bool {
	if n == 0 {
		return true
	}
	_ = a[n*n*Width-1]
	for j := range n {
		row := &a[j*(n+1)*Width]
		use.reduce(row, n-j, 1, &a[j*Width], n, &a[j*Width], n, j, nil)
		if !use.root(row, n-j-1) {
			return false
		}
	}
	return true
}

// Determinant makes det, one element, the product of the pivots of what Factor gives, times -1 for each row exchanged.
func Determinant(lu []float64, n int, pivots, det []float64) {
	if n == 0 {
		for i := range Width {
			det[i] = 1
		}
		return
	}
	_, _ = lu[n*n*Width-1], pivots[n*Width-1]
	use.determinant(&lu[0], n, &pivots[0], &Block(det, 0)[0])
}
