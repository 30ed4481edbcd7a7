package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// reduction is how one Reduce is done: with some vectors that are folded into
// others like them. Sums and products of f32 are kept in f64: an accumulator
// never loses more than f32 holds, and the error of a sum of n elements is below
//
//	(2⁻²⁴ + n·2⁻⁵³)·Σ|x|
//
// and 2⁻²⁴ of the result for its own rounding. The first is since vectors along columns, and rows where lines are
// columns, are added up two at a time as f32s, which saves half of the conversions; it is not there for products.
// Sums of narrower floats may be kept in f32
// (loop.NarrowSum), which is as fast again. Floats are folded in the order of
// the lines, however often the body is repeated in its loop: what else is in the
// kernel does not change a sum.
type reduction struct {
	in  *loop.Instr
	v   loop.Value
	d   ir.DType // of what is folded
	w   int      // bytes of d's lanes
	acc [][]val  // by copy: the homes of the accumulators

	// identity has the bits that change nothing, for lanes beyond the end.
	identity uint64
	// fold joins two vectors of d; for argmax and argmin two pairs.
	fold func(g *gen, a, b []val) []val
	// double marks f32s that are accumulated as f64.
	double bool
	// early says that copies may be joined before they meet the accumulator: the
	// order does not matter.
	early bool
	// paired says that vectors along columns are taken two at a time, so that a result does not depend on how
	// many copies its body has. Those of f32 are joined before they meet the accumulator. Others have two
	// accumulators: operations on one wait for each other longer than vectors take to load.
	paired bool
	arg    bool
}

func (g *gen) newReduction(v loop.Value) *reduction {
	in := &g.k.Instrs[v]
	d := g.k.Instrs[in.In[0]].Result()
	switch in.Op {
	case aten.Sum, aten.Prod:
		d = in.DType
	case aten.Any, aten.All:
		d = ir.Bool
	}
	r := &reduction{in: in, v: v, d: d, w: width(d)}
	pair := func(f wordOp) {
		r.fold = func(g *gen, a, b []val) []val { return []val{f(g, r.w, []val{a[0], b[0]})} }
	}
	switch in.Op {
	case aten.Sum:
		pair(numeric(d, aten.Add))
		r.double, r.early = d == ir.F32 && in.Bits != loop.NarrowSum, !d.IsFloat()
		r.paired = d.IsFloat() && g.k.Axis != loop.Rows
	case aten.Prod:
		pair(numeric(d, aten.Mul))
		r.double, r.early, r.identity = d == ir.F32, !d.IsFloat(), oneOf(d)
		r.paired = d.IsFloat() && g.k.Axis != loop.Rows
		if r.double {
			r.fold = r.foldWide
		}
	case aten.Any, aten.All:
		op := aten.Maximum
		if in.Op == aten.All {
			op, r.identity = aten.Minimum, 1
		}
		pair(table[op].i)
		r.early = true
	case aten.Amax, aten.Amin:
		op := aten.Maximum
		if in.Op == aten.Amin {
			op = aten.Minimum
		}
		pair(numeric(d, op))
		r.identity, r.early = worst(d, in.Op == aten.Amin), true
	case aten.Argmax, aten.Argmin:
		r.arg, r.early = true, true
		r.identity = worst(d, in.Op == aten.Argmin)
		r.fold = r.better
	}
	return r
}

// turns returns how many accumulators vectors along columns go to in turn.
func (r *reduction) turns() int {
	if r.paired && !r.double {
		return 2
	}
	return 1
}

// joinsRows reports whether two rows of a line along rows are added up before they are made f64.
func (r *reduction) joinsRows() bool { return r.double && r.in.Op == aten.Sum }

// numeric returns how an op works on a dtype; bools are integers.
func numeric(d ir.DType, op ir.Op) wordOp {
	if d.IsFloat() {
		return table[op].f
	}
	return table[op].i
}

// worst returns the bits of the number that every other beats, as it is in a
// lane.
func worst(d ir.DType, least bool) uint64 {
	switch {
	case d == ir.F32 && least:
		return uint64(math.Float32bits(float32(math.Inf(1))))
	case d == ir.F32:
		return uint64(math.Float32bits(float32(math.Inf(-1))))
	case d == ir.F64 && least:
		return math.Float64bits(math.Inf(1))
	case d == ir.F64:
		return math.Float64bits(math.Inf(-1))
	case d == ir.I64 && least:
		return math.MaxInt64
	case d == ir.I64:
		return 1 << 63
	case least:
		return math.MaxInt32
	}
	return 1 << 31
}

// better joins two pairs of a number and its place: the better number, and of
// equal ones the first.
func (r *reduction) better(g *gen, a, b []val) []val {
	var wins, ties val
	greatest := r.in.Op == aten.Argmax
	if r.d.IsFloat() {
		pred := byte(cmpLT)
		if greatest {
			pred = cmpGT
		}
		nanA, nanB := g.cmpF(r.w, cmpUNORD, a[0], a[0]), g.cmpF(r.w, cmpUNORD, b[0], b[0])
		wins = g.or(g.cmpF(r.w, pred, b[0], a[0]), g.andNot(nanB, nanA))
		ties = g.or(g.cmpF(r.w, cmpEQ, b[0], a[0]), g.and(nanA, nanB))
	} else {
		pred := byte(intLT)
		if greatest {
			pred = intGT
		}
		wins = g.cmpI(r.w, pred, b[0], a[0])
		ties = g.cmpI(r.w, intEQ, b[0], a[0])
	}
	wins = g.or(wins, g.and(ties, g.cmpI(8, intLT, b[1], a[1])))
	return []val{g.blend(r.w, wins, b[0], a[0]), g.blend(8, wins, b[1], a[1])}
}

// later is better where b's places come after a's: of equal numbers a's is the first.
func (r *reduction) later(g *gen, a, b []val) []val {
	greatest := r.in.Op == aten.Argmax
	var wins val
	if r.d.IsFloat() {
		worse := byte(cmpNLE) // or one is NaN
		if greatest {
			worse = cmpNGE
		}
		wins = g.and(g.cmpF(r.w, worse, a[0], b[0]), g.cmpF(r.w, cmpORD, a[0], a[0]))
	} else {
		pred := byte(intLT)
		if greatest {
			pred = intGT
		}
		wins = g.cmpI(r.w, pred, b[0], a[0])
	}
	return []val{g.blend(r.w, wins, b[0], a[0]), g.blend(8, wins, b[1], a[1])}
}

// foldWide joins vectors of f64s.
func (r *reduction) foldWide(g *gen, a, b []val) []val {
	out := make([]val, len(a))
	for i := range a {
		out[i] = g.op2(r.wideOp(), g.vals[a[i]].len, a[i], b[i])
	}
	return out
}

// widened returns what is folded as the f64s of an accumulator. Factors are those already.
func (r *reduction) widened(g *gen, x []val) []val {
	if r.in.Op == aten.Prod {
		return x
	}
	return g.halves(x64.CVTPS2PD, x[0])
}

// folded returns what an instruction folds, before summands are made f64. In a tail the
// other lanes are made the identity.
func (g *gen) folded(r *reduction) []val {
	if g.factors.has(r.in.In[0]) && !g.tail {
		return g.loadHalves(g.k.Instrs[r.in.In[0]].Arg)
	}
	from := g.k.Instrs[r.in.In[0]].Result()
	x := g.value(r.in.In[0])
	if r.in.Op == aten.Sum || r.in.Op == aten.Prod || r.d == ir.Bool {
		x = g.cast(from, r.d, x)
	}
	if r.d == ir.Bool {
		x = g.pick(x, 4, 1)
	}
	along := g.tail && g.k.Axis != loop.Rows
	if along {
		x = g.blend(r.w, g.tails[0], x, g.konst(r.w, r.identity))
	}
	switch {
	case r.double && r.in.Op == aten.Prod:
		return g.halves(x64.CVTPS2PD, x)
	case !r.arg:
		return []val{x}
	}
	at := g.index()
	if along {
		at = g.blend(8, g.tails[0], at, g.konst(8, math.MaxInt64))
	}
	return []val{x, at}
}

// accumulate folds what the copies of the body gave into the accumulators: those
// of a line along columns into one, after joining them as a tree or two at a time, or into two in turn. Before a tail
// there is an even number of vectors, or one more that is not in this region, so that the tail is the second.
func (g *gen) accumulate(r *reduction, xs [][]val) {
	copies := len(xs)
	if g.k.Axis == loop.Rows {
		for u, x := range xs {
			g.foldInto(r, r.acc[u], x)
		}
		return
	}
	for (r.early || r.paired && r.double && len(xs) == copies) && len(xs) > 1 {
		var joined [][]val
		for i := 0; i+1 < len(xs); i += 2 {
			joined = append(joined, r.fold(g, xs[i], xs[i+1]))
		}
		if len(xs)%2 != 0 {
			joined = append(joined, xs[len(xs)-1])
		}
		xs = joined
	}
	first := 0
	if g.tail && copies == 1 {
		first = 1
	}
	for i, x := range xs {
		g.foldInto(r, r.acc[(first+i)%len(r.acc)], x)
	}
}

func (g *gen) foldInto(r *reduction, acc, x []val) {
	if !r.double {
		fold := r.fold
		if r.arg && g.k.Axis == loop.Rows {
			fold = r.later
		}
		for i, y := range fold(g, acc, x) {
			g.set(acc[i], y)
		}
		return
	}
	for i, y := range r.widened(g, x) {
		g.add(vop{op: r.wideOp(), len: g.vals[y].len, dst: acc[i], a: acc[i], b: y})
	}
}

func (r *reduction) wideOp() x64.Op {
	if r.in.Op == aten.Prod {
		return x64.MULPD
	}
	return x64.ADDPD
}

// halves returns elements of 32 bits as f64s, by the conversion to: one vector if
// the lanes are for elements of 64 bits, else two.
func (g *gen) halves(to x64.Op, x val) []val {
	n := g.vl(8)
	if g.wide {
		return []val{g.op1(to, n, x)}
	}
	op := x64.EXTRACTI128
	if g.evex() {
		op = x64.EXTRACTI64X4
	}
	return []val{g.op1(to, n, x), g.op1(to, n, g.resize(op, n, n/2, x, 1))}
}

// loadHalves is halves of a vector of f32s in memory, from where they are converted in one step.
func (g *gen) loadHalves(arg int) []val {
	n, out := g.vl(8), make([]val, 2)
	for h := range out {
		out[h] = g.add(vop{op: x64.CVTPS2PD, len: n, dst: g.temp(n), mem: g.halfElement(arg, h, n/2)})
	}
	return out
}

// joined is the opposite of halves.
func (g *gen) joined(to x64.Op, x []val) val {
	n := g.vals[x[0]].len
	lo := g.resize(to, n, max(n/2, 16), x[0], 0)
	if len(x) == 1 {
		return lo
	}
	hi := g.resize(to, n, max(n/2, 16), x[1], 0)
	op := x64.INSERTI128
	if g.evex() {
		op = x64.INSERTI64X4
	}
	return g.op2i(op, n, lo, hi, 1)
}

// start makes homes for the accumulators of copies and sets them.
func (g *gen) start(r *reduction, copies int) {
	r.acc = nil
	for range copies {
		var acc []val
		for _, x := range g.identities(r) {
			h := g.newHome(x)
			g.set(h, x)
			acc = append(acc, h)
		}
		r.acc = append(r.acc, acc)
	}
}

func (g *gen) identities(r *reduction) []val {
	switch {
	case r.double:
		one := g.konst(8, 0)
		if r.in.Op == aten.Prod {
			one = g.num(8, 1)
		}
		x := g.add(vop{op: x64.MOVUPS, len: g.vl(8), dst: g.temp(g.vl(8)), b: one})
		if g.wide {
			return []val{x}
		}
		return []val{x, x}
	case r.arg && g.k.Axis == loop.Rows:
		// Where no element is better than the identity all are equal to it, and the first is the one.
		first := g.add(vop{op: x64.BROADCASTSD, len: g.vl(8), dst: g.temp(g.vl(8)), mem: g.addr(place{arg: -1, mem: inFrame(frameFirst)})})
		return []val{g.konst(r.w, r.identity), first}
	case r.arg:
		return []val{g.konst(r.w, r.identity), g.konst(8, math.MaxInt64)}
	}
	return []val{g.konst(r.w, r.identity)}
}

// finish returns the result of a reduction, in every lane the one of its line.
func (g *gen) finish(r *reduction, unit int) val {
	acc := r.acc[unit]
	if g.k.Axis != loop.Rows {
		for _, other := range r.acc[1:] {
			acc = r.fold(g, acc, other)
		}
		acc = g.across(r, acc)
	}
	switch {
	case r.double:
		x := g.joined(x64.CVTPD2PS, acc)
		if g.k.Axis != loop.Rows && !g.wide {
			x = g.op1(x64.BROADCASTSS, g.vl(4), x)
		}
		return x
	case r.arg:
		return acc[1]
	case r.d == ir.Bool:
		return g.nonZero(4, acc[0])
	}
	return g.wrap(r.d, acc[0])
}

// across folds the lanes of accumulators together, by halves, so that all lanes
// have the result.
func (g *gen) across(r *reduction, acc []val) []val {
	if r.double {
		x := acc[0]
		n := g.vl(8)
		if len(acc) == 2 {
			x = g.op2(r.wideOp(), n, acc[0], acc[1])
		}
		for d := int(n) / 2; d >= 8; d /= 2 {
			x = g.op2(r.wideOp(), n, x, g.swap(n, x, d))
		}
		return []val{x}
	}
	for lanes := g.lanes / 2; lanes > 0; lanes /= 2 {
		other := make([]val, len(acc))
		for i, x := range acc {
			w := r.w
			if i == 1 {
				w = 8
			}
			other[i] = g.swap(g.vl(w), x, lanes*w)
		}
		acc = r.fold(g, acc, other)
	}
	return acc
}

// swap exchanges neighbouring groups of the given bytes in a vector of n bytes.
func (g *gen) swap(n uint8, x val, bytes int) val {
	switch {
	case bytes == 4:
		return g.op1i(x64.PSHUFD, n, x, 0xb1)
	case bytes == 8:
		return g.op1i(x64.PSHUFD, n, x, 0x4e)
	case bytes == 16 && n == 32:
		return g.op1i(x64.PERMQ, n, x, 0x4e)
	case bytes == 16:
		return g.op2i(x64.SHUFF64X2, n, x, x, 0xb1)
	}
	return g.op2i(x64.SHUFF64X2, n, x, x, 0x4e)
}
