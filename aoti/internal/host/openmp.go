package host

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/openmp"
)

// Libraries run their own loops on the threads of the OpenMP runtime and call the
// kernels in between: those run on the same threads, which are awake then.
func init() {
	if openmp.Available {
		kernels.SetTeam(openmp.Run)
	}
}
