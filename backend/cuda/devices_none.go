//go:build !(cuda && linux && cgo)

package cuda

import (
	"fmt"
	"runtime"
)

// Devices returns an error that is ErrNotBuilt and says how to build with CUDA.
func Devices() ([]Info, error) {
	switch {
	case runtime.GOOS != "linux":
		return nil, fmt.Errorf("cuda: %w: it is for linux", ErrNotBuilt)
	case tagged:
		return nil, fmt.Errorf("cuda: %w: -tags cuda needs cgo (CGO_ENABLED=1 and a C compiler)", ErrNotBuilt)
	}
	return nil, fmt.Errorf("cuda: %w: build it with -tags cuda", ErrNotBuilt)
}
