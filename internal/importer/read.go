package importer

import (
	"context"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Read returns a tensor of what fill writes to the memory that it is given, in the layout of
// loris.Maker.FromBytes: weights of a file are read to where they stay. An error of fill is wrapped.
func Read(ctx context.Context, m loris.Maker, shape ir.Shape, fill func(data []byte) error) (*loris.Tensor, error) {
	t := new(executor.Tensor)
	if err := (*executor.Session)(m.Session()).UploadFrom(ctx, t, shape, m.Device(), fill); err != nil {
		return nil, err
	}
	return (*loris.Tensor)(t), nil
}
