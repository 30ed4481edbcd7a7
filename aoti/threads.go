package aoti

import (
	"github.com/loris-ml/loris/internal/openmp"
	"github.com/loris-ml/loris/internal/parallel"
)

// setThreads bounds the threads of parallel loops, those of libraries and those
// of the kernels that they call.
func setThreads(n int) {
	parallel.SetThreads(n)
	openmp.SetLimit(n)
}
