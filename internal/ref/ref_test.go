package ref

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// arg is a test operand: a shape and its elements.
type arg struct {
	shape ir.Shape
	vals  []float64
}

func of(d ir.DType, dims []int, vals ...float64) arg { return arg{ir.MakeShape(d, dims...), vals} }

func (a arg) tensor() tensor {
	t := newTensor(a.shape)
	for i, v := range a.vals {
		t.setFloat(i, v)
	}
	return t
}

// program records one op on the operands, given as arg among the arguments.
func program(t testing.TB, op ir.Op, args []any, named ...ir.Named) (*graph.Program, [][]byte) {
	t.Helper()
	var params []graph.Param
	var data [][]byte
	for _, x := range args {
		if a, ok := x.(arg); ok {
			params = append(params, graph.Param{Name: "x", Shape: a.shape})
			data = append(data, a.tensor().data)
		}
	}
	leaves := graph.NewParams(params)
	next := 0
	pos := make([]any, len(args))
	for i, x := range args {
		pos[i] = x
		if _, ok := x.(arg); ok {
			pos[i] = leaves[next]
			next++
		}
	}
	var b ir.Builder
	return graph.FromValues("test", leaves, b.Call(op, pos, named...)), data
}

var nan = math.NaN()

func same(x, y float64) bool {
	return math.Float64bits(x) == math.Float64bits(y) || (math.IsNaN(x) && math.IsNaN(y)) ||
		math.Abs(x-y) <= 1e-12*math.Abs(y)
}

func TestKernels(t *testing.T) {
	f, i := ir.F64, ir.I64
	d1, d2 := []int{4}, []int{2, 3}
	six := of(f, d2, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		name string
		op   ir.Op
		args []any
		want [][]float64
	}{
		{"broadcast", aten.Add, []any{six, of(f, []int{3}, 10, 20, 30)}, [][]float64{{11, 22, 33, 14, 25, 36}}},
		{"broadcast both", aten.Mul, []any{of(f, []int{2, 1}, 1, 2), of(f, []int{1, 2}, 3, 4)}, [][]float64{{3, 4, 6, 8}}},
		{"wrap u8", aten.Mul, []any{of(ir.U8, []int{1}, 200), of(ir.U8, []int{1}, 2)}, [][]float64{{144}}},
		{"round once", aten.Add, []any{of(ir.F16, []int{1}, 2048), of(ir.F16, []int{1}, 1)}, [][]float64{{2048}}},
		{"not bool", aten.BitwiseNot, []any{of(ir.Bool, []int{2}, 0, 1)}, [][]float64{{1, 0}}},
		{"predicate", aten.Lt, []any{of(f, []int{3}, 1, nan, 3), of(f, []int{}, 2)}, [][]float64{{1, 0, 0}}},
		{"where", aten.Where, []any{of(ir.Bool, []int{2, 1}, 1, 0), of(i, []int{2}, 1, 2), of(i, []int{}, 9)}, [][]float64{{1, 2, 9, 9}}},
		{"cast to i8", aten.Cast, []any{of(f, d1, 300, -1.9, nan, 1e20), ir.I8}, [][]float64{{44, -1, 0, 0}}},
		{"cast to f8", aten.Cast, []any{of(f, []int{2}, 1000, 0.3), ir.F8E4M3FN}, [][]float64{{448, 0.3125}}},
		{"cast from f8", aten.Cast, []any{of(ir.F8E5M2, []int{1}, 3), ir.F32}, [][]float64{{3}}},

		{"sum dim", aten.Sum, []any{six, []int{0}}, [][]float64{{5, 7, 9}}},
		{"sum all", aten.Sum, []any{six}, [][]float64{{21}}},
		{"sum bool", aten.Sum, []any{of(ir.Bool, d1, 1, 1, 0, 1)}, [][]float64{{3}}},
		{"sum converts first", aten.Sum, []any{of(f, []int{2}, 1.6, 1.6), nil, false, i}, [][]float64{{2}}},
		{"sum in float64", aten.Sum, []any{of(ir.F32, []int{3}, 1e8, 1, -1e8)}, [][]float64{{1}}},
		{"sum of none", aten.Sum, []any{of(f, []int{2, 0}), []int{1}, true}, [][]float64{{0, 0}}},
		{"prod of none", aten.Prod, []any{of(f, []int{0})}, [][]float64{{1}}},
		{"amax NaN", aten.Amax, []any{of(f, d1, 1, nan, 3, 2)}, [][]float64{{nan}}},
		{"amin", aten.Amin, []any{six, []int{1}}, [][]float64{{1, 4}}},
		{"argmax first", aten.Argmax, []any{of(f, d1, 1, 3, 3, 2)}, [][]float64{{1}}},
		{"argmin NaN", aten.Argmin, []any{of(f, d1, 1, nan, -3, nan)}, [][]float64{{1}}},
		{"argmax dim", aten.Argmax, []any{of(f, []int{2, 2}, 1, 2, 4, 3), 1}, [][]float64{{1, 0}}},
		{"any of none", aten.Any, []any{of(f, []int{0})}, [][]float64{{0}}},
		{"all of none", aten.All, []any{of(f, []int{0})}, [][]float64{{1}}},
		{"any NaN", aten.Any, []any{of(f, []int{2}, 0, nan)}, [][]float64{{1}}},
		{"all dim", aten.All, []any{of(i, []int{2, 2}, 1, 0, 2, 3), []int{1}}, [][]float64{{0, 1}}},

		{"cumsum", aten.Cumsum, []any{six, 0}, [][]float64{{1, 2, 3, 5, 7, 9}}},
		{"cumprod scalar", aten.Cumprod, []any{of(f, []int{}, 7), 0}, [][]float64{{7}}},
		{"cummax", aten.Cummax, []any{of(f, []int{6}, 1, 3, 3, nan, 5, nan), 0}, [][]float64{{1, 3, 3, nan, nan, nan}, {0, 1, 2, 3, 3, 5}}},

		{"reshape", aten.Reshape, []any{six, []int{3, -1}}, [][]float64{{1, 2, 3, 4, 5, 6}}},
		{"permute", aten.Permute, []any{six, []int{-1, 0}}, [][]float64{{1, 4, 2, 5, 3, 6}}},
		{"expand", aten.Expand, []any{of(f, []int{2, 1}, 1, 2), []int{2, -1, 2}}, [][]float64{{1, 1, 2, 2, 1, 1, 2, 2}}},
		{"slice", aten.Slice, []any{six, 1, -2, nil, 1}, [][]float64{{2, 3, 5, 6}}},
		{"slice backwards", aten.Slice, []any{six, 1, nil, nil, -2}, [][]float64{{3, 1, 6, 4}}},
		{"flip", aten.Flip, []any{six, []int{0}}, [][]float64{{4, 5, 6, 1, 2, 3}}},
		{"pad", aten.ConstantPadNd, []any{six, []int{-1, 1, 1, 0}, of(f, []int{}, 9)}, [][]float64{{9, 9, 9, 2, 3, 9, 5, 6, 9}}},

		{"full", aten.Full, []any{[]int{2}, 2.5, ir.I32}, [][]float64{{2, 2}}},
		{"arange", aten.Arange, []any{5, -1, -2, i}, [][]float64{{5, 3, 1}}},
		{"linspace", aten.Linspace, []any{0, 1, 5, f}, [][]float64{{0, 0.25, 0.5, 0.75, 1}}},
		{"linspace ints", aten.Linspace, []any{0, 10, 4, i}, [][]float64{{0, 3, 6, 10}}},
		{"linspace of one", aten.Linspace, []any{3, 10, 1, f}, [][]float64{{3}}},

		{"gather", aten.Gather, []any{six, 1, of(i, []int{2, 2}, 2, 0, 1, 1)}, [][]float64{{3, 1, 5, 5}}},
		{"gather scalar", aten.Gather, []any{of(f, []int{}, 7), 0, of(i, []int{2}, 0, 0)}, [][]float64{{7, 7}}},
		{"scatter last wins", aten.Scatter, []any{of(f, []int{3}, 1, 2, 3), 0, of(ir.I32, []int{2}, 1, 1), of(f, []int{3}, 8, 9, 10)}, [][]float64{{1, 9, 3}}},
		{"scatter mean", aten.ScatterReduce, []any{of(i, []int{2}, -1, 5), 0, of(i, []int{2}, 0, 0), of(i, []int{2}, -2, -2), "mean"}, [][]float64{{-2, 5}}},
		{"scatter without self", aten.ScatterReduce, []any{of(f, []int{2}, 100, 5), 0, of(i, []int{2}, 0, 0), of(f, []int{2}, 2, 3), "prod", false}, [][]float64{{6, 5}}},
		{"scatter amin", aten.ScatterReduce, []any{of(f, []int{2}, 1, 5), 0, of(i, []int{2}, 1, 1), of(f, []int{2}, 2, 3), "amin"}, [][]float64{{1, 2}}},
		{"index_select", aten.IndexSelect, []any{six, 1, of(i, []int{2}, 2, 2)}, [][]float64{{3, 3, 6, 6}}},
		{"index_add", aten.IndexAdd, []any{six, 0, of(i, []int{2}, 1, 1), of(f, d2, 1, 1, 1, 2, 2, 2)}, [][]float64{{1, 2, 3, 7, 8, 9}}},

		{"sort", aten.Sort, []any{of(f, []int{5}, nan, 2, 1, nan, 1)}, [][]float64{{1, 1, 2, nan, nan}, {2, 4, 1, 0, 3}}},
		{"sort down", aten.Sort, []any{of(f, []int{5}, nan, 2, 1, nan, 1), 0, true}, [][]float64{{nan, nan, 2, 1, 1}, {0, 3, 1, 2, 4}}},
		{"sort columns", aten.Sort, []any{of(i, []int{2, 2}, 3, 1, 2, 4), 0}, [][]float64{{2, 1, 3, 4}, {1, 0, 0, 1}}},

		{"dot", aten.MatMul, []any{of(f, []int{2}, 1, 2), of(f, []int{2}, 3, 4)}, [][]float64{{11}}},
		{"matvec", aten.MatMul, []any{six, of(f, []int{3}, 1, 0, -1)}, [][]float64{{-2, -2}}},
		{"vecmat", aten.MatMul, []any{of(i, []int{2}, 1, -1), of(i, d2, 1, 2, 3, 4, 5, 6)}, [][]float64{{-3, -3, -3}}},
		{"matmul batch", aten.MatMul, []any{of(f, []int{2, 1, 1, 2}, 1, 2, 3, 4), of(f, []int{2, 2, 1}, 1, 1, 1, 2)}, [][]float64{{3, 5, 7, 11}}},
		{"matmul of none", aten.MatMul, []any{of(f, []int{2, 0}), of(f, []int{0, 1})}, [][]float64{{0, 0}}},

		{"conv1d", aten.Convolution, []any{of(f, []int{1, 1, 4}, 1, 2, 3, 4), of(f, []int{1, 1, 2}, 1, 10), of(f, []int{1}, 0.5), []int{1}, []int{1}, []int{2}, false, []int{0}, 1},
			[][]float64{{20.5, 31.5, 42.5, 3.5}}},
		{"conv groups", aten.Convolution, []any{of(f, []int{1, 2, 1, 1}, 2, 3), of(f, []int{2, 1, 1, 1}, 5, 7), nil, []int{1, 1}, []int{0, 0}, []int{1, 1}, false, []int{0, 0}, 2},
			[][]float64{{10, 21}}},
		{"conv transposed", aten.Convolution, []any{of(f, []int{1, 1, 2}, 1, 2), of(f, []int{1, 2, 2}, 1, 10, 3, 4), nil, []int{2}, []int{0}, []int{1}, true, []int{1}, 1},
			[][]float64{{1, 10, 2, 20, 0, 3, 4, 6, 8, 0}}},
		{"max pool", aten.MaxPoolWithIndices, []any{of(f, []int{1, 2, 3}, 1, 5, 5, 4, nan, nan), []int{2, 2}, []int{1, 1}, []int{0, 0}, []int{1, 1}, false},
			[][]float64{{nan, nan}, {4, 5}}},
		{"max pool padding", aten.MaxPoolWithIndices, []any{of(ir.I8, []int{3}, -128, -128, 7), []int{2}, []int{2}, []int{1}, []int{1}, false},
			[][]float64{{-128, 7}, {0, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, data := program(t, c.op, c.args)
			got, err := Eval(p, data)
			if err != nil {
				t.Fatal(err)
			}
			for o, want := range c.want {
				out := tensor{p.Shape(p.Returns[o]), got[o]}
				if out.numel() != len(want) {
					t.Fatalf("output %d is %v, want %d elements", o, out.shape, len(want))
				}
				for k, w := range want {
					if v := out.float(k); !same(v, w) {
						t.Errorf("output %d, element %d is %v, want %v", o, k, v, w)
					}
				}
			}
		})
	}
}

func TestCat(t *testing.T) {
	params := []graph.Param{{Name: "x", Shape: ir.MakeShape(ir.C64, 2, 1)}, {Name: "y", Shape: ir.MakeShape(ir.C64, 2, 2)}}
	in := graph.NewParams(params)
	var b ir.Builder
	p := graph.FromValues("cat", in, []ir.Value{b.Cat(in, 1)})
	x, y := []byte("AAAAAAAABBBBBBBB"), []byte("aaaaaaaabbbbbbbbccccccccdddddddd")
	got, err := Eval(p, [][]byte{x, y})
	if want := "AAAAAAAAaaaaaaaabbbbbbbbBBBBBBBBccccccccdddddddd"; err != nil || string(got[0]) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestRandom(t *testing.T) {
	const n = 4000
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F32, ir.F64} {
		for _, c := range []struct {
			op            ir.Op
			lo, hi        float64
			mean, meanSq  float64
			tolerance     float64
			strictlyBelow bool
		}{
			{aten.Uniform, 0, 1, 0.5, 1.0 / 3, 0.03, true},
			{aten.Normal, -9, 9, 0, 1, 0.1, true},
		} {
			p, data := program(t, c.op, []any{of(ir.I64, nil, 42), []int{n}, 3, d})
			out, err := Eval(p, data)
			if err != nil {
				t.Fatal(err)
			}
			x := tensor{ir.MakeShape(d, n), out[0]}
			var mean, sq float64
			for i := range n {
				v := x.float(i)
				if v < c.lo || v >= c.hi {
					t.Errorf("%v %v: element %d is %v", c.op, d, i, v)
				}
				mean += v / n
				sq += v * v / n
			}
			if math.Abs(mean-c.mean) > c.tolerance || math.Abs(sq-c.meanSq) > c.tolerance {
				t.Errorf("%v %v: mean %v and mean square %v, want about %v and %v", c.op, d, mean, sq, c.mean, c.meanSq)
			}
		}
	}
	p, data := program(t, aten.Randint, []any{of(ir.I64, nil, 42), -2, 3, []int{n}, 3, ir.I8})
	out, err := Eval(p, data)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int64]int{}
	x := tensor{ir.MakeShape(ir.I8, n), out[0]}
	for i := range n {
		counts[x.int(i)]++
	}
	for v := int64(-2); v < 3; v++ {
		if math.Abs(float64(counts[v])-n/5) > n/25 {
			t.Errorf("%d of %d are %d", counts[v], n, v)
		}
	}
	if len(counts) != 5 {
		t.Errorf("values %v, want 5 of them", counts)
	}
}

func TestEveryPrimitiveHasAKernel(t *testing.T) {
	b := New()
	for _, sp := range ir.Ops() {
		if b.Supports(sp.Op) == sp.Composite() {
			t.Errorf("%s: supported %v, composite %v", sp.Name, b.Supports(sp.Op), sp.Composite())
		}
	}
}

func TestRunTimeErrors(t *testing.T) {
	i1 := []int{1}
	for _, c := range []struct {
		name string
		op   ir.Op
		args []any
		want error
		text string
	}{
		{"index", aten.IndexSelect, []any{of(ir.F32, i1, 0), 0, of(ir.I64, i1, 5)}, ir.ErrIndex, "index 5 is out of bounds for dimension 0 of size 1"},
		{"negative", aten.Gather, []any{of(ir.F32, i1, 0), 0, of(ir.I64, i1, -1)}, ir.ErrIndex, "index -1"},
		{"division", aten.FloorDivide, []any{of(ir.I64, i1, 1), of(ir.I64, i1, 0)}, ir.ErrZeroDivision, "division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, data := program(t, c.op, c.args)
			_, err := Eval(p, data)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			for _, s := range []string{c.op.String() + " (at", "ref_test.go:", c.text} {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	good := func() *graph.Program {
		p, _ := program(t, aten.Neg, []any{of(ir.F32, []int{2}, 1, 2)})
		return p
	}
	relabel := func(p *graph.Program, op ir.Op) { p.Instrs[0].Op = op }
	for name, c := range map[string]struct {
		spoil func(p *graph.Program)
		want  error
	}{
		"fine":           {func(p *graph.Program) {}, nil},
		"output shape":   {func(p *graph.Program) { p.Shapes[1] = ir.MakeShape(ir.F32, 3) }, ir.ErrShape},
		"parameter":      {func(p *graph.Program) { p.Shapes[0] = ir.MakeShape(ir.F32, 3) }, ir.ErrShape},
		"use before def": {func(p *graph.Program) { p.Instrs[0].Args[0] = 1 }, ir.ErrArg},
		"result dtype":   {func(p *graph.Program) { relabel(p, aten.IsNaN) }, ir.ErrShape},
		"return":         {func(p *graph.Program) { p.Returns[0] = 7 }, ir.ErrArg},
		"outputs":        {func(p *graph.Program) { p.Instrs[0].NOut = 2 }, ir.ErrArg},
		"no op":          {func(p *graph.Program) { relabel(p, 0) }, backend.ErrUnsupported},
		"dtype":          {func(p *graph.Program) { relabel(p, aten.BitwiseNot) }, ir.ErrDType},
	} {
		p := good()
		c.spoil(p)
		_, err := New().Compile(context.Background(), p, Device, backend.CompileOptions{})
		if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

func TestModel(t *testing.T) {
	hostmem.CheckLeaks(t)
	ctx := context.Background()
	b := New()
	p, data := program(t, aten.Neg, []any{of(ir.F32, []int{2}, 1, 2)})
	p.Returns = append(p.Returns, 0) // a parameter is returned, too
	m, err := b.Compile(ctx, p, Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := b.Upload(ctx, p.Params[0].Shape, Device, data[0])
	if err != nil {
		t.Fatal(err)
	}
	outs, err := m.Run(ctx, []backend.Buffer{in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(outs) != 2 || outs[1] == in || outs[0].Device() != Device {
		t.Fatalf("outputs %v: want two of their own on %v", outs, Device)
	}
	for i, want := range []float64{-1, 1} {
		raw, err := outs[i].Bytes(ctx)
		if got := (tensor{outs[i].Shape(), raw}).float(0); err != nil || got != want {
			t.Errorf("output %d begins with %v, %v; want %v", i, got, err, want)
		}
	}
	if got := b.BytesInUse(Device); got != 24 {
		t.Errorf("%d bytes in use, want 24", got)
	}
	for _, o := range outs {
		o.Release()
	}
	if s := m.Spec(); len(s.Inputs) != 1 || len(s.Outputs) != 2 || s.Outputs[1].Name != "out1" {
		t.Errorf("spec %+v", s)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Run(done, []backend.Buffer{in}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v from a run that is cancelled", err)
	}
	if _, err := m.Run(ctx, nil, nil); !errors.Is(err, ir.ErrArg) {
		t.Errorf("error %v from a run without inputs", err)
	}
	wrong, err := b.Upload(ctx, ir.MakeShape(ir.F32, 1), Device, make([]byte, 4))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(ctx, []backend.Buffer{wrong}, nil); !errors.Is(err, ir.ErrShape) {
		t.Errorf("error %v from a run with the wrong shape", err)
	}
	wrong.Release()
	in.Release()
	if got := b.BytesInUse(Device); got != 0 {
		t.Errorf("%d bytes in use at the end", got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Upload(ctx, p.Params[0].Shape, ir.Device{}, data[0]); !errors.Is(err, ir.ErrDevice) {
		t.Errorf("error %v from an upload elsewhere", err)
	}
	if got, err := backend.For(Device); err != nil || got.DeviceType() != DeviceType {
		t.Errorf("the registry has %v, %v", got, err)
	}
}
