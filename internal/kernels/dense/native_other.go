//go:build !amd64 || noasm

package dense

const portable kernels = 0

// available returns what the processor can run.
func available() []kernels { return []kernels{portable} }

// cols is how many columns of a tile there are.
func (kernels) cols() int { return 8 }

// subtract is subtract of whole tiles.
func (kernels) subtract(c *float64, ldc int, a *float64, row, col int, b *float64, ldb, k, rows, tiles int) {
	subtractRows(c, ldc, a, row, col, b, ldb, k, rows, tiles)
}

// solve is what solve.go says of solveRowsOf.
func (kernels) solve(by divisors, t, x *float64, step, tiles int) { solveRowsOf(by, t, x, step, tiles) }

// quotientsBy, greatest and exchange are what panel.go says of quotientsByOf, greatestOf and exchanged.
func (kernels) quotientsBy(dst, src *float64, by, inverse float64, blocks int) {
	quotientsByOf(dst, src, by, inverse, blocks)
}

func (kernels) greatest(x *float64, blocks int) float64 { return greatestOf(x, blocks) }

func (kernels) exchange(x, y *float64, blocks int) { exchanged(x, y, blocks) }

// dots4 and dots1 are dots of so many rows and of whole blocks of lanes.
func (kernels) dots4(y, a *float64, lda int, x *float64, blocks int) {
	dotRows(4, y, a, lda, x, blocks)
}

func (kernels) dots1(y, a *float64, lda int, x *float64, blocks int) {
	dotRows(1, y, a, lda, x, blocks)
}

// rotate and reflect are those of matrices, of whole tiles of columns.
func (kernels) rotate(z *float64, step int, c, s *float64, k, tiles int) {
	rotateRows(z, step, c, s, k, tiles)
}

func (kernels) reflect(z *float64, step int, f *float64, k, tiles int) {
	reflectRows(z, step, f, k, tiles)
}

// update and both are the functions of these names, of whole blocks.
func (kernels) update(a *float64, lda int, v, w, x, p, q, y *float64, rows, blocks int) {
	updateRows(a, lda, v, w, x, p, q, y, rows, blocks)
}

func (kernels) both(a *float64, lda int, f, down, x, y *float64, rows, blocks int) {
	bothOf(a, lda, f, down, x, y, rows, blocks)
}

// sums, ratios and quotients are what secular.go says of sumsOf, ratiosOf and quotientsOf.
func (kernels) sums(d, z *float64, origin, offset float64, x, sums *float64, blocks int) {
	sumsOf(d, z, origin, offset, x, sums, blocks)
}

func (kernels) ratios(y, x, d *float64, from float64, blocks int) {
	ratiosOf(y, x, d, from, blocks)
}

func (kernels) quotients(x, z *float64, factor float64, blocks int) {
	quotientsOf(x, z, factor, blocks)
}

// widen and narrow convert whole blocks.
func (kernels) widen(dst *float64, src *float32, blocks int) {
	widened(dst, src, blocks)
}

func (kernels) narrow(dst *float32, src *float64, blocks int) {
	narrowed(dst, src, blocks)
}
