//go:build amd64 && !noasm

package gemm

import (
	"golang.org/x/sys/cpu"

	"github.com/loris-ml/loris/internal/isa"
)

// tileShapes is what LDTILECFG reads: rows and bytes of a row of each tile (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, section 18.3).
type tileShapes struct {
	palette, startRow byte
	_                 [14]byte
	rowBytes          [16]uint16
	rows              [16]byte
}

// set gives the tiles of the result, of the left and of the right operand their shapes, for a product of
// rows×cols of the given depth in words, all at most twice a tile but for the depth, which is at most one.
func (t *tileShapes) set(rows, cols, depth int) {
	t.palette = 1
	for i := range 2 {
		r, c := min(max(rows-i*tileRows, 0), tileRows), min(max(cols-i*tileCols, 0), tileCols)
		t.shape(4+i, r, depth)
		t.shape(6+i, depth, c)
		for j := range 2 {
			t.shape(2*i+j, r, min(max(cols-j*tileCols, 0), tileCols))
		}
	}
}

// shape sets the shape of one tile, in words; both sides are zero where one is.
func (t *tileShapes) shape(tile, rows, words int) {
	if rows == 0 || words == 0 {
		return
	}
	t.rows[tile], t.rowBytes[tile] = byte(rows), uint16(4*words)
}

// amxProduct is a product of up to 32×32 for amxBF16: the result starts as zeros or, with add, as what
// is there. Distances of rows are in bytes. The depth is steps of 16 words and, with rest, one of fewer.
type amxProduct struct {
	whole, last      tileShapes
	a, b, c          *float32
	aRow, bRow, cRow int
	steps, rest, add int
	// twoRows and twoCols say that there is a second tile below, and beside.
	twoRows, twoCols int
}

// amxBF16 computes p, whose fields it changes.
//
//go:noescape
func amxBF16(p *amxProduct)

// amxTile is a deepTile.
func amxTile(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) {
	p := newProduct(rows, depth, a, aRow, b, bK, c, ldc, cols, add)
	amxBF16(&p)
}

// newProduct returns what a deepTile is called with for amxBF16.
func newProduct(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool) amxProduct {
	p := amxProduct{
		a: a, b: b, c: c, aRow: 4 * aRow, bRow: 4 * bK, cRow: 4 * ldc,
		steps: depth / tileDepth, rest: depth % tileDepth,
	}
	p.whole.set(rows, cols, tileDepth)
	p.last.set(rows, cols, p.rest)
	if add {
		p.add = 1
	}
	if rows > tileRows {
		p.twoRows = 1
	}
	if cols > tileCols {
		p.twoCols = 1
	}
	return p
}

// amxPairs returns the kernel for bfloat16 of processors with AMX, or nil. The system must let the
// process use it, and the loop must get a product right that is known: it is run less often than others.
func amxPairs() *kernel[float32] {
	x := &cpu.X86
	if !isa.BF16Pairs() || !x.HasAMXTile || !x.HasAMXBF16 || !permitTiles() {
		return nil
	}
	if !multiplies(amxTile) {
		return nil
	}
	return deepKernel("amx", avx512Pairs, amxTile)
}
