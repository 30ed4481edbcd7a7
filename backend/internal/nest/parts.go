package nest

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
)

const (
	// fewLines is when the lines of a reduction give the processors too little to share.
	fewLines = 16
	// mostStrips bounds the parts of a tall reduction, mostParts those of a reduction to few lines.
	mostStrips = 128
	mostParts  = 64
	// productParts is how many parts of products take the place of one. Random factors bring a product below the
	// least normal number, where processors multiply some forty times slower, and then to zero: in a short part
	// no chain of multiplications comes that far.
	productParts = 4
	// leastBeside is how many lines there are at least that are computed beside each other.
	leastBeside = 64
)

// Cut says from where on reductions are cut into parts.
type Cut struct {
	Part  int // elements in a part of a reduction to few results
	Tall  int // elements from where on a reduction of columns is cut into strips
	Strip int // rows in a strip, at least
	Short int // bytes of a line up to which lines are computed beside each other
	Place int // and where places of elements are found, whose vectors take longer to join
}

// Piece is the number of elements in a call of a kernel, about: what takes some microseconds.
const Piece = 1 << 14

// Cuts returns where processors are best served by parts. Sums depend on it.
func Cuts() Cut { return Cut{Part: 1 << 15, Tall: 1 << 18, Strip: 32, Short: 96, Place: 2048} }

// Parts returns into how many parts the lines of a reduction are cut: where there
// are few of them, and where lines are tall columns, which are better read in
// strips of rows.
func (t Cut) Parts(r fuse.Reduction) int {
	first := 1 // the size of the first run of reduced dimensions
	started := false
	for d, size := range r.Shape.Dims() {
		if r.Mask[d] {
			first *= size
			started = started || size > 1
		} else if started && size > 1 {
			break
		}
	}
	switch {
	case r.Lines < fewLines:
		more := 1
		if r.Product && r.Shape.DType().IsFloat() {
			more = productParts
		}
		return max(1, min(r.Shape.Numel()*more/t.Part, first, mostParts*more))
	case r.Axis == loop.Rows && !r.Place && r.Shape.Numel() >= t.Tall && first >= 4*t.Strip:
		return min(first/t.Strip, mostStrips)
	}
	return 1
}

// Beside reports whether the lines of a reduction are computed beside each other although the elements
// of each adjoin: they are so short that a vector has few elements of one, and what comes once for a line
// takes most of the time.
func (t Cut) Beside(r fuse.Reduction) bool {
	short := t.Short
	if r.Place {
		short = t.Place
	}
	return r.Lines >= leastBeside && r.Shape.Numel()/r.Lines*r.Shape.DType().Size() <= short
}
