package steps

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/plan/plantest"
	"github.com/loris-ml/loris/internal/graph"
)

// TestPlanGoldens shows the memory plans of Programs for a GPU whose library computes all products.
func TestPlanGoldens(t *testing.T) {
	plantest.Run(t, "../../../internal/plan/testdata", ".cuda.txt", func(p *graph.Program, aliases []backend.Alias) (fmt.Stringer, error) {
		l, err := lower(p, Options{Limits: limits, Aliases: aliases, Product: func(*Product) (int, any, bool) { return 0, nil, true }})
		if err != nil {
			return nil, err
		}
		return l.plan(), nil
	})
}
