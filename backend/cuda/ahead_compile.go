//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/ahead"
)

// compileAhead compiles entries for architectures, several at a time.
func compileAhead(ctx context.Context, kernels []*emit.Launch, archs []architecture) ([]ahead.GPUKernel, error) {
	out := make([]ahead.GPUKernel, len(kernels))
	if len(kernels) == 0 {
		return out, nil
	}
	c, err := driver.OpenCompiler("", 0)
	if err != nil {
		return nil, err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, l := range kernels {
		out[i] = ahead.GPUKernel{Entry: l.Entry, Images: make([][]byte, len(archs))}
		for k, a := range archs {
			work.Go(func() (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				image := &out[i].Images[k]
				if a.ptx {
					*image, err = c.PTX(l.Source(), l.Entry+".cu", a.name, compilerOptions)
				} else {
					*image, _, err = c.Compile(l.Source(), l.Entry+".cu", a.name, compilerOptions)
				}
				if err != nil {
					return fmt.Errorf("kernel %s for %s: %w", l.Entry, a.name, err)
				}
				return nil
			})
		}
	}
	return out, work.Wait()
}
