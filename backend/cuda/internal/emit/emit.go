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
// package ir says. Elementary functions are those of CUDA's library, whose errors
// are within the bounds of the op table. Reductions of f32s are
// kept in f64, with the bound of package native.
package emit

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// ErrUnsupported says that a kernel can't be written: a store that does not move
// along the elements that are computed, or a value that is read back where other
// threads wrote it.
var ErrUnsupported = errors.New("the kernel has no CUDA form")

// The parts of all sources, in the order in which they need each other.
var (
	//go:embed cuda/begin.cuh
	beginSource string
	//go:embed cuda/prelude.cuh
	preludeSource string
	//go:embed cuda/fold.cuh
	foldSource string
	// prelude is what every source begins with.
	prelude = beginSource + cxx.Values + preludeSource + cxx.Ops + cxx.Folds + foldSource

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
	//go:embed cuda/tile.cuh
	tileSource string
	//go:embed cuda/product.cuh
	productSource string
	//go:embed cuda/pool.cuh
	poolSource string
	//go:embed cuda/attention.cuh
	attentionSource string
	//go:embed cuda/attention_grad.cuh
	attentionGradSource string
	// library has the kernels that are no loops.
	library = indexSource + sortSource + scanSource + randomSource + moveSource + mmaSource + tileSource + productSource + poolSource +
		attentionSource + attentionGradSource
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

	k        *loop.Kernel
	opt      Options
	width    int  // of packs, in elements; 1 if there are none
	holdable bool // operands are read in several passes along rows
	saved    int  // row statistics that live between launches
	most     int  // reductions of one pass
	size     int  // of the code for one element
	loads    int  // bytes that a pass reads for one element, at most
	// registers is how many an element takes that is held or loaded first.
	registers int
	body      []bool
	forms     string // the source without entries
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
	for _, scheme := range []string{"held", "broad"} {
		if l.canHold(holdings[scheme]) {
			names = append(names, l.entry(scheme, l.width))
		}
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
	b.WriteString(prelude)
	b.WriteString(l.forms)
	for _, name := range entries {
		fmt.Fprintf(&b, "\nextern \"C\" __global__ void __launch_bounds__(%s) %s(const %s f) {\n%s  %s(f, own_grid(), pool);\n}\n",
			l.boundsOf(name), name, l.Frame(), poolWords(l.pool()), l.instance(name))
	}
	return b.String()
}

// Frame returns the name of the type of the parameter of the entries.
func (l *Loop) Frame() string { return l.Name + "_frame" }

// form returns the form of an entry, such as "whole".
func (l *Loop) form(entry string) string {
	form, _ := strings.CutPrefix(entry, l.Name+"_")
	form, _, _ = strings.Cut(form, "_x")
	return form
}

// instance returns the function that an entry calls.
func (l *Loop) instance(entry string) string {
	form, width := l.form(entry), entry[strings.LastIndex(entry, "x")+1:]
	n, _ := strconv.Atoi(width) // as entry wrote it
	switch {
	case holdings[form] != nil:
		return fmt.Sprintf("%s_whole<%s, %d, true>", l.Name, width, holdings[form].packs)
	case form == "whole" && l.k.Axis != loop.Rows:
		return fmt.Sprintf("%s_whole<%s, %d, false>", l.Name, width, l.unroll(n))
	case strings.HasPrefix(form, "final"):
		return l.Name + "_" + form
	}
	return fmt.Sprintf("%s_%s<%s, %d>", l.Name, form, width, l.unroll(n))
}

// mostThreads is how many threads a block of most entries has at most, so that they
// may have as many registers as they want.
const mostThreads = 256

// holding is a form in which threads hold lines in registers: how many packs of an
// operand each has, in how many threads at most.
type holding struct {
	packs, threads int
	bounds         string
}

var holdings = map[string]*holding{
	"held":  {packs: 4, threads: mostThreads, bounds: "256, 2"},
	"broad": {packs: 8, threads: 512, bounds: "512"},
}

// canHold reports whether a form holds lines without spilling registers, nor code
// that takes long to compile.
func (l *Loop) canHold(h *holding) bool {
	return l.holdable && l.registers*l.width*h.packs <= mostRegisters && l.size*l.width*h.packs <= mostHeld
}

const (
	// mostRegisters bounds the registers of a thread with held elements, of 128.
	mostRegisters = 64
	// mostUnrolled bounds the code of the elements of a pack, mostHeld that of a
	// thread that holds packs: more takes long to compile and gains nothing.
	mostUnrolled = 256
	mostHeld     = 2048
)

// boundsOf returns the launch bounds of an entry of a loop.
func (l *Loop) boundsOf(entry string) string {
	form := l.form(entry)
	if h := holdings[form]; h != nil {
		if form == "held" && l.registers*l.width*h.packs <= mostRegisters/2 {
			return "256, 3"
		}
		return h.bounds
	}
	bounds := strconv.Itoa(mostThreads)
	if l.registers*l.width <= mostRegisters/2 {
		// Left alone, the compiler spills some to have more blocks run at a time.
		return bounds + ", 4"
	}
	return bounds
}

// pool returns how many words of shared memory the forms need.
func (l *Loop) pool() int {
	switch l.k.Axis {
	case loop.None:
		return 1
	case loop.Rows:
		return 2 * mostThreads
	}
	return 64
}

func poolWords(n int) string { return fmt.Sprintf("  __shared__ u64 pool[%d];\n", n) }

// unroll returns how many packs of some width a thread loads before it computes:
// enough for the memory to be busy while all threads wait.
func (l *Loop) unroll(width int) int {
	enough := 64
	if l.k.Axis == loop.None {
		enough = 32
	}
	n := 1
	for l.loads > 0 && 2*n*l.loads*width <= enough && 2*n*width*l.size <= mostUnrolled && n < 4 {
		n *= 2
	}
	return n
}
