package ref

import (
	"context"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/modelcall"
)

func init() {
	kernels[aten.CallModel] = callModel
}

func callModel(c *call) {
	convert := func(ts []tensor) []modelcall.Tensor {
		out := make([]modelcall.Tensor, len(ts))
		for i, t := range ts {
			out[i] = modelcall.Tensor{Shape: t.shape, Data: t.data}
		}
		return out
	}
	if err := modelcall.Run(context.Background(), c.Int("model"), convert(c.in), convert(c.out)); err != nil {
		panic(err)
	}
}
