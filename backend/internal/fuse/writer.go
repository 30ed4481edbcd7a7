package fuse

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// Writer writes the instructions of a kernel, pass by pass.
type Writer struct {
	K     loop.Kernel
	Final bool    // write to the Final of the pass
	Cost  float64 // of an element, in nanoseconds
}

// Begin starts a pass.
func (w *Writer) Begin() {
	w.K.Passes = append(w.K.Passes, loop.Pass{})
	w.Final = false
}

// Add appends an instruction to the Body or Final of the pass.
func (w *Writer) Add(in loop.Instr) loop.Value {
	v := loop.Value(len(w.K.Instrs))
	w.K.Instrs = append(w.K.Instrs, in)
	p := &w.K.Passes[len(w.K.Passes)-1]
	if w.Final {
		p.Final = append(p.Final, v)
	} else {
		p.Body = append(p.Body, v)
	}
	return v
}

const (
	// What one element costs in native code, in nanoseconds.
	nativeMove       = 0.1
	nativeArithmetic = 0.03
	nativeDivision   = 0.1
	nativeElementary = 0.5
)

// cheap has the ops that are recomputed in a later pass rather than kept.
var cheap = map[ir.Op]float64{}

func init() {
	for _, op := range []ir.Op{
		ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpNeg, ir.OpAbs, ir.OpSign, ir.OpRelu, ir.OpMaximum, ir.OpMinimum, ir.OpWhere, ir.OpCast,
		ir.OpEq, ir.OpNe, ir.OpLt, ir.OpLe, ir.OpGt, ir.OpGe, ir.OpLogicalNot, ir.OpLogicalAnd, ir.OpLogicalOr, ir.OpLogicalXor,
		ir.OpBitwiseNot, ir.OpBitwiseAnd, ir.OpBitwiseOr, ir.OpBitwiseXor,
	} {
		cheap[op] = nativeArithmetic
	}
	for _, op := range []ir.Op{ir.OpDiv, ir.OpSqrt, ir.OpReciprocal, ir.OpFloor, ir.OpCeil, ir.OpRound, ir.OpTrunc} {
		cheap[op] = nativeDivision
	}
}

// Cost returns what an op costs in native code, in nanoseconds for an element.
func Cost(op ir.Op) float64 {
	if c, ok := cheap[op]; ok {
		return c
	}
	return nativeElementary
}

// Load reads operand arg, of dtype d, in the dtype to compute in.
func (w *Writer) Load(arg int, d ir.DType) loop.Value {
	w.charge(nativeMove)
	return w.Add(loop.Instr{Code: loop.Load, DType: loop.ComputeDType(d), Arg: arg})
}

// Store writes v to operand arg.
func (w *Writer) Store(arg int, v loop.Value) {
	w.charge(nativeMove)
	w.Add(loop.Instr{Code: loop.Store, DType: w.K.Instrs[v].DType, In: [3]loop.Value{v}, N: 1, Arg: arg})
}

func (w *Writer) charge(nanos float64) {
	if !w.Final {
		w.Cost += nanos
	}
}

// Apply writes a pointwise op whose result, of dtype out, is rounded to what
// out can hold. last is the dtype of the last operand.
func (w *Writer) Apply(op ir.Op, out, last ir.DType, src []loop.Value) loop.Value {
	wide := loop.ComputeDType(out)
	var v loop.Value
	if op == ir.OpCast && loop.ComputeDType(last) == wide {
		v = src[0]
		if out == last || out == wide {
			return v
		}
	} else {
		in := loop.Instr{Code: loop.Apply, Op: op, DType: wide, N: uint8(len(src))}
		copy(in.In[:], src)
		v = w.Add(in)
		w.charge(Cost(op))
	}
	if wide != out && !Exact(op) {
		v = w.round(out, v)
	}
	return v
}

func (w *Writer) round(d ir.DType, v loop.Value) loop.Value {
	w.charge(nativeDivision)
	return w.Add(loop.Instr{Code: loop.Round, DType: d, In: [3]loop.Value{v}, N: 1})
}

// Reduce writes a reduction of elements of dtype in to a result of dtype out,
// which is not rounded yet.
func (w *Writer) Reduce(op ir.Op, out, in ir.DType, v loop.Value) loop.Value {
	d := loop.ComputeDType(out)
	if (op == ir.OpSum || op == ir.OpProd) && in != out {
		v = w.Apply(ir.OpCast, out, in, []loop.Value{v})
	}
	if (op == ir.OpAny || op == ir.OpAll) && in != ir.Bool {
		v = w.Apply(ir.OpCast, ir.Bool, in, []loop.Value{v})
	}
	w.charge(nativeArithmetic)
	return w.Add(loop.Instr{Code: loop.Reduce, Op: op, DType: d, In: [3]loop.Value{v}, N: 1})
}

// Finish rounds the result of a reduction.
func (w *Writer) Finish(op ir.Op, out ir.DType, v loop.Value) loop.Value {
	if loop.ComputeDType(out) != out && (op == ir.OpSum || op == ir.OpProd) {
		return w.round(out, v)
	}
	return v
}

// exact has the ops whose results need no rounding: they are among the operands
// but for the sign.
var exact = map[ir.Op]bool{}

func init() {
	for _, op := range []ir.Op{ir.OpNeg, ir.OpAbs, ir.OpRelu, ir.OpSign, ir.OpMaximum, ir.OpMinimum, ir.OpWhere} {
		exact[op] = true
	}
}

// Exact reports whether the results of a pointwise op need no rounding to the
// dtype of its operands.
func Exact(op ir.Op) bool { return exact[op] }
