package loris_test

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/graph"
)

// double is a model compiled apart from the program that uses it.
func double(ctx context.Context) (*container.Container, error) {
	p, err := graph.Parse(`program @double {
  %x = parameter "x" : f32[2]
  %0 = add(%x, %x)
  return %0
}`)
	if err != nil {
		return nil, err
	}
	program := &container.Program{Run: p, Device: loris.CPU}
	return container.New(ctx, program.Compile, container.Config{Instances: 1})
}

// A model is one op of a lazy program.
func ExampleCall() {
	ctx := context.Background()
	model, err := double(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := loris.FromSlice([]float32{1, 2})
	y := loris.Call(model, x.Add(1))[0].Mul(10)
	fmt.Println(y.Float32s(ctx))
	// Output: [40 60] <nil>
}

// A model takes the place of a graph that a program records anyway.
func ExampleSession_Plug() {
	ctx := context.Background()
	model, err := double(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := loris.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	x := s.With().FromSlice([]float32{1, 2})
	twice := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{in[0].Mul(2)} }
	if _, err := s.Plug(ctx, loris.GraphOf(twice, x), model); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(twice(x)[0].Float32s(ctx))
	r := s.Report()
	fmt.Println(r.Compiles, "compiles,", r.Plugged[0].Runs, "run of the model")
	// Output:
	// [2 4] <nil>
	// 0 compiles, 1 run of the model
}
