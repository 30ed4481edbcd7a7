// Package looptest makes fused loops and memory for tests of what compiles them.
package looptest

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Computed has the dtypes that values have, Stored those that native code reads
// and writes.
var (
	Computed = []ir.DType{ir.Bool, ir.U8, ir.I8, ir.I16, ir.I32, ir.I64, ir.F32, ir.F64}
	Stored   = append([]ir.DType{ir.F16, ir.BF16}, Computed...)
)

// Build is a kernel in the making; it adds to the last pass.
type Build struct{ loop.Kernel }

// New returns a kernel with one empty pass.
func New(axis loop.Axis) *Build {
	b := &Build{}
	b.Axis = axis
	b.Passes = []loop.Pass{{}}
	return b
}

// Pass returns the last pass.
func (b *Build) Pass() *loop.Pass { return &b.Passes[len(b.Passes)-1] }

// Arg adds an operand and returns its number.
func (b *Build) Arg(d ir.DType, s loop.Stride, write bool) int {
	b.Args = append(b.Args, loop.Arg{DType: d, Cols: s, Write: write})
	return len(b.Args) - 1
}

// Choose adds an index for an operand and returns its number.
func (b *Build) Choose(arg int) int {
	by := b.Arg(ir.I64, loop.Fixed, false)
	b.Args[arg].By, b.Args[arg].Moves = int32(by+1), true
	return by
}

// Add adds an instruction to the Body.
func (b *Build) Add(in loop.Instr) loop.Value {
	b.Instrs = append(b.Instrs, in)
	v := loop.Value(len(b.Instrs) - 1)
	b.Pass().Body = append(b.Pass().Body, v)
	return v
}

// Final adds an instruction to the Final.
func (b *Build) Final(in loop.Instr) loop.Value {
	b.Instrs = append(b.Instrs, in)
	v := loop.Value(len(b.Instrs) - 1)
	b.Pass().Final = append(b.Pass().Final, v)
	return v
}

// LoadOf returns the instruction that loads an operand.
func (b *Build) LoadOf(arg int) loop.Instr {
	return loop.Instr{Code: loop.Load, DType: loop.ComputeDType(b.Args[arg].DType), Arg: arg}
}

// Load loads an operand.
func (b *Build) Load(arg int) loop.Value { return b.Add(b.LoadOf(arg)) }

// F32 is a constant.
func (b *Build) F32(x float32) loop.Value {
	return b.Add(loop.Instr{Code: loop.Const, DType: ir.F32, Bits: uint64(math.Float32bits(x))})
}

// ApplyOf returns the instruction of a pointwise op.
func (b *Build) ApplyOf(op ir.Op, d ir.DType, in ...loop.Value) loop.Instr {
	i := loop.Instr{Code: loop.Apply, Op: op, DType: d, N: uint8(len(in))}
	copy(i.In[:], in)
	return i
}

// Op applies an op that keeps the dtype, or gives bool.
func (b *Build) Op(op ir.Op, in ...loop.Value) loop.Value {
	d := b.Instrs[in[len(in)-1]].Result()
	if op.Spec().Predicate {
		d = ir.Bool
	}
	return b.Add(b.ApplyOf(op, d, in...))
}

// Cast converts a value.
func (b *Build) Cast(x loop.Value, d ir.DType) loop.Value { return b.Add(b.ApplyOf(aten.Cast, d, x)) }

// StoreOf returns the instruction that stores a value.
func (b *Build) StoreOf(arg int, v loop.Value) loop.Instr {
	return loop.Instr{Code: loop.Store, Arg: arg, In: [3]loop.Value{v}, N: 1}
}

// Store stores a value.
func (b *Build) Store(arg int, v loop.Value) { b.Add(b.StoreOf(arg, v)) }

// Reduce folds a value.
func (b *Build) Reduce(op ir.Op, d ir.DType, x loop.Value) loop.Value {
	return b.Add(loop.Instr{Code: loop.Reduce, Op: op, DType: d, In: [3]loop.Value{x}, N: 1})
}

// Defined reports whether a pointwise row takes operands of a dtype.
func Defined(sp *ir.Spec, d ir.DType) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, refused := r.(*ir.OpError); !refused {
				panic(r)
			}
			ok = false
		}
	}()
	if sp.Promote == ir.PromoteIntToFloat && !d.IsFloat() {
		return false // the operand is cast before
	}
	in := make([]ir.Value, len(sp.Schema.Params))
	for i := range in {
		in[i] = ir.ShapeOnly(ir.MakeShape(d))
	}
	sp.Infer(ir.Args{Spec: sp, In: in})
	return true
}
