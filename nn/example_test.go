package nn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

func ExampleSequential() {
	m := nn.NewSequential(
		nn.NewConv2d(1, 8, 3, nn.Padding(1)),
		nn.NewBatchNorm2d(8),
		nn.Func(nn.ReLU),
		nn.MaxPool2d(2),
		nn.Func(nn.Flatten),
		nn.NewDropout(0.1),
		nn.NewLinear(8*4*4, 10),
	)
	fmt.Println(m.Forward(loris.Zeros(5, 1, 8, 8)).Shape())
	for name, v := range m.Params() {
		fmt.Println(name, v.Shape())
	}
	// Output:
	// f32[5,10]
	// 0.weight f32[8,1,3,3]
	// 0.bias f32[8]
	// 1.weight f32[8]
	// 1.bias f32[8]
	// 6.weight f32[10,128]
	// 6.bias f32[10]
}

func ExampleSave() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "linear.safetensors")
	if err := nn.Save(ctx, path, nn.NewLinear(3, 2), map[string]string{"epoch": "7"}); err != nil {
		fmt.Println(err)
		return
	}
	meta, err := nn.Load(ctx, path, nn.NewLinear(3, 2))
	fmt.Println(meta["epoch"], err)
	_, err = nn.Load(ctx, path, nn.NewLinear(3, 2, nn.NoBias()))
	fmt.Println(err != nil)
	// Output:
	// 7 <nil>
	// true
}

func ExampleRecurrent() {
	m := nn.NewGRU(8, 16, nn.Layers(2), nn.BatchFirst())
	x := loris.Randn(4, 10, 8) // sequences of 10 vectors
	y, states := m.Run(x)
	more, _ := m.Run(loris.Randn(4, 3, 8), states...) // goes on where the first ended
	fmt.Println(y.Dims(), states[0].Dims(), more.Dims())
	// Output:
	// [4 10 16] [2 4 16] [4 3 16]
}

func ExampleFreeze() {
	encoder, head := nn.NewLinear(4, 8), nn.NewLinear(8, 2)
	m := nn.NewSequential(encoder, nn.Func(nn.ReLU), head)
	nn.Freeze(encoder, nil)
	for name := range m.Params() { // what an optimiser gets
		fmt.Println(name)
	}
	// Output:
	// 2.weight
	// 2.bias
}

func ExampleQuantizeLinear() {
	ctx := context.Background()
	s, err := loris.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	layer := nn.NewLinear(4096, 4096, nn.With(s.With()))
	quantized := nn.QuantizeLinear(layer, 4, 128) // 4 bits, a scale for each 128 inputs of an output
	if err := s.MarkStep(ctx); err != nil {       // computes the layers, so that the first can go
		fmt.Println(err)
		return
	}
	y := quantized.Forward(s.With().Randn(1, 4096))
	fmt.Println(y.Shape(), quantized.Weight.Shape(), quantized.Scale.Shape())
	// Output: f32[1,4096] u8[4096,32,64] f32[4096,32]
}
