package fuse

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// kernelWriter writes the instructions of a kernel, pass by pass.
type kernelWriter struct {
	k     loop.Kernel
	final bool    // write to the Final of the pass
	cost  float64 // of an element, in nanoseconds
}

// begin starts a pass.
func (w *kernelWriter) begin() {
	w.k.Passes = append(w.k.Passes, loop.Pass{})
	w.final = false
}

// add appends an instruction to the Body or Final of the pass.
func (w *kernelWriter) add(in loop.Instr) loop.Value {
	v := loop.Value(len(w.k.Instrs))
	w.k.Instrs = append(w.k.Instrs, in)
	p := &w.k.Passes[len(w.k.Passes)-1]
	if w.final {
		p.Final = append(p.Final, v)
	} else {
		p.Body = append(p.Body, v)
	}
	return v
}

// nativeMove is what loading or storing one element costs in native code, in nanoseconds.
const nativeMove = 0.1

// costOf returns what an op costs in native code, in nanoseconds for an element.
func costOf(op ir.Op) float64 { return op.Spec().Cost.Nanos() }

// load reads operand arg, of dtype d, in the dtype to compute in.
func (w *kernelWriter) load(arg int, d ir.DType) loop.Value {
	w.charge(nativeMove)
	return w.add(loop.Instr{Code: loop.Load, DType: loop.ComputeDType(d), Arg: arg})
}

// store writes v to operand arg.
func (w *kernelWriter) store(arg int, v loop.Value) {
	w.charge(nativeMove)
	w.add(loop.Instr{Code: loop.Store, DType: w.k.Instrs[v].DType, In: [3]loop.Value{v}, N: 1, Arg: arg})
}

func (w *kernelWriter) charge(nanos float64) {
	if !w.final {
		w.cost += nanos
	}
}

// apply writes a pointwise op whose result, of dtype out, is rounded to what
// out can hold. last is the dtype of the last operand.
func (w *kernelWriter) apply(op ir.Op, out, last ir.DType, src []loop.Value) loop.Value {
	wide := loop.ComputeDType(out)
	var v loop.Value
	if op == aten.Cast && loop.ComputeDType(last) == wide {
		v = src[0]
		if out == last || out == wide {
			return v
		}
	} else {
		in := loop.Instr{Code: loop.Apply, Op: op, DType: wide, N: uint8(len(src))}
		copy(in.In[:], src)
		v = w.add(in)
		w.charge(costOf(op))
	}
	if wide != out && !op.Spec().Exact && !(op == aten.Cast && byteWide(last)) {
		v = w.round(out, v)
	}
	return v
}

// byteWide reports whether all numbers of a dtype are those of each 16-bit float.
func byteWide(d ir.DType) bool { return d.IsIntegral() && d.Size() == 1 }

func (w *kernelWriter) round(d ir.DType, v loop.Value) loop.Value {
	w.charge(ir.CostDivision.Nanos())
	return w.add(loop.Instr{Code: loop.Round, DType: d, In: [3]loop.Value{v}, N: 1})
}

// reduce writes a reduction of elements of dtype in to a result of dtype out,
// which is not rounded yet. long says that a line has too many elements for a NarrowSum.
func (w *kernelWriter) reduce(op ir.Op, out, in ir.DType, v loop.Value, long bool) loop.Value {
	d := loop.ComputeDType(out)
	if (op == aten.Sum || op == aten.Prod) && in != out {
		v = w.apply(aten.Cast, out, in, []loop.Value{v})
	}
	if (op == aten.Any || op == aten.All) && in != ir.Bool {
		v = w.apply(aten.Cast, ir.Bool, in, []loop.Value{v})
	}
	w.charge(ir.CostArithmetic.Nanos())
	r := loop.Instr{Code: loop.Reduce, Op: op, DType: d, In: [3]loop.Value{v}, N: 1}
	if op == aten.Sum && d == ir.F32 && !long && (in == ir.BF16 || in == ir.F16) {
		r.Bits = loop.NarrowSum
	}
	return w.add(r)
}

// finish rounds the result of a reduction.
func (w *kernelWriter) finish(op ir.Op, out ir.DType, v loop.Value) loop.Value {
	if loop.ComputeDType(out) != out && (op == aten.Sum || op == aten.Prod) {
		return w.round(out, v)
	}
	return v
}
