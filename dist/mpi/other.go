//go:build !linux || !(amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/loris-ml/loris/dist"
)

func init() {
	dist.Register(func(context.Context, dist.Launch) (dist.Engine, error) {
		return nil, fmt.Errorf("MPI on %s/%s: %w: Linux on amd64 or arm64 is needed", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
	})
}
