package cuda

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// PlanAhead optimises a Program and plans it for another process, for package aoti/export: the steps of
// this backend as data, with images of their kernels for each of the architectures, such as "sm_90", which
// is machine code, and "compute_80", which is PTX for that and all later generations. It needs neither a
// driver nor a GPU, but NVRTC, and so a build with the tag cuda: else it is an error that is ErrNotBuilt,
// or ErrNoLibrary. What cannot be computed there is named in one error that wraps backend.ErrUnsupported;
// one that wraps ir.ErrArg is about architectures.
func PlanAhead(ctx context.Context, p *graph.Program, architectures []string) (*ahead.Plan, *graph.Program, error) {
	archs, err := sorted(architectures)
	if err != nil {
		return nil, nil, err
	}
	optimised, _ := graph.Optimize(p, graph.Options{Supports: steps.Supports})
	plan, kernels, err := steps.Ahead(optimised)
	if err == nil {
		plan.GPU, err = compileAhead(ctx, kernels, archs)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cuda: program %q: %w", p.Name, err)
	}
	return plan, optimised, nil
}

// architecture is what an image is for.
type architecture struct {
	name string
	ptx  bool
	n    int
}

var architectureName = regexp.MustCompile(`^(sm|compute)_([0-9]+)$`)

// leastArchitecture is that of the tensor cores that the kernels are written for.
const leastArchitecture = 80

// sorted reads the names of architectures. The best come first: a driver takes the first that it loads.
func sorted(names []string) (all []architecture, err error) {
	for _, name := range names {
		m := architectureName.FindStringSubmatch(name)
		if m == nil {
			return nil, fmt.Errorf(`cuda: %w: %q is no architecture such as "sm_90" or "compute_80"`, ir.ErrArg, name)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || n < leastArchitecture {
			return nil, fmt.Errorf("cuda: %w: there are no kernels for %q, only from %d on", ir.ErrArg, name, leastArchitecture)
		}
		all = append(all, architecture{name, m[1] == "compute", n})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cuda: %w: no architecture is given", ir.ErrArg)
	}
	slices.SortFunc(all, func(a, b architecture) int {
		if a.ptx != b.ptx {
			return map[bool]int{false: -1, true: 1}[a.ptx]
		}
		return cmp.Compare(b.n, a.n)
	})
	return all, nil
}
