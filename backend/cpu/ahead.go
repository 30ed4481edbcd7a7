package cpu

import (
	"fmt"

	emit "github.com/loris-ml/loris/backend/internal/ahead"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/ahead"
)

// PlanAhead optimises a Program and plans it for another process, for package aoti/export: with the
// kernels and the memory plan of this backend, as data. It works on any platform and makes nothing
// executable. seed is the number of the parameter that stands for the random generator of the process
// that runs the plan, or -1. What has neither machine code nor a function of libtorch is named in one error that
// wraps backend.ErrUnsupported.
func PlanAhead(p *graph.Program, seed int) (*ahead.Plan, *graph.Program, error) {
	p, _ = graph.Optimize(p, graph.Options{Supports: emit.Supports, Takes: emit.Takes})
	out, err := emit.Plan(p, seed)
	if err != nil {
		return nil, nil, fmt.Errorf("program %q: %w", p.Name, err)
	}
	return out, p, nil
}
