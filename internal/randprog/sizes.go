package randprog

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Sized returns the statements of a program that can be recorded with other sizes, as a graph; nil if
// none can. It draws the sizes: for k = 0 they are the program's, up to 4 others that are often equal
// where the program's are, and from then on any, also 0 and 1.
func Sized(src *Program, rng *rand.Rand, k int) *graph.Program {
	others := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 34, 35, 64}
	sizes := map[int]int{}
	size := func(n int) int {
		if k == 0 || n < 0 {
			return n
		}
		if _, ok := sizes[n]; !ok {
			sizes[n] = n
			switch {
			case n > 1 && k < 5: // mostly under a renaming
				sizes[n] = n + k*(1+rng.IntN(3))
			case k >= 5 && rng.IntN(2) == 0:
				sizes[n] = others[rng.IntN(len(others))]
			}
		}
		return sizes[n]
	}
	b := &ir.Builder{Lines: ir.LinesOff}
	vals := make([]ir.Value, len(src.Shapes))
	var params []ir.Value
	for i, in := range src.Inputs {
		dims := in.Shape.Dims()
		for d := range dims {
			dims[d] = size(dims[d])
		}
		vals[i] = ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: fmt.Sprint("x", i)}, ir.MakeShape(in.Shape.DType(), dims...), ir.Device{}).Out(0)
		params = append(params, vals[i])
	}
	var last []ir.Value
	for i := range src.Stmts {
		b.Line = uintptr(1000*(k+1) + i)
		if outs := recordSized(b, &src.Stmts[i], vals, size); outs != nil {
			last = outs
		}
	}
	var roots []ir.Value
	for _, r := range src.Outputs {
		if !vals[r].IsNil() {
			roots = append(roots, vals[r])
		}
	}
	if roots = append(roots, last...); len(roots) == 0 {
		return nil
	}
	return graph.FromValues("p", params, roots)
}

// recordSized makes the nodes of a statement, with sizes among its attributes changed; nil if it can't.
func recordSized(b *ir.Builder, st *Stmt, vals []ir.Value, size func(int) int) (outs []ir.Value) {
	for _, r := range st.Regs() {
		if vals[r].IsNil() {
			return nil
		}
	}
	if st.Kind != Op {
		return nil
	}
	defer func() {
		if recover() != nil {
			outs = nil
		}
	}()
	args := Bind(st.Args, 0, func(r Reg) any { return vals[r] }, func(rs []Reg) any {
		var in []ir.Value
		for _, r := range rs {
			in = append(in, vals[r])
		}
		return in
	})
	for i, p := range st.Op.Spec().Schema.Params {
		if sizes, ok := args[min(i, len(args)-1)].([]int); ok && i < len(args) && (p.Name == "shape" || p.Name == "size") {
			sizes = slices.Clone(sizes)
			for d := range sizes {
				sizes[d] = size(sizes[d])
			}
			args[i] = sizes
		}
	}
	outs = b.Call(st.Op, args)
	for i, r := range st.Out {
		vals[r] = outs[i]
	}
	return outs
}
