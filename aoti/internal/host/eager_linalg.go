//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// linalgKernels are the ops of linear algebra that have no results, and so no rows in ir.
var linalgKernels = map[string]eagerFunc{"_linalg_check_errors": checkErrors}

func checkErrors(v values) ([]*tensor, error) {
	_, info, err := argument[int64](v, "info")
	if err != nil {
		return nil, err
	}
	for i, x := range info.data {
		if x != 0 {
			return nil, fmt.Errorf("%s: %w: batch element %d: the matrix is singular or not positive-definite (column %d)",
				v.text("api_name", "linalg"), ir.ErrLinAlg, i, x)
		}
	}
	return nil, nil
}
