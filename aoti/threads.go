package aoti

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/openmp"
)

// setThreads bounds the threads of parallel loops, those of libraries and those
// of the kernels that they call.
func setThreads(n int) {
	kernels.SetThreads(n)
	openmp.SetLimit(n)
}
