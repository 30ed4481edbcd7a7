package executor_test

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// TestCompilingIsReported looks at a session while it compiles.
func TestCompilingIsReported(t *testing.T) {
	f, s := fakeSession(t)
	var during report.Report
	f.compiling = func(context.Context, *graph.Program, ir.Device) error {
		during = s.Report()
		return nil
	}
	sum(t, s)
	mark(t, s)
	if len(during.Compiling) != 1 {
		t.Fatalf("while compiling: %+v", during.Compiling)
	}
	if c := during.Compiling[0]; c.Nodes != 1 || c.Done != 1 || c.Total != 3 || c.Time <= 0 || c.Device.Type != fakeType {
		t.Errorf("%+v", c)
	}
	if after := s.Report(); len(after.Compiling) != 0 || after.Compiles != 1 {
		t.Errorf("afterwards: %+v, %d compiles", after.Compiling, after.Compiles)
	}
}
