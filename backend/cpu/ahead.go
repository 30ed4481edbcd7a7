package cpu

import (
	"fmt"

	emit "github.com/loris-ml/loris/backend/internal/ahead"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/graph"
)

// PlanAhead optimises a Program and plans it for another process, for package aoti/export: with the
// kernels and the memory plan of this backend, as data. Given one Program recorded for several sizes,
// the largest first, it makes plans that differ in numbers alone. It works on any platform and makes
// nothing executable. seed is the number of the parameter that stands for the random generator of the
// process that runs the plan, or -1, and constant says which parameters are the same in all runs. What has neither machine code nor a function of libtorch, and what
// is planned differently for different sizes, is named in one error that wraps backend.ErrUnsupported.
func PlanAhead(sizes []*graph.Program, seed int, constant func(param int) bool) ([]*ahead.Plan, []*graph.Program, error) {
	optimised := make([]*graph.Program, len(sizes))
	for i, p := range sizes {
		optimised[i], _ = graph.Optimize(p, graph.Options{Supports: emit.Supports, Takes: emit.Takes})
	}
	plans, err := emit.Plans(optimised, seed, constant)
	if err != nil {
		return nil, nil, fmt.Errorf("program %q: %w", sizes[0].Name, err)
	}
	return plans, optimised, nil
}
