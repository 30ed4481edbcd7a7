package host

import (
	"github.com/loris-ml/loris/internal/openmp"
	"github.com/loris-ml/loris/internal/parallel"
)

// Libraries run their own loops on the threads of the OpenMP runtime and call the
// kernels in between: those run on the same threads, which are awake then.
func init() {
	if openmp.Available {
		parallel.SetThreadPool(openmp.Run)
	}
}
