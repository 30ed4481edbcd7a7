package graph

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	ir.RegisterScanRules(ir.ScanRules{Infer: inferScan, VJP: scanGradient, Body: func(params, roots []ir.Value) string {
		return FromValues("body", params, roots).String()
	}})
}

// Loop is one use of the op scan.
type Loop struct {
	Init, Xs, Consts []ir.Value
	Body             *Program
	Length           int
	Reverse          bool
	// Every is the distance of the elements before which the carried values are kept, or 0.
	Every int
}

// LoopOf reads a use of scan. A body that is no Program is an error of the op.
func LoopOf(a ir.Args) *Loop {
	body, err := Parse(a.Str("body"))
	if err != nil {
		a.Fail(ir.ErrArg, "body: %v", err)
	}
	return &Loop{Init: a.Tensors("init"), Xs: a.Tensors("xs"), Consts: a.Tensors("consts"), Body: body,
		Length: a.Int("length"), Reverse: a.Bool("reverse"), Every: a.Int("every")}
}

// Results returns how many results the body has beside the carried values.
func (l *Loop) Results() int { return len(l.Body.Returns) - len(l.Init) }

// Kept returns the number of elements before which the carried values are kept.
func (l *Loop) Kept() int {
	if l.Every == 0 {
		return 0
	}
	return (l.Length + l.Every - 1) / l.Every
}

// Record records the loop. Its outputs are the last carried values, the results and the kept values.
func (l *Loop) Record(b *ir.Builder) []ir.Value {
	return b.Call(aten.Scan, []any{l.Init, l.Xs, l.Consts, l.Body.String(), l.Length, l.Reverse, l.Every})
}

// stacked is the shape of n values of shape s in a new first dimension.
func stacked(n int, s ir.Shape) (ir.Shape, error) {
	return ir.NewShape(s.DType(), append([]int{n}, s.Dims()...))
}

func inferScan(a ir.Args) []ir.Shape {
	l := LoopOf(a)
	switch {
	case l.Length < 0 || l.Every < 0:
		a.Fail(ir.ErrArg, "length %d and every %d must not be negative", l.Length, l.Every)
	case l.Reverse && l.Every > 1:
		a.Fail(ir.ErrArg, "every %d with reverse: only 0 and 1 are supported", l.Every)
	case len(l.Body.Params) != len(a.In):
		a.Fail(ir.ErrArg, "the body has %d parameters for %d operands", len(l.Body.Params), len(a.In))
	case l.Results() < 0:
		a.Fail(ir.ErrArg, "the body returns %d values, %d are carried", len(l.Body.Returns), len(l.Init))
	}
	for i, v := range a.In {
		want, got := l.Body.Params[i].Shape, v.Shape()
		if k := i - len(l.Init); k >= 0 && k < len(l.Xs) {
			if got.Rank() == 0 || got.Dim(0) != l.Length {
				a.Fail(ir.ErrShape, "operand %d is %v, its first dimension must be %d", i, got, l.Length)
			}
			got = got.WithDims(got.Dims()[1:]...)
		}
		if got != want {
			a.Fail(ir.ErrShape, "operand %d gives %v, the body takes %v", i, got, want)
		}
	}
	return l.infer(a)
}

// infer returns the shapes of the outputs.
func (l *Loop) infer(a ir.Args) []ir.Shape {
	var out []ir.Shape
	add := func(n int, s ir.Shape) {
		s, err := stacked(n, s)
		if err != nil {
			a.Fail(ir.ErrShape, "a stack of %d: %v", n, err)
		}
		out = append(out, s)
	}
	for i, v := range l.Init {
		if got := l.Body.Shape(l.Body.Returns[i]); got != v.Shape() {
			a.Fail(ir.ErrShape, "carried value %d is %v and becomes %v", i, v.Shape(), got)
		}
		out = append(out, v.Shape())
	}
	for _, id := range l.Body.Returns[len(l.Init):] {
		add(l.Length, l.Body.Shape(id))
	}
	if l.Every > 0 {
		for _, v := range l.Init {
			add(l.Kept(), v.Shape())
		}
	}
	return out
}

// unroll records the loop without the op.
func (l *Loop) unroll(b *ir.Builder) []ir.Value {
	carry := l.Init
	results := make([][]ir.Value, l.Results())
	kept := make([][]ir.Value, len(l.Init))
	for k := range l.Length {
		at := k
		if l.Reverse {
			at = l.Length - 1 - k
		}
		if l.Every > 0 && k%l.Every == 0 {
			for i, v := range carry {
				kept[i] = append(kept[i], b.Unsqueeze(v, 0))
			}
		}
		in := append([]ir.Value(nil), carry...)
		for _, x := range l.Xs {
			in = append(in, b.Reshape(b.Slice(x, 0, at, at+1, 1), x.Shape().Dims()[1:]...))
		}
		out := l.Body.Build(b, append(in, l.Consts...))
		carry = out[:len(l.Init)]
		for i, v := range out[len(l.Init):] {
			results[i] = append(results[i], b.Unsqueeze(v, 0))
		}
	}
	return append(append(append([]ir.Value(nil), carry...), l.stack(b, results, l.Body.Returns[len(l.Init):])...),
		l.stack(b, kept[:l.keptOutputs()], l.Body.Returns)...)
}

// stack joins what each element gave, in the order of the sequences.
func (l *Loop) stack(b *ir.Builder, parts [][]ir.Value, ids []ID) []ir.Value {
	out := make([]ir.Value, len(parts))
	for i, p := range parts {
		switch s := l.Body.Shape(ids[i]); {
		case len(p) == 0:
			out[i] = b.Full(append([]int{0}, s.Dims()...), 0, s.DType())
		case l.Reverse:
			out[i] = b.Flip(b.Cat(p, 0), 0)
		default:
			out[i] = b.Cat(p, 0)
		}
	}
	return out
}
