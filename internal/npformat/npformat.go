// Package npformat prints n-dimensional arrays the way NumPy's array2string
// does: elements in columns of one width, floats with the fewest digits that
// tell them apart, up to a precision, scientific notation where the values need
// it, long lines wrapped, and only the corners of large arrays.
//
// Only the elements that are printed are read, each once.
package npformat

import (
	"math"
	"slices"
	"strings"
)

// Kind is the kind of the elements of an array. The floats differ in how many
// digits tell two of them apart.
type Kind uint8

// The kinds. Floats of 8 bits are printed as Float32: their values have few
// digits, and those that would do to tell them apart mislead (450 for 448).
const (
	Bool Kind = iota
	Int
	Float64
	Float32
	Float16
	BFloat16
)

// Elem gives the elements of an array by their index in row-major order.
type Elem struct {
	Kind  Kind
	Int   func(i int) int64   // for Int, and for Bool, where 0 is false
	Float func(i int) float64 // for the floats
}

// Options are the settings of numpy.set_printoptions of the same names, and the
// arguments of array2string.
type Options struct {
	Precision int  // digits after the point at most
	Threshold int  // arrays of more elements are summarized
	EdgeItems int  // shown at both ends of each dimension of a summary; at least 1
	LineWidth int  // columns of a line
	Suppress  bool // small values do not cause scientific notation

	Separator string // between elements
	Prefix    string // text that precedes the output: later lines align after it
	Suffix    string // text that follows the output: lines leave room for it

	// Limit bounds the elements printed, by showing fewer edge items where the
	// dimensions are many. NumPy knows no such bound; 0 is none.
	Limit int
}

// Defaults returns NumPy's default options, and a limit that no array of rank 5
// or less meets.
func Defaults() Options {
	return Options{Precision: 8, Threshold: 1000, EdgeItems: 3, LineWidth: 75, Separator: " ", Limit: 10_000}
}

// Format prints the array of the given shape, whose dimensions are not negative
// and whose number of elements is an int. An array without elements is "[]", one
// of rank 0 its element alone.
func Format(shape []int, e Elem, o Options) string {
	if slices.Contains(shape, 0) {
		return "[]"
	}
	p := printer{
		shape:     shape,
		strides:   make([]int, len(shape)),
		separator: o.Separator,
		bare:      strings.TrimRight(o.Separator, " \t\n"),
	}
	size := 1
	for axis := len(shape) - 1; axis >= 0; axis-- {
		p.strides[axis] = size
		size *= shape[axis]
	}
	if size > o.Threshold || o.Limit > 0 && size > o.Limit {
		p.edge = max(o.EdgeItems, 1)
		for o.Limit > 0 && p.edge > 1 && p.count() > o.Limit {
			p.edge--
		}
	}
	var indices []int
	p.visit(0, 0, func(i int) { indices = append(indices, i) })
	p.words = e.words(indices, len(shape) == 0, o)
	return p.array(0, strings.Repeat(" ", len(o.Prefix)+1), o.LineWidth-len(o.Suffix))
}

// printer lays out the words of the printed elements.
type printer struct {
	shape, strides  []int
	separator, bare string   // bare is without the white space at its end
	edge            int      // items at both ends of a summary; 0 is no summary
	words           []string // not yet printed
}

// cut reports whether the middle of the axis is left out.
func (p *printer) cut(axis int) bool { return p.edge > 0 && p.shape[axis] > 2*p.edge }

// count is the number of elements printed, at most math.MaxInt.
func (p *printer) count() int {
	n := 1
	for axis, dim := range p.shape {
		if p.cut(axis) {
			dim = 2 * p.edge
		}
		if n > math.MaxInt/dim {
			return math.MaxInt
		}
		n *= dim
	}
	return n
}

// visit calls f with the indices of the printed elements, in order.
func (p *printer) visit(axis, base int, f func(int)) {
	if axis == len(p.shape) {
		f(base)
		return
	}
	dim := p.shape[axis]
	for i := 0; i < dim; i++ {
		if p.cut(axis) && i == p.edge {
			i = dim - p.edge
		}
		p.visit(axis+1, base+i*p.strides[axis], f)
	}
}

// array lays out one array of the axis and the ones after it. Its lines after
// the first begin with indent, the first does so in effect.
func (p *printer) array(axis int, indent string, width int) string {
	if axis == len(p.shape) {
		return p.next()
	}
	items, gap := p.shape[axis], -1 // gap is the item before which "..." stands
	if p.cut(axis) {
		items, gap = 2*p.edge, p.edge
	}
	if axis == len(p.shape)-1 {
		return "[" + p.row(items, gap, indent, width-max(len(p.bare), len("]"))) + "]"
	}
	var b strings.Builder
	lineEnd := p.bare + strings.Repeat("\n", len(p.shape)-axis-1) + indent
	b.WriteByte('[')
	for i := range items {
		if i > 0 {
			b.WriteString(lineEnd)
		}
		if i == gap {
			b.WriteString("..." + lineEnd)
		}
		b.WriteString(p.array(axis+1, indent+" ", width-len("]")))
	}
	b.WriteByte(']')
	return b.String()
}

func (p *printer) next() string {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// row lays out the items of the last axis over lines of the given width.
func (p *printer) row(items, gap int, indent string, width int) string {
	var done strings.Builder
	line := indent
	put := func(word string) {
		// A word too long for an empty line gains nothing by a new one.
		if len(line)+len(word) > width && len(line) > len(indent) {
			done.WriteString(strings.TrimRight(line, " \t\n") + "\n")
			line = indent
		}
		line += word
	}
	for i := range items {
		if i > 0 {
			line += p.separator
		}
		if i == gap {
			put("...")
			line += p.separator
		}
		put(p.next())
	}
	done.WriteString(line)
	return done.String()[len(indent):]
}
