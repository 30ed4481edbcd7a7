package loop

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// accumulator is the state of a reduction: the value so far, its position, and whether there was an
// element at all.
type accumulator struct {
	v    number
	at   int64
	some bool
}

// reductions has, by op, the function that adds an element x of dtype d at a position.
var reductions map[ir.Op]func(a *accumulator, d ir.DType, x number, at int64)

func init() {
	extremum := func(better func(d ir.DType, x, y number) bool) func(*accumulator, ir.DType, number, int64) {
		return func(a *accumulator, d ir.DType, x number, at int64) {
			if !a.some || better(d, x, a.v) {
				a.v, a.at = x, at
			}
		}
	}
	reductions = map[ir.Op]func(*accumulator, ir.DType, number, int64){
		aten.Sum: func(a *accumulator, _ ir.DType, x number, _ int64) { a.v = number{a.v.F + x.F, a.v.I + x.I} },
		aten.Prod: func(a *accumulator, _ ir.DType, x number, _ int64) {
			if !a.some {
				a.v = number{1, 1}
			}
			a.v = number{a.v.F * x.F, a.v.I * x.I}
		},
		aten.Amax: extremum(greater), aten.Argmax: extremum(greater),
		aten.Amin: extremum(less), aten.Argmin: extremum(less),
		aten.Any: func(a *accumulator, _ ir.DType, x number, _ int64) { a.v.I |= x.I },
		aten.All: func(a *accumulator, _ ir.DType, x number, _ int64) {
			if !a.some {
				a.v.I = 1
			}
			a.v.I &= x.I
		},
	}
}

func greater(d ir.DType, x, y number) bool {
	if !d.IsFloat() {
		return x.I > y.I
	}
	return x.F > y.F || (math.IsNaN(x.F) && !math.IsNaN(y.F))
}

func less(d ir.DType, x, y number) bool {
	if !d.IsFloat() {
		return x.I < y.I
	}
	return x.F < y.F || (math.IsNaN(x.F) && !math.IsNaN(y.F))
}

// add adds an element. Sums and products convert it to the result's dtype first, any and all to
// bool.
func (a *accumulator) add(in *Instr, from ir.DType, x number, at int64) {
	switch in.Op {
	case aten.Sum, aten.Prod, aten.Any, aten.All:
		x = convert(from, in.DType, x)
	}
	reductions[in.Op](a, from, x, at)
	a.some = true
}

// result returns the value of a finished reduction. Of no elements, a sum is 0,
// a product and all are 1, any is false, and an extremum is not defined.
func (a *accumulator) result(in *Instr) number {
	v := a.v
	switch in.Op {
	case aten.Argmax, aten.Argmin:
		return number{I: a.at}
	case aten.Prod, aten.All:
		if !a.some {
			v = number{1, 1}
		}
	}
	if in.DType.IsFloat() {
		return number{F: ir.RoundFloat(in.DType, v.F)}
	}
	return number{I: ir.WrapInt(in.DType, v.I)}
}
