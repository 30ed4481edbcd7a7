//go:build amd64 && !noasm

package dense

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../dense_amd64.s -stubs ../stubs_amd64.go -pkg dense

const (
	portable kernels = iota
	avx2
	avx512
)

// available returns what the processor can run, the fastest first.
func available() (list []kernels) {
	if isa.AVX512() {
		list = append(list, avx512)
	}
	if isa.AVX2() {
		list = append(list, avx2)
	}
	return append(list, portable)
}

// cols is how many columns of a tile there are.
func (s kernels) cols() int {
	if s == avx512 {
		return 16
	}
	return 8
}

// subtract is subtract of whole tiles.
func (s kernels) subtract(c *float64, ldc int, a *float64, row, col int, b *float64, ldb, k, rows, tiles int) {
	switch s {
	case avx512:
		subtractAVX512(c, ldc, a, row, col, b, ldb, k, rows, tiles)
	case avx2:
		subtractAVX2(c, ldc, a, row, col, b, ldb, k, rows, tiles)
	default:
		subtractRows(c, ldc, a, row, col, b, ldb, k, rows, tiles)
	}
}

// solve is what solve.go says of solveRowsOf.
func (s kernels) solve(by divisors, t, x *float64, step, tiles int) {
	switch {
	case s == avx512 && by == units:
		solveUnitAVX512(t, x, step, tiles)
	case s == avx512 && by == inverses:
		solveQuotientAVX512(t, x, step, tiles)
	case s == avx512:
		solveDivideAVX512(t, x, step, tiles)
	case s == avx2 && by == units:
		solveUnitAVX2(t, x, step, 2*tiles)
	case s == avx2 && by == inverses:
		solveQuotientAVX2(t, x, step, 2*tiles)
	case s == avx2:
		solveDivideAVX2(t, x, step, 2*tiles)
	default:
		solveRowsOf(by, t, x, step, tiles)
	}
}

// quotientsBy, greatest and exchange are what panel.go says of quotientsByOf, greatestOf and exchanged.
func (s kernels) quotientsBy(dst, src *float64, by, inverse float64, blocks int) {
	switch s {
	case avx512:
		quotientsByAVX512(dst, src, by, inverse, blocks)
	case avx2:
		quotientsByAVX2(dst, src, by, inverse, blocks)
	default:
		quotientsByOf(dst, src, by, inverse, blocks)
	}
}

func (s kernels) greatest(x *float64, blocks int) float64 {
	switch s {
	case avx512:
		return greatestAVX512(x, blocks)
	case avx2:
		return greatestAVX2(x, blocks)
	default:
		return greatestOf(x, blocks)
	}
}

func (s kernels) exchange(x, y *float64, blocks int) {
	switch s {
	case avx512:
		exchangeAVX512(x, y, blocks)
	case avx2:
		exchangeAVX2(x, y, blocks)
	default:
		exchanged(x, y, blocks)
	}
}

// dots4 and dots1 are dots of so many rows and of whole blocks of lanes.
func (s kernels) dots4(y, a *float64, lda int, x *float64, blocks int) {
	switch s {
	case avx512:
		dots4AVX512(y, a, lda, x, blocks)
	case avx2:
		dots4AVX2(y, a, lda, x, blocks)
	default:
		dotRows(4, y, a, lda, x, blocks)
	}
}

func (s kernels) dots1(y, a *float64, lda int, x *float64, blocks int) {
	switch s {
	case avx512:
		dots1AVX512(y, a, lda, x, blocks)
	case avx2:
		dots1AVX2(y, a, lda, x, blocks)
	default:
		dotRows(1, y, a, lda, x, blocks)
	}
}

// rotate and reflect are those of matrices, of whole tiles of columns.
func (v kernels) rotate(z *float64, step int, c, s *float64, k, tiles int) {
	switch v {
	case avx512:
		rotateAVX512(z, step, c, s, k, tiles)
	case avx2:
		rotateAVX2(z, step, c, s, k, tiles)
	default:
		rotateRows(z, step, c, s, k, tiles)
	}
}

func (s kernels) reflect(z *float64, step int, f *float64, k, tiles int) {
	switch s {
	case avx512:
		reflectAVX512(z, step, f, k, tiles)
	case avx2:
		reflectAVX2(z, step, f, k, tiles)
	default:
		reflectRows(z, step, f, k, tiles)
	}
}

// update and both are the functions of these names, of whole blocks.
func (s kernels) update(a *float64, lda int, v, w, x, p, q, y *float64, rows, blocks int) {
	switch s {
	case avx512:
		updateAVX512(a, lda, v, w, x, p, q, y, rows, blocks)
	case avx2:
		updateAVX2(a, lda, v, w, x, p, q, y, rows, blocks)
	default:
		updateRows(a, lda, v, w, x, p, q, y, rows, blocks)
	}
}

func (s kernels) both(a *float64, lda int, f, down, x, y *float64, rows, blocks int) {
	switch s {
	case avx512:
		bothAVX512(a, lda, f, down, x, y, rows, blocks)
	case avx2:
		bothAVX2(a, lda, f, down, x, y, rows, blocks)
	default:
		bothOf(a, lda, f, down, x, y, rows, blocks)
	}
}

// sums, ratios and quotients are what secular.go says of sumsOf, ratiosOf and quotientsOf.
func (s kernels) sums(d, z *float64, origin, offset float64, x, sums *float64, blocks int) {
	switch s {
	case avx512:
		sumsAVX512(d, z, origin, offset, x, sums, blocks)
	case avx2:
		sumsAVX2(d, z, origin, offset, x, sums, blocks)
	default:
		sumsOf(d, z, origin, offset, x, sums, blocks)
	}
}

func (s kernels) ratios(y, x, d *float64, from float64, blocks int) {
	switch s {
	case avx512:
		ratiosAVX512(y, x, d, from, blocks)
	case avx2:
		ratiosAVX2(y, x, d, from, blocks)
	default:
		ratiosOf(y, x, d, from, blocks)
	}
}

func (s kernels) quotients(x, z *float64, factor float64, blocks int) {
	switch s {
	case avx512:
		quotientsAVX512(x, z, factor, blocks)
	case avx2:
		quotientsAVX2(x, z, factor, blocks)
	default:
		quotientsOf(x, z, factor, blocks)
	}
}

// widen and narrow convert whole blocks.
func (s kernels) widen(dst *float64, src *float32, blocks int) {
	switch s {
	case avx512:
		widenAVX512(dst, src, blocks)
	case avx2:
		widenAVX2(dst, src, blocks)
	default:
		widened(dst, src, blocks)
	}
}

func (s kernels) narrow(dst *float32, src *float64, blocks int) {
	switch s {
	case avx512:
		narrowAVX512(dst, src, blocks)
	case avx2:
		narrowAVX2(dst, src, blocks)
	default:
		narrowed(dst, src, blocks)
	}
}
