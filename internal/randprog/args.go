package randprog

import (
	"github.com/loris-ml/loris/internal/ir"
)

// bySchema is the source of most statements: an op of the table and arguments
// that its schema makes likely. The builder refuses what does not fit.
func (g *gen) bySchema() bool {
	sp := g.op()
	for range 8 {
		args, ok := g.arguments(sp)
		if !ok {
			return false
		}
		if _, ok := g.call(sp.Op, args); ok {
			return true
		}
	}
	return false
}

// special are the ops whose operands must meet a condition at run time; they
// have makers of their own, or are not of interest here.
var special = set("floor_divide trunc_divide remainder fmod pow gather scatter scatter_add scatter_reduce " +
	"index index_add index_copy index_put index_select embedding one_hot take take_along_dim " +
	"masked_scatter bincount histc histogram nms_static roi_align _roi_align deform_conv2d searchsorted bucketize index_fill index_reduce embedding_bag _embedding_bag " +
	"segment_reduce _segment_reduce_backward embedding_dense_backward cross_entropy nll_loss uniform normal randint randperm bernoulli dropout")

// products are the ops of linear algebra that do not factor a matrix.
var products = set("_int_mm _scaled_mm addbmm addmm addmv baddbmm bmm dot einsum linear linalg_multi_dot matmul mm mv outer")

// excluded reports whether no statement is made from the schema of an op. Factorisations and
// what is computed by them fail on singular matrices and magnify the rounding of their operands,
// in which backends differ, without a bound.
func excluded(sp *ir.Spec) bool {
	return special[sp.Name] || sp.Category == ir.Linalg && !products[sp.Name]
}

// op chooses a row of the table, each category as often as its weight says.
func (g *gen) op() *ir.Spec {
	weights := []ir.Category{
		ir.Pointwise, ir.Pointwise, ir.Pointwise, ir.Pointwise, ir.Pointwise, ir.Pointwise, ir.Pointwise,
		ir.Reduction, ir.Reduction, ir.View, ir.View, ir.View, ir.Scan, ir.Creation, ir.Linalg, ir.Neural, ir.Indexing,
	}
	for {
		c := weights[g.rng.IntN(len(weights))]
		rows := byCategory()[c]
		if sp := rows[g.rng.IntN(len(rows))]; !excluded(sp) {
			return sp
		}
	}
}

// call emits one use of an op.
func (g *gen) call(op ir.Op, args []any) ([]Reg, bool) {
	st := Stmt{Kind: Op, Op: op, Args: args}
	return g.emit(st, func(b *ir.Builder, val func(Reg) ir.Value) []ir.Value {
		return b.Call(op, Bind(args, 0, func(r Reg) any { return val(r) }, func(rs []Reg) any {
			vs := make([]ir.Value, len(rs))
			for i, r := range rs {
				vs[i] = val(r)
			}
			return vs
		}))
	})
}

// Bind returns the arguments of a step, with what one and many make of
// registers and lists of them.
func Bind(args []any, step int, one func(Reg) any, many func([]Reg) any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case Reg:
			out[i] = one(a)
		case []Reg:
			out[i] = many(a)
		case Num:
			out[i] = a.At(step)
		default:
			out[i] = a
		}
	}
	return out
}

// arguments makes arguments for each parameter of a schema.
func (g *gen) arguments(sp *ir.Spec) ([]any, bool) {
	var args []any
	first := Reg(-1) // the operand that the other ones should fit
	rank := 2
	for i := range sp.Schema.Params {
		p := &sp.Schema.Params[i]
		if p.HasDef && g.one(3) {
			args = append(args, p.Default)
			continue
		}
		switch p.Kind {
		case ir.KindTensor:
			r, ok := g.operand(sp, first)
			if !ok {
				return nil, false
			}
			if first < 0 {
				first, rank = r, g.p.Shapes[r].Rank()
			}
			args = append(args, r)
		case ir.KindTensors:
			rs, ok := g.operands()
			if !ok {
				return nil, false
			}
			first, rank = rs[0], g.p.Shapes[rs[0]].Rank()
			args = append(args, rs)
		default:
			args = append(args, g.attribute(p, first, rank))
		}
	}
	return args, true
}

// operand chooses an operand: after the first, often one of its shape.
func (g *gen) operand(sp *ir.Spec, first Reg) (Reg, bool) {
	if first < 0 {
		if sp.Category == ir.Neural || sp.Category == ir.Linalg {
			return g.pick(floatReg)
		}
		return g.pick(anyReg)
	}
	s := g.p.Shapes[first]
	if sp.Name == "masked_fill" || sp.Name == "where" {
		return g.pick(anyReg)
	}
	switch g.rng.IntN(4) {
	case 0:
		return g.pick(anyReg)
	case 1:
		return g.pick(func(_ Reg, t ir.Shape) bool { return s.DType() == t.DType() })
	}
	return g.pick(func(_ Reg, t ir.Shape) bool {
		_, ok := ir.BroadcastDims(s, t)
		return ok && (sp.Promote != ir.PromoteNone || s.DType() == t.DType())
	})
}

// operands chooses one to three registers of one rank.
func (g *gen) operands() ([]Reg, bool) {
	r, ok := g.pick(anyReg)
	if !ok {
		return nil, false
	}
	out := []Reg{r}
	for range g.rng.IntN(3) {
		if r, ok := g.pick(func(_ Reg, s ir.Shape) bool { return s.Rank() == g.p.Shapes[out[0]].Rank() }); ok {
			out = append(out, r)
		}
	}
	return out, true
}

// attribute makes an argument that is not a tensor.
func (g *gen) attribute(p *ir.Param, first Reg, rank int) any {
	switch p.Kind {
	case ir.KindOptTensor:
		if g.one(2) || first < 0 {
			return nil
		}
		if r, ok := g.pick(func(_ Reg, s ir.Shape) bool { return s.DType() == g.p.Shapes[first].DType() }); ok {
			return r
		}
		return nil
	case ir.KindOptScalar, ir.KindScalar:
		if p.Kind == ir.KindOptScalar && g.one(3) {
			return nil
		}
		if r, ok := g.pick(ofRank(0)); ok && g.one(4) {
			return r
		}
		return g.num()
	case ir.KindOptInt, ir.KindOptInts, ir.KindOptFloat, ir.KindOptDType:
		if g.one(2) {
			return nil
		}
	}
	switch p.Kind {
	case ir.KindInt, ir.KindOptInt:
		return g.int(p.Name, rank)
	case ir.KindInts, ir.KindOptInts:
		return g.ints(p.Name, first, rank)
	case ir.KindFloat, ir.KindOptFloat:
		return []float64{1e-5, 0.5, 1, 2}[g.rng.IntN(4)]
	case ir.KindBool:
		return g.one(2)
	case ir.KindDType, ir.KindOptDType:
		return g.dtype()
	case ir.KindNumber:
		return []any{0, 1, 3, -2, 0.5, 2.25}[g.rng.IntN(6)]
	case ir.KindStr:
		return choose(g, strs[p.Name], "")
	}
	return nil
}

// strs are the values of str parameters, over all ops.
var strs = map[string][]string{
	"reduction": {"none", "mean", "sum"}, "approximate": {"none", "tanh"},
	"mode":        {"constant", "reflect", "replicate", "circular", "nearest", "bilinear", "linear"},
	"padding_str": {"", "same", "valid"},
	"equation":    {"ij,jk->ik", "ij->ji", "i,j->ij", "ij,ij->", "ii->i", "...j,j->..."},
}

func choose[T any](g *gen, from []T, none T) T {
	if len(from) == 0 {
		return none
	}
	return from[g.rng.IntN(len(from))]
}

// num is a plain number of the user's, often one that changes each step.
func (g *gen) num() Num {
	n := Num{Base: float64(g.rng.IntN(25)-8) / 4, Int: g.one(3)}
	if n.Int {
		n.Base = float64(g.rng.IntN(7) - 2)
	}
	if g.one(2) {
		n.Slope = 0.25
		if n.Int {
			n.Slope = 1
		}
	}
	return n
}

func (g *gen) dtype() ir.DType {
	all := []ir.DType{ir.F32, ir.F32, ir.F64, ir.F64, ir.I64, ir.I32, ir.Bool, ir.F16, ir.BF16, ir.U8, ir.I8, ir.I16}
	return all[g.rng.IntN(len(all))]
}

func (g *gen) int(name string, rank int) int {
	switch name {
	case "dim", "dim0", "dim1", "dim2", "dimension", "start_dim", "end_dim":
		n := max(rank, 1)
		return g.rng.IntN(2*n) - n
	case "start", "end", "offset", "diagonal":
		return g.rng.IntN(7) - 3
	case "step":
		if g.one(5) {
			return -1 - g.rng.IntN(2)
		}
		return 1 + g.rng.IntN(2)
	case "index":
		return g.rng.IntN(3)
	case "n", "m", "steps":
		return g.rng.IntN(5)
	}
	return 1 + g.rng.IntN(3)
}

func (g *gen) ints(name string, first Reg, rank int) []int {
	var dims []int
	if first >= 0 {
		dims = g.p.Shapes[first].Dims()
	}
	switch name {
	case "shape":
		return g.factors(dims)
	case "size", "normalized_shape", "output_size":
		return g.sizes(name, dims)
	case "dims", "dim", "source", "destination", "shifts":
		return g.someDims(rank, name == "dims" && g.one(2))
	case "pad":
		out := make([]int, 2*min(rank, 1+g.rng.IntN(2)))
		for i := range out {
			out[i] = g.rng.IntN(4) - 1
		}
		return out
	case "split_sizes":
		if len(dims) > 0 && dims[0] > 1 {
			return []int{1, dims[0] - 1}
		}
	case "stride", "dilation":
		return []int{1 + g.rng.IntN(2)}
	case "padding", "output_padding":
		return []int{g.rng.IntN(2)}
	case "kernel_size":
		return []int{1 + g.rng.IntN(2)}
	}
	out := make([]int, rank)
	for i := range out {
		out[i] = 1 + g.rng.IntN(2)
	}
	return out
}

// factors is a shape of as many elements as dims.
func (g *gen) factors(dims []int) []int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	out := []int{}
	for n > 1 && len(out) < maxRank-1 && !g.one(4) {
		f := 1 + g.rng.IntN(n)
		if n%f == 0 {
			out, n = append(out, f), n/f
		}
	}
	if n != 1 || g.one(3) {
		out = append(out, n)
	}
	if len(out) > 0 && n > 0 && g.one(4) {
		out[g.rng.IntN(len(out))] = -1
	}
	return out
}

func (g *gen) sizes(name string, dims []int) []int {
	switch {
	case name == "normalized_shape" && len(dims) > 0:
		return dims[g.rng.IntN(len(dims)):]
	case name == "output_size":
		return []int{1 + g.rng.IntN(2)}
	case len(dims) == 0:
		return g.dims()
	}
	// An expand: ones grow, and dimensions come in front.
	out := append([]int(nil), dims...)
	for i, d := range out {
		if d == 1 {
			out[i] = 1 + g.rng.IntN(4)
		} else if g.one(4) {
			out[i] = -1
		}
	}
	if g.one(3) {
		out = append([]int{1 + g.rng.IntN(3)}, out...)
	}
	return out
}

// someDims is a permutation of the dimensions, or the beginning of one.
func (g *gen) someDims(rank int, all bool) []int {
	out := g.rng.Perm(rank)
	if !all {
		out = out[:g.rng.IntN(rank+1)]
	}
	for i := range out {
		if g.one(3) {
			out[i] -= rank
		}
	}
	return out
}
