package failures

import (
	"context"
	"errors"
	"log"
	"os"
	"testing"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/attack/failures/filecalls"
	"github.com/loris-ml/loris/internal/sanitizer"
)

func TestMain(m *testing.M) {
	if err := filecalls.Prepare(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

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

func TestEveryFileFailure(t *testing.T) {
	if sanitizer.Race {
		t.Skip("calls of the race detector would fail, too")
	}
	in, err := filecalls.Install()
	if errors.Is(err, filecalls.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows, err := RunFiles(context.Background(), in, os.DirFS("../../.."))
	for _, r := range rows {
		t.Logf("%+v", r)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Failures == 0 {
			t.Errorf("%s: nothing failed", r.Program)
		}
	}
}
