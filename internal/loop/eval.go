package loop

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// number is a value: F if its dtype is a float, I otherwise.
type number struct {
	F float64
	I int64
}

// evaluator is the state of Eval: the values computed so far.
type evaluator struct {
	k    *Kernel
	f    *Frame
	vals []number
	accs []accumulator // by Value, for Reduces
}

// Eval runs a valid kernel on a frame, one element at a time and in float64. It defines what
// kernels mean, and is slow. It does not use Spill. It panics with a ZeroDivision at the first
// integer division by 0, and with an IndexFault at the first index that is out of range.
func Eval(k *Kernel, f *Frame) {
	e := &evaluator{k, f, make([]number, len(k.Instrs)), make([]accumulator, len(k.Instrs))}
	for i := range k.Instrs {
		if in := &k.Instrs[i]; in.Code == Const {
			e.vals[i] = constant(in)
		}
	}
	e.grid()
	if !k.Planes || f.Planes <= 1 {
		return
	}
	plane := *f
	e.f = &plane
	for range f.Planes - 1 {
		for i := range k.Args {
			plane.Ptr[i] = unsafe.Add(plane.Ptr[i], f.Plane[i])
		}
		e.grid()
	}
}

// grid runs all lines of the present grid.
func (e *evaluator) grid() {
	switch f := e.f; e.k.Axis {
	case None, Columns:
		for r := range f.Rows {
			e.line(r, r+1, 0, f.Cols)
		}
	case Rows:
		for c := range f.Cols {
			e.line(0, f.Rows, c, c+1)
		}
	case Both:
		e.line(0, f.Rows, 0, f.Cols)
	}
}

// line runs all passes on the elements of one line.
func (e *evaluator) line(r0, r1, c0, c1 int) {
	for p := range e.k.Passes {
		pass := &e.k.Passes[p]
		for _, v := range pass.Body {
			e.accs[v] = accumulator{}
		}
		for r := r0; r < r1; r++ {
			for c := c0; c < c1; c++ {
				for _, v := range pass.Body {
					e.step(v, r, c)
				}
			}
		}
		for _, v := range pass.Body {
			if in := &e.k.Instrs[v]; in.Code == Reduce {
				e.vals[v] = e.accs[v].result(in)
			}
		}
		for _, v := range pass.Final {
			e.step(v, r0, c0)
		}
	}
}

func (e *evaluator) step(v Value, r, c int) {
	in := &e.k.Instrs[v]
	switch in.Code {
	case Load:
		e.vals[v] = load(e.k.Args[in.Arg].DType, e.address(in.Arg, r, c))
	case Const:
	case Index:
		e.vals[v] = number{I: int64(e.index(r, c) + e.f.First)}
	case Apply:
		e.vals[v] = e.apply(v, in)
	case Round:
		e.vals[v] = number{F: ir.RoundFloat(in.DType, e.vals[in.In[0]].F)}
	case Reduce:
		from := e.k.Instrs[in.In[0]].Result()
		e.accs[v].add(in, from, e.vals[in.In[0]], int64(e.index(r, c)+e.f.First))
	case Store:
		store(e.k.Args[in.Arg].DType, e.address(in.Arg, r, c), e.vals[in.In[0]])
	}
}

func (e *evaluator) index(r, c int) int {
	switch e.k.Axis {
	case Rows:
		return r
	case Both:
		return r*e.f.Cols + c
	}
	return c
}

func (e *evaluator) address(arg, r, c int) unsafe.Pointer {
	at := r * e.f.Row[arg]
	switch e.k.Args[arg].Cols {
	case Unit:
		at += c * e.k.Args[arg].DType.Size()
	case Free:
		at += c * e.f.Col[arg]
	}
	if by := e.k.Args[arg].By; by > 0 {
		at += e.chosen(arg, e.address(int(by)-1, r, c))
	}
	return unsafe.Add(e.f.Ptr[arg], at)
}

// chosen returns how far an index moves an operand.
func (e *evaluator) chosen(arg int, index unsafe.Pointer) int {
	i := load(ir.I64, index).I
	if i < 0 || i >= int64(e.f.Size[arg]) {
		panic(IndexFault{arg, i})
	}
	return int(i) * e.f.Step[arg]
}

func (e *evaluator) apply(v Value, in *Instr) number {
	x := [3]number{}
	for i, o := range in.In[:in.N] {
		x[i] = e.vals[o]
	}
	from := e.k.Instrs[in.In[in.N-1]].Result()
	if in.Op == aten.Cast {
		return convert(from, in.DType, x[0])
	}
	if in.Op == aten.Where {
		if x[0].I != 0 {
			return x[1]
		}
		return x[2]
	}
	if from.IsFloat() {
		return applyFloat(in, &x)
	}
	if x[1].I == 0 && in.Op.Spec().Divides {
		panic(ZeroDivision(v))
	}
	return number{I: ir.WrapInt(in.DType, applyInt(in, from, &x))}
}

func applyFloat(in *Instr, x *[3]number) number {
	s := &in.Op.Spec().Scalar
	var y float64
	if in.N == 1 {
		y = s.F1(x[0].F)
	} else {
		y = s.F2(x[0].F, x[1].F)
	}
	if in.DType == ir.Bool {
		return number{I: int64(y)}
	}
	return number{F: ir.RoundFloat(in.DType, y)}
}

func applyInt(in *Instr, from ir.DType, x *[3]number) int64 {
	s := &in.Op.Spec().Scalar
	switch {
	case s.B1 != nil && from == ir.Bool:
		if s.B1(x[0].I != 0) {
			return 1
		}
		return 0
	case in.N == 1:
		return s.I1(x[0].I)
	}
	return s.I2(x[0].I, x[1].I)
}

func convert(from, to ir.DType, x number) number {
	switch {
	case from.IsFloat() && to.IsFloat():
		return number{F: ir.RoundFloat(to, x.F)}
	case from.IsFloat():
		return number{I: ir.FloatToInt(to, x.F)}
	case to.IsFloat():
		return number{F: ir.IntToFloat(to, x.I)}
	}
	return number{I: ir.WrapInt(to, x.I)}
}

func constant(in *Instr) number {
	if in.DType.IsIntegral() {
		return number{I: ir.WrapInt(in.DType, int64(in.Bits))} // a bool is true by any of the bits
	}
	return load(in.DType, unsafe.Pointer(&in.Bits))
}

// load reads an element.
func load(d ir.DType, p unsafe.Pointer) number {
	b := unsafe.Slice((*byte)(p), d.Size())
	if d.IsIntegral() {
		return number{I: ir.WrapInt(d, elements.Int(d, b, 0))}
	}
	return number{F: elements.Float(d, b, 0)}
}

// store writes an element, rounded.
func store(d ir.DType, p unsafe.Pointer, x number) {
	b := unsafe.Slice((*byte)(p), d.Size())[:0]
	if d.IsIntegral() {
		elements.AppendInt(b, d, x.I)
	} else {
		elements.AppendFloat(b, d, x.F)
	}
}
