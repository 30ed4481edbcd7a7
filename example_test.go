package loris_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loris-ml/loris"
)

// Operations record; reading an element computes what it depends on.
func Example() {
	ctx := context.Background()
	x := loris.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	y := x.MatMul(x).Sum(loris.Dim(1))
	v, err := y.Float32s(ctx)
	fmt.Println(v, err)
	// Output: [17 37] <nil>
}

// A training loop: the graph is the same in every step, so it compiles once,
// also while the learning rate changes.
func Example_training() {
	ctx := context.Background()
	s, err := loris.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	m := s.With()
	x := m.FromSlice([]float32{0, 1, 2, 3}, 4, 1)
	y := m.FromSlice([]float32{1, 3, 5, 7}, 4, 1) // 2x + 1
	w := loris.NewVariable(m.FromSlice([]float32{0}, 1, 1))
	b := loris.NewVariable(m.FromSlice([]float32{0}))
	rate := 0.2
	for range 200 {
		loss := x.MatMul(w.Value()).Add(b.Value()).Sub(y).Square().Mean()
		g := loris.Grad(loss, w, b)
		w.Assign(w.Value().Sub(g[0].Mul(rate)))
		b.Assign(b.Value().Sub(g[1].Mul(rate)))
		rate *= 0.999
		if err := s.MarkStep(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	slope, _ := w.Value().Item(ctx)
	offset, _ := b.Value().Item(ctx)
	fmt.Printf("%.2f x + %.2f, %d compile for %d steps\n", slope, offset, s.Report().Compiles, s.Report().Steps)
	// Output: 2.00 x + 1.00, 1 compile for 200 steps
}

func ExampleCompile() {
	ctx := context.Background()
	recorded := 0
	norm := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		recorded++
		return []*loris.Tensor{in[0].Square().Sum().Sqrt()}
	})
	for _, x := range [][]float32{{3, 4}, {5, 12}, {8, 15}} {
		out, err := norm.Call(ctx, loris.FromSlice(x))
		if err != nil {
			fmt.Println(err)
			return
		}
		v, err := out[0].Item(ctx)
		fmt.Println(v, err)
	}
	fmt.Println("recorded", recorded, "times: the first trace compares two recordings")
	// Output:
	// 5 <nil>
	// 13 <nil>
	// 17 <nil>
	// recorded 2 times: the first trace compares two recordings
}

func ExampleGuard() {
	ctx := context.Background()
	double := true
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		if loris.Guard(func() bool { return double }) {
			return []*loris.Tensor{in[0].Mul(2)}
		}
		return []*loris.Tensor{in[0].Neg()}
	})
	for _, double = range []bool{true, false, true} {
		out, err := f.Call(ctx, loris.FromSlice([]float32{21}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].Item(ctx))
	}
	// Output:
	// 42 <nil>
	// -21 <nil>
	// 42 <nil>
}

func ExampleScalarFunc() {
	ctx := context.Background()
	steps := 0
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		loris.Default().OnCall(func() { steps++ }, func() { steps-- })
		return []*loris.Tensor{in[0].Mul(loris.ScalarFunc(func() float64 { return float64(steps) }))}
	})
	for range 3 {
		out, err := f.Call(ctx, loris.FromSlice([]float32{10}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].Item(ctx))
	}
	// Output:
	// 0 <nil>
	// 10 <nil>
	// 20 <nil>
}

func ExampleSession_Trace() {
	ctx := context.Background()
	var file bytes.Buffer // or os.Create("trace.json"), for https://ui.perfetto.dev
	stop, err := loris.Default().Trace(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(loris.Ones(2, 2).MatMul(loris.Ones(2, 2)).Sum().Item(ctx))
	fmt.Println(stop())
	fmt.Println(strings.Contains(file.String(), `"name":"matmul`))
	// Output:
	// 8 <nil>
	// <nil>
	// true
}

func ExampleTry() {
	err := loris.Try(func() {
		loris.Zeros(2, 3).MatMul(loris.Zeros(2, 3))
	})
	var op *loris.OpError
	if errors.As(err, &op) {
		fmt.Println(op.Op, op.Shapes, errors.Is(err, loris.ErrShape))
	}
	// Output: matmul [f32[2,3] f32[2,3]] true
}

func ExampleGrad() {
	ctx := context.Background()
	x := loris.FromSlice([]float32{1, 2, 3})
	first := loris.Grad(x.Mul(x).Mul(x).Sum(), x)[0]
	second := loris.Grad(first.Sum(), x)[0]
	fmt.Println(first.Float32s(ctx))
	fmt.Println(second.Float32s(ctx))
	// Output:
	// [3 12 27] <nil>
	// [6 12 18] <nil>
}

func ExampleWith() {
	double := loris.With(loris.As(loris.F64))
	fmt.Println(double.Zeros(2, 2).Shape(), double.Full(0.5, 3).Shape())
	// Output: f64[2,2] f64[3]
}

func ExampleTensor_Text() {
	x := loris.Arange(0, 6, 1).Reshape(2, 3)
	fmt.Println(x) // printing does not compute
	text, err := x.Text(context.Background())
	fmt.Println(text, err)
	// Output:
	// tensor(i64[2,3], cpu:0, pending reshape)
	// tensor([[0, 1, 2],
	//         [3, 4, 5]], i64[2,3], cpu:0) <nil>
}

func ExampleTensor_Div() {
	ctx := context.Background()
	x := loris.FromSlice([]int64{7, -7})
	fmt.Println(x.Div(2).Float32s(ctx))
	fmt.Println(x.Div(2, loris.RoundingMode("floor")).Int64s(ctx))
	fmt.Println(x.Div(2, loris.RoundingMode("trunc")).Int64s(ctx))
	// Output:
	// [3.5 -3.5] <nil>
	// [3 -4] <nil>
	// [3 -3] <nil>
}

func ExampleSession_Step() {
	ctx := context.Background()
	s, err := loris.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	count := loris.NewVariable(s.With().Zeros(1))
	var temp *loris.Tensor
	for range 3 {
		err := s.Step(ctx, func() error {
			temp = count.Value().Add(1)
			count.Assign(temp)
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(count.Value().Float32s(ctx))
	_, err = temp.Float32s(ctx)
	fmt.Println(errors.Is(err, loris.ErrDead))
	// Output:
	// [3] <nil>
	// true
}
