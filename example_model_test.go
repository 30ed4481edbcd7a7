package loris_test

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/graph"
)

// double is a model compiled apart from the program that uses it.
func double(ctx context.Context) (*aoti.Container, error) {
	p, err := graph.Parse(`program @double {
  %x = parameter "x" : f32[2]
  %0 = add(%x, %x)
  return %0
}`)
	if err != nil {
		return nil, err
	}
	program := &aoti.Program{Run: p, Device: loris.CPU}
	return aoti.NewContainer(ctx, program.Compile, aoti.ContainerConfig{Instances: 1})
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
