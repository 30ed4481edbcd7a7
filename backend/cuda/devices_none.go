//go:build !(cuda && linux && cgo)

package cuda

import (
	"context"
	"fmt"
	"runtime"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/ahead"
)

func init() { backend.RegisterAbsent(DeviceType, notBuilt()) }

// Devices returns an error that is ErrNotBuilt and says how to build with CUDA.
func Devices() ([]Info, error) { return nil, notBuilt() }

// Reopen returns an error that is ErrNotBuilt.
func Reopen(context.Context, int) error { return notBuilt() }

func compileAhead(context.Context, []*emit.Launch, []architecture) ([]ahead.GPUKernel, error) {
	return nil, notBuilt()
}

func notBuilt() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("cuda: %w: it is for linux", ErrNotBuilt)
	case tagged:
		return fmt.Errorf("cuda: %w: -tags cuda needs cgo (CGO_ENABLED=1 and a C compiler)", ErrNotBuilt)
	}
	return fmt.Errorf("cuda: %w: build it with -tags cuda", ErrNotBuilt)
}
