package host

import (
	"github.com/loris-ml/loris/aoti/host/openmp"
	"github.com/loris-ml/loris/internal/kernels"
)

// Libraries run their own loops on the threads of the OpenMP runtime and call the
// kernels in between: those run on the same threads, which are awake then.
func init() {
	if openmp.Available {
		kernels.SetTeam(openmp.Run)
	}
}
