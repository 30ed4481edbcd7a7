package failures

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/backend/cpu"
)

func TestEveryFailure(t *testing.T) {
	in, err := Install(cpu.Device)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(context.Background(), in)
	for _, r := range rows {
		t.Logf("%s: %v: %d failures, %d kept, %d lost", r.Program, r.Kind, r.Failures, r.Kept, r.Lost)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Failures == 0 {
			t.Errorf("%s: %v: nothing failed", r.Program, r.Kind)
		}
	}
}
