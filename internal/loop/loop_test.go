package loop

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// softmax is the kernel of the package comment.
func softmax() *Kernel {
	f := ir.F32
	return &Kernel{
		Axis: Columns,
		Args: []Arg{{DType: f, Cols: Unit}, {DType: f, Cols: Unit, Write: true}},
		Instrs: []Instr{
			{Code: Load, DType: f, Arg: 0},
			{Code: Reduce, Op: aten.Amax, DType: f, In: [3]Value{0}, N: 1},
			{Code: Load, DType: f, Arg: 0},
			{Code: Apply, Op: aten.Sub, DType: f, In: [3]Value{2, 1}, N: 2},
			{Code: Apply, Op: aten.Exp, DType: f, In: [3]Value{3}, N: 1},
			{Code: Store, Arg: 1, In: [3]Value{4}, N: 1},
			{Code: Reduce, Op: aten.Sum, DType: f, In: [3]Value{4}, N: 1},
			{Code: Apply, Op: aten.Reciprocal, DType: f, In: [3]Value{6}, N: 1},
			{Code: Load, DType: f, Arg: 1},
			{Code: Apply, Op: aten.Mul, DType: f, In: [3]Value{8, 7}, N: 2},
			{Code: Store, Arg: 1, In: [3]Value{9}, N: 1},
		},
		Passes: []Pass{
			{Body: []Value{0, 1}},
			{Body: []Value{2, 3, 4, 5, 6}, Final: []Value{7}},
			{Body: []Value{8, 9, 10}},
		},
	}
}

func TestEvalSoftmax(t *testing.T) {
	k := softmax()
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	x := []float32{0, 0, 0, 1000, 1000 + float32(math.Ln2), float32(math.Inf(-1))}
	y := make([]float32, len(x))
	f := Frame{Rows: 2, Cols: 3}
	f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
	f.Row[0], f.Row[1] = 12, 12
	Eval(k, &f)
	for i, want := range []float64{1. / 3, 1. / 3, 1. / 3, 1. / 3, 2. / 3, 0} {
		if math.Abs(float64(y[i])-want) > 2e-5 {
			t.Errorf("element %d is %v, want %v", i, y[i], want)
		}
	}
}

// TestEvalAxes sums a grid along each axis and finds its greatest element.
func TestEvalAxes(t *testing.T) {
	for _, test := range []struct {
		axis Axis
		sum  []float64
		at   []int64
	}{
		{Columns, []float64{6, 15}, []int64{7, 7}},
		{Rows, []float64{5, 7, 9}, []int64{6, 6, 6}},
		{Both, []float64{21}, []int64{10}},
	} {
		k := &Kernel{
			Axis: test.axis,
			Args: []Arg{{DType: ir.I32, Cols: Free}, {DType: ir.F64, Cols: Unit, Write: true}, {DType: ir.I64, Cols: Unit, Write: true}},
			Instrs: []Instr{
				{Code: Load, DType: ir.I32, Arg: 0},
				{Code: Reduce, Op: aten.Sum, DType: ir.F64, In: [3]Value{0}, N: 1},
				{Code: Reduce, Op: aten.Argmax, DType: ir.I64, In: [3]Value{0}, N: 1},
				{Code: Store, Arg: 1, In: [3]Value{1}, N: 1},
				{Code: Store, Arg: 2, In: [3]Value{2}, N: 1},
			},
			Passes: []Pass{{Body: []Value{0, 1, 2}, Final: []Value{3, 4}}},
		}
		if err := k.Validate(); err != nil {
			t.Fatal(err)
		}
		x := []int32{1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0}
		sum, at := make([]float64, 6), make([]int64, 6)
		f := Frame{Rows: 2, Cols: 3, First: 5}
		f.Ptr[0], f.Ptr[1], f.Ptr[2] = unsafe.Pointer(&x[0]), unsafe.Pointer(&sum[0]), unsafe.Pointer(&at[0])
		f.Row[0], f.Col[0], f.Row[1], f.Row[2] = 24, 8, 8, 8
		Eval(k, &f)
		for i := range test.sum {
			if sum[i] != test.sum[i] || at[i] != test.at[i] {
				t.Errorf("%v: line %d: sum %v at %d, want %v at %d", test.axis, i, sum[i], at[i], test.sum[i], test.at[i])
			}
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, change := range map[string]func(k *Kernel){
		"a value of an earlier body":  func(k *Kernel) { k.Instrs[9].In[0] = 4 },
		"a reduction too early":       func(k *Kernel) { k.Instrs[3].In[1] = 6 },
		"a Final without an axis":     func(k *Kernel) { k.Axis = None },
		"an instruction listed twice": func(k *Kernel) { k.Passes[2].Body = append(k.Passes[2].Body, 8) },
		"an instruction out of range": func(k *Kernel) { k.Passes[2].Body = append(k.Passes[2].Body, 80) },
		"a wrong dtype":               func(k *Kernel) { k.Instrs[9].DType = ir.F64 },
		"a missing operand":           func(k *Kernel) { k.Instrs[9].N = 1 },
		"a store to what is read":     func(k *Kernel) { k.Args[1].Write = false },
		"an operand that is not":      func(k *Kernel) { k.Instrs[8].Arg = 7 },
		"an op that is no reduction":  func(k *Kernel) { k.Instrs[6].Op = aten.Exp },
		"an op that is not pointwise": func(k *Kernel) { k.Instrs[4].Op = aten.Sum },
		"too many operands":           func(k *Kernel) { k.Args = make([]Arg, MaxArgs+1) },
	} {
		k := softmax()
		change(k)
		if err := k.Validate(); !errors.Is(err, ErrKernel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestString(t *testing.T) {
	got := softmax().String()
	for _, want := range []string{"axis=columns", "arg1 f32 unit write", "%4 f32 = exp %3", "final %7 f32 = reciprocal %6", "store arg1 %9"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
