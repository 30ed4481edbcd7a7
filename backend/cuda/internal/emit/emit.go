// Package emit writes CUDA C++: fused loops (package loop) and the kernels that
// are no loops, together with how they are launched. It is plain Go and needs
// neither a device nor a toolkit; what compiles the sources and runs them is
// elsewhere.
//
// A source has no sizes. Sizes, strides and addresses are slots of 64 bits in the
// one parameter of an entry, a struct, so that a new batch size compiles nothing.
// Each source has the entries that its sizes may ask for: with elements accessed
// one at a time or in packs of up to 16 bytes; for reductions with a group of
// threads to a line, which reads the line again in each pass or holds it in
// registers, or with lines cut into parts that several blocks reduce, a launch
// for each pass and one to combine what they found. Plan chooses among them by
// sizes alone, and folds have a fixed order: results are the same from run to run.
//
// Sources are to be compiled without contraction of products and sums
// (-fmad=false) and without fast-math, so that each operation is rounded as
// package ir says. Elementary functions are those of CUDA's library: of f32s
// within 2 units in the last place, but for tan and pow (4), sinh, atanh, asinh
// and atan2 (3), acosh (4); of f64s within 2. Sums and products of f32s are
// kept in f64, with the bound of package native.
package emit

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// ErrUnsupported says that a kernel can't be written: a store that does not move
// along the elements that are computed, or a value that is read back where other
// threads wrote it.
var ErrUnsupported = errors.New("the kernel has no CUDA form")

// The parts of all sources, in the order in which they need each other.
var (
	//go:embed cuda/prelude.cuh
	prelude string
	//go:embed cuda/ops.cuh
	opsSource string
	//go:embed cuda/fold.cuh
	foldSource string

	//go:embed cuda/index.cuh
	indexSource string
	//go:embed cuda/sort.cuh
	sortSource string
	//go:embed cuda/scan.cuh
	scanSource string
	//go:embed cuda/random.cuh
	randomSource string
	//go:embed cuda/move.cuh
	moveSource string
	//go:embed cuda/mma.cuh
	mmaSource string
	//go:embed cuda/product.cuh
	productSource string
	// library has the kernels that are no loops.
	library = indexSource + sortSource + scanSource + randomSource + moveSource + mmaSource + productSource
)

// Options says what a kernel's structure does not.
type Options struct {
	// Outer is the number of dimensions around rows and columns, each with a stride
	// for every operand.
	Outer int
	// Scratch marks, by operand, those that keep values of one line from one pass
	// to a later one. Their memory is part of the workspace. Nil: there are none.
	Scratch []bool
}

// MaxOuter bounds Options.Outer.
const MaxOuter = ir.MaxRank

// Loop is the CUDA form of a fused loop.
type Loop struct {
	// Name is the common beginning of the names of its entries. It has a hash of
	// the structure: equal kernels have equal names.
	Name string

	k     *loop.Kernel
	opt   Options
	width int // of packs, in elements; 1 if there are none
	held  bool
	saved int // line values that live between launches
	most  int // reductions of one pass
	body  []bool
	forms string // the source without entries
}

// Entries returns the names of all entries of the source.
func (l *Loop) Entries() (names []string) {
	add := func(scheme string, widths bool) {
		if widths && l.width > 1 {
			names = append(names, l.entry(scheme, l.width))
		}
		names = append(names, l.entry(scheme, 1))
	}
	if l.k.Axis == loop.None {
		add("each", true)
		return names
	}
	add("whole", true)
	if l.held {
		names = append(names, l.entry("held", l.width))
	}
	for p := range l.k.Passes {
		add(fmt.Sprintf("part%d", p), true)
		if l.combines(p) {
			add(fmt.Sprintf("final%d", p), false)
		}
	}
	return names
}

// combines reports whether a pass has something to do after its parts.
func (l *Loop) combines(p int) bool {
	pass := &l.k.Passes[p]
	return len(pass.Final) > 0 || slices.ContainsFunc(pass.Body, func(v loop.Value) bool { return l.k.Instrs[v].Code == loop.Reduce })
}

func (l *Loop) entry(scheme string, width int) string {
	return fmt.Sprintf("%s_%s_x%d", l.Name, scheme, width)
}

// Source returns the CUDA C++ of some entries, all if none are given: complete,
// without includes.
func (l *Loop) Source(entries ...string) string {
	if len(entries) == 0 {
		entries = l.Entries()
	}
	var b strings.Builder
	for _, part := range []string{prelude, opsSource, foldSource, l.forms} {
		b.WriteString(part)
	}
	for _, name := range entries {
		fmt.Fprintf(&b, "\nextern \"C\" __global__ void %s(const %s f) {\n  %s(f);\n}\n", name, l.Frame(), l.instance(name))
	}
	return b.String()
}

// Frame returns the name of the type of the parameter of the entries.
func (l *Loop) Frame() string { return l.Name + "_frame" }

// instance returns the function that an entry calls.
func (l *Loop) instance(entry string) string {
	form, _ := strings.CutPrefix(entry, l.Name+"_")
	form, width, _ := strings.Cut(form, "_x")
	lined := l.k.Axis == loop.Columns || l.k.Axis == loop.Both
	switch {
	case form == "held":
		return fmt.Sprintf("%s_whole<%s, %d>", l.Name, width, holds)
	case form == "whole" && lined:
		return fmt.Sprintf("%s_whole<%s, 0>", l.Name, width)
	case strings.HasPrefix(form, "final"):
		return l.Name + "_" + form
	}
	return fmt.Sprintf("%s_%s<%s>", l.Name, form, width)
}
