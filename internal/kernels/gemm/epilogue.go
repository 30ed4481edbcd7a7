package gemm

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// epilogue is what is done to a finished result.
type epilogue[A Float] struct {
	beta     A
	colBias  []A
	rowBias  []A
	rowScale []A
	residual anyOperand
	act      Activation
	finish   any // func(row, col int, piece []T)
}

// none reports whether a finished result stays as it is, which may have the
// columns' bias already.
func (e *epilogue[A]) none(biased bool) bool {
	return (e.colBias == nil || biased) && e.rowBias == nil && e.rowScale == nil && e.residual.data == nil && e.act == Identity && e.finish == nil
}

// finishTogether is how many elements of short rows are finished as if they were one row, since calling what finishes
// them takes as long as a hundred elements.
const finishTogether = 512

// alike reports whether all rows of n elements are finished alike, so that several of them may be finished as one.
func (e *epilogue[A]) alike(n int) bool {
	return e.rowBias == nil && e.rowScale == nil && e.finish == nil && (e.residual.data == nil || e.residual.adjoins(n))
}

// adjoins reports whether rows of n elements are one after the other.
func (o *anyOperand) adjoins(n int) bool { return o.rs == n && o.cs == 1 }

// apply finishes a piece of a row that has the sum of products, beta's part, and the columns' bias unless that is given.
// tmp is scratch of the same length.
func (e *epilogue[A]) apply(kn *kernel[A], row, col int, x, tmp, bias []A) {
	if e.rowScale != nil {
		scale(x, e.rowScale[row])
	}
	if e.rowBias != nil {
		v := e.rowBias[row]
		for i := range x {
			x[i] += v
		}
	}
	var res []A
	if bias != nil {
		bias = bias[:len(x)]
	}
	if r := &e.residual; r.data != nil {
		res = rowOf(r, row, col, tmp[:len(x)])
	}
	if e.act == Relu || bias != nil || res != nil {
		done := 0
		if kn.finish != nil {
			done = finishRow(kn, x, bias, res, e.act == Relu)
		}
		rest := x[done:]
		if bias != nil {
			addTo(rest, bias[done:])
		}
		if res != nil {
			addTo(rest, res[done:])
		}
		if e.act == Relu {
			kernels.Relu(rest, rest)
		}
	}
	if e.act != Relu {
		activate(e.act, x)
	}
}

// finishRow adds rows (nil for none) to x and returns how many elements it did.
func finishRow[A Float](kn *kernel[A], x, y, z []A, relu bool) int {
	lanes := kn.nr / 2
	n := len(x) / lanes * lanes
	if n == 0 {
		return 0
	}
	least := A(math.Inf(-1))
	if relu {
		least = 0
	}
	kn.finish(&x[0], unsafe.SliceData(y), unsafe.SliceData(z), n, least)
	return n
}

// rowOf returns a piece of a row of a strided operand: the elements themselves if
// they are wide and adjacent, else widened into tmp.
func rowOf[A Float](o *anyOperand, row, col int, tmp []A) []A {
	n := len(tmp)
	if o.format != wide {
		widen(o.format, tmp, o.at(row, col, 2), o.cs)
		return tmp
	}
	src := unsafe.Slice((*A)(o.at(row, col, unsafe.Sizeof(tmp[0]))), (n-1)*o.cs+1)
	if o.cs == 1 {
		return src
	}
	for i := range tmp {
		tmp[i] = src[i*o.cs]
	}
	return tmp
}

func addTo[A Float](x, y []A) {
	y = y[:len(x)]
	for i := range x {
		x[i] += y[i]
	}
}

func scale[A Float](x []A, by A) {
	for i := range x {
		x[i] *= by
	}
}

// activate applies an activation other than Relu in place.
func activate[A Float](act Activation, x []A) { vec.Apply(vec.Activation{Kind: act}, x) }

// biasRows sets rows to the bias of so many columns from j on. Those of a tile are in the first-level cache then, where the sums
// are added to them: rows that are set all at once would be read from memory again.
func (s *state[A]) biasRows(c []A, ldc, rows, j, cols int) {
	bias := s.post.colBias[j : j+cols]
	if f := s.kernel.copyRows; f != nil && (cols == s.kernel.nr || cols < s.kernel.nr && s.kernel.masked) {
		f(&c[0], ldc, &bias[0], 0, cols, rows)
		return
	}
	for i := range rows {
		copy(c[i*ldc:], bias)
	}
}

// store puts a finished piece of a row in its place and shows it to the caller.
// tmp is scratch of the same length.
func (s *state[A]) store(row, col int, x, tmp []A) {
	if s.c.format != wide {
		s.storeNarrow(row, col, x, tmp)
		return
	}
	if f, ok := s.post.finish.(func(int, int, []A)); ok {
		f(row, col, x)
	}
	if s.plan.direct {
		return
	}
	scatter(unsafe.Slice((*A)(s.c.at(row, col, unsafe.Sizeof(x[0]))), (len(x)-1)*s.c.cs+1), x, s.c.cs)
}

func (s *state[A]) storeNarrow(row, col int, x, tmp []A) {
	to := s.c.at(row, col, 2)
	if s.post.finish == nil {
		narrow(s.c.format, to, s.c.cs, x)
		return
	}
	piece := unsafe.Slice((*uint16)(dataOf(tmp)), len(x))
	narrow(s.c.format, dataOf(piece), 1, x)
	switch f := s.post.finish.(type) {
	case func(int, int, []BF16):
		f(row, col, unsafe.Slice((*BF16)(dataOf(piece)), len(x)))
	case func(int, int, []F16):
		f(row, col, unsafe.Slice((*F16)(dataOf(piece)), len(x)))
	}
	scatter(unsafe.Slice((*uint16)(to), (len(x)-1)*s.c.cs+1), piece, s.c.cs)
}

// scatter stores elements stride apart.
func scatter[E any](dst, src []E, stride int) {
	for i, v := range src {
		dst[i*stride] = v
	}
}
