//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// Supports reports whether the backend has a kernel for an op.
func (*Backend) Supports(ir.Op) bool { return false }

// Compile opens the device, so that what is wrong with it is said first, and
// returns an error that is backend.ErrUnsupported: no op has a kernel yet.
func (b *Backend) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := b.of(d); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("cuda: program %q: %w: no op has a kernel", p.Name, backend.ErrUnsupported)
}
