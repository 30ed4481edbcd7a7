package cpu

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/plan/plantest"
	"github.com/loris-ml/loris/internal/graph"
)

// TestPlanGoldens shows the memory plans of Programs, with kernels that any machine has.
func TestPlanGoldens(t *testing.T) {
	plantest.Run(t, "../internal/plan/testdata", ".cpu.txt", func(p *graph.Program, aliases []backend.Alias) (fmt.Stringer, error) {
		m, err := compile(NewDefined(), p, backend.CompileOptions{Aliases: aliases, Threads: 1})
		if err != nil {
			return nil, err
		}
		return m.plan, nil
	})
}
