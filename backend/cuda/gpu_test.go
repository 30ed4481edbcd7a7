//go:build cuda && linux && cgo

package cuda

import (
	"os"
	"testing"

	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/longtest"
)

// TestOnGPU runs the suites on the first GPU of the machine; PyTorch's samples are
// for the long suites.
func TestOnGPU(t *testing.T) {
	if os.Getenv("LORIS_TEST_GPU") == "" {
		t.Skip("LORIS_TEST_GPU is not set: bench/gpu/run.sh does so, on a machine with a GPU")
	}
	b := New(Libraries{})
	t.Cleanup(func() { check(t, b.Close()) })
	t.Run("Suite", func(t *testing.T) { backendtest.Run(t, b, gpu(0)) })
	if longtest.Enabled() {
		t.Run("OpInfo", func(t *testing.T) { backendtest.RunOpInfo(t, b, gpu(0)) })
	}
}
