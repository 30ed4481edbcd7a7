package randprog

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Options choose what New makes.
type Options struct {
	// Stmts is about how many statements the program has.
	Stmts int
	// Tame programs suit comparisons between backends: values stay finite and
	// moderate, and what a rounding error could change decides nothing (no
	// comparison, index or integer comes from an inexact number).
	Tame bool
	// NoRandom, NoCarry leave these statements out.
	NoRandom, NoCarry bool
}

const (
	maxNumel = 160
	maxRank  = 5
	maxTame  = 64.0 // magnitudes of tame values
)

// info is what the generator knows of a register.
type info struct {
	val   ir.Value
	data  []byte // of step 0, in a tame program
	below int    // elements are integers in [0, below); 0 if nothing is known
	exact bool   // equal on all backends, to the last bit
	used  bool
}

// gen grows a Program.
type gen struct {
	rng  *rand.Rand
	o    Options
	p    *Program
	b    ir.Builder
	w    graph.Walker
	regs []info
	seed ir.Value // stands for the seed of random ops
}

// New returns the program of a seed.
func New(seed uint64, o Options) *Program {
	g := &gen{rng: rand.New(rand.NewPCG(seed, 0x10715)), o: o, p: &Program{Seed: seed}}
	g.b.Lines = ir.LinesOff
	g.p.Steps = 1 + g.rng.IntN(4)
	g.inputs()
	for v := range g.p.Vars {
		g.load(v)
	}
	for tries := 0; len(g.p.Stmts) < o.Stmts && tries < 40*o.Stmts; tries++ {
		g.statement()
	}
	for v := range g.p.Vars {
		if g.rng.IntN(3) > 0 {
			g.assign(v)
		}
	}
	g.outputs()
	return g.p
}

// inputs makes one input of each of the usual dtypes, and variables.
func (g *gen) inputs() {
	g.seed = ir.NewLeaf(&dataLeaf{elements.EncodeInts(ir.I64, []int64{7})}, ir.MakeShape(ir.I64), ir.Device{}).Out(0)
	for _, d := range []ir.DType{ir.F32, ir.F32, ir.F64, ir.F64, ir.I64, ir.I32, ir.Bool, ir.F16, ir.BF16} {
		s := ir.MakeShape(d, g.dims()...)
		data := g.elements(s)
		g.add(ir.NewLeaf(&dataLeaf{data}, s, ir.Device{}).Out(0), info{exact: true, data: data})
		g.p.Inputs = append(g.p.Inputs, Input{s, data})
	}
	for range 1 + g.rng.IntN(3) {
		g.p.Vars = append(g.p.Vars, Reg(g.rng.IntN(6)))
	}
}

// dims are those of an input: often few and small, at times with a 0 or a 1.
func (g *gen) dims() []int {
	out := make([]int, g.rng.IntN(4))
	for i := range out {
		out[i] = 1 + g.rng.IntN(5)
		if !g.o.Tame && g.rng.IntN(40) == 0 {
			out[i] = 0
		}
	}
	return out
}

// elements are multiples of an eighth, and in programs that need not be tame
// sometimes NaN, infinity and -0.
func (g *gen) elements(s ir.Shape) []byte {
	d := s.DType()
	if !d.IsFloat() {
		v := make([]int64, s.Numel())
		for i := range v {
			v[i] = int64(g.rng.IntN(9) - 3)
		}
		return elements.EncodeInts(d, v)
	}
	v := make([]float64, s.Numel())
	for i := range v {
		v[i] = float64(g.rng.IntN(33)-16) / 8
		if !g.o.Tame && g.rng.IntN(50) == 0 {
			v[i] = []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1), 1e30}[g.rng.IntN(4)]
		}
	}
	return elements.EncodeFloats(d, v)
}

func (g *gen) add(v ir.Value, in info) Reg {
	in.val = v
	g.regs = append(g.regs, in)
	g.p.Shapes = append(g.p.Shapes, v.Shape())
	return Reg(len(g.regs) - 1)
}

// one reports true once in n times.
func (g *gen) one(n int) bool { return g.rng.IntN(n) == 0 }

// pick returns a register that ok accepts, later ones more often.
func (g *gen) pick(ok func(r Reg, s ir.Shape) bool) (Reg, bool) {
	for range 30 {
		r := Reg(max(g.rng.IntN(len(g.regs)), g.rng.IntN(len(g.regs))))
		if ok(r, g.p.Shapes[r]) {
			return r, true
		}
	}
	return 0, false
}

func anyReg(Reg, ir.Shape) bool       { return true }
func floatReg(_ Reg, s ir.Shape) bool { return s.DType().IsFloat() }
func intReg(_ Reg, s ir.Shape) bool   { return s.DType().IsInt() }
func ofRank(n int) func(Reg, ir.Shape) bool {
	return func(_ Reg, s ir.Shape) bool { return s.Rank() == n }
}

// emit adds a statement whose results call records, if it is a program's: the
// builder takes it, the results are small, and in a tame program moderate.
func (g *gen) emit(st Stmt, call func(b *ir.Builder, val func(Reg) ir.Value) []ir.Value) ([]Reg, bool) {
	outs, err := record(func() []ir.Value { return call(&g.b, func(r Reg) ir.Value { return g.regs[r].val }) })
	if err != nil || len(outs) > 6 {
		return nil, false
	}
	for _, v := range outs {
		if s := v.Shape(); s.Numel() > maxNumel || s.Rank() > maxRank || s.DType().IsStorage() {
			return nil, false
		}
	}
	known := make([]info, len(outs))
	if g.o.Tame && !g.settle(&st, call, outs, known) {
		return nil, false
	}
	if len(st.Out) == 0 {
		for i, v := range outs {
			st.Out = append(st.Out, g.add(v, known[i]))
		}
	}
	for _, r := range st.Regs() {
		g.regs[r].used = true
	}
	if st.Kind == Op && g.one(12) {
		st.Every = 2
	}
	g.p.Stmts = append(g.p.Stmts, st)
	return st.Out, true
}

// settle evaluates the statement in step 0 and says whether a tame program may
// have it.
func (g *gen) settle(st *Stmt, call func(*ir.Builder, func(Reg) ir.Value) []ir.Value, outs []ir.Value, known []info) bool {
	exact := true
	for _, r := range st.Regs() {
		exact = exact && g.regs[r].exact
	}
	if !exact && decides(st, g.p.Shapes) {
		return false
	}
	vals := outs
	if st.Kind == Op {
		// Gradients need the graph; for a single op its operands do.
		vals, _ = record(func() []ir.Value {
			return call(&ir.Builder{Lines: ir.LinesOff}, func(r Reg) ir.Value {
				return ir.NewLeaf(&dataLeaf{g.regs[r].data}, g.p.Shapes[r], ir.Device{}).Out(0)
			})
		})
	}
	data, err := evaluate(vals)
	if err != nil {
		panic(fmt.Sprintf("randprog: seed %d: %s: %v\n%s", g.p.Seed, g.p.line(st), err, g.p))
	}
	for i, d := range data {
		dt := outs[i].DType()
		m, dyadic := largest(dt, d)
		if dt.IsFloat() && !(m <= maxTame) {
			return false
		}
		known[i] = info{data: d, exact: exact && dyadic && st.Kind != Grad}
	}
	return true
}

// record calls fn and returns the *ir.OpError that it panics with. Other panics,
// and errors that say they are bugs, go on.
func record(fn func() []ir.Value) (out []ir.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			oe, ok := r.(*ir.OpError)
			if !ok || strings.Contains(oe.Msg, "please report") {
				panic(r)
			}
			err = oe
		}
	}()
	return fn(), nil
}

// decides reports whether rounding errors of the operands could change the
// result by more than a little: it is an integer, or the op jumps.
func decides(st *Stmt, shapes []ir.Shape) bool {
	if st.Kind != Op {
		return st.Kind == Random
	}
	floats := false
	for _, r := range st.Regs() {
		floats = floats || shapes[r].DType().IsFloat()
	}
	if st.Op == aten.Cast {
		return floats && !st.Args[1].(ir.DType).IsFloat()
	}
	return floats && (jumps[st.Op.String()] || st.Op.Spec().Predicate)
}

// jumps are the ops, besides predicates, with results that are not continuous.
var jumps = set("floor ceil round trunc sign frac floor_divide trunc_divide remainder fmod " +
	"argmax argmin argsort sort topk cummax all any count_nonzero threshold hardshrink copysign " +
	"bernoulli one_hot atan2 logical_and logical_or logical_xor logical_not " +
	"max_pool_with_indices max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices")

func set(names string) map[string]bool {
	out := map[string]bool{}
	for _, n := range strings.Fields(names) {
		out[n] = true
	}
	return out
}

// outputs chooses what is observed: some of what nothing consumes, some of what
// something does.
func (g *gen) outputs() {
	n := len(g.p.Inputs)
	if len(g.regs) == n {
		return
	}
	chosen := map[Reg]bool{}
	for range 3 + g.rng.IntN(4) {
		r := Reg(n + max(g.rng.IntN(len(g.regs)-n), g.rng.IntN(len(g.regs)-n)))
		if !chosen[r] {
			chosen[r] = true
			g.p.Outputs = append(g.p.Outputs, r)
		}
	}
}
