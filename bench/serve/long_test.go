package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// TestModes runs what needs a server in a process of its own, for seconds. Each mode fails by itself if
// an answer is wrong or lost, or the server holds more as time goes on.
func TestModes(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("it builds the command and serves for seconds; LORIS_LONG=1 runs it")
	}
	loris := filepath.Join(t.TempDir(), "loris")
	if out, err := exec.Command("go", "build", "-o", loris, "github.com/loris-ml/loris/cmd/loris/full").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const models = "../../aoti/testdata"
	for name, mode := range map[string]struct {
		run  func(context.Context, []string) error
		args []string
	}{
		"chaos": {chaos, []string{"--time", "10s"}},
		"idle":  {idle, []string{"--models", models, "--connections", "500", "--time", "500ms"}},
		"soak":  {soak, []string{"--models", models, "--time", "4s", "--steps", "4"}},
		"start": {start, []string{"--models", models, "--rounds", "2"}},
	} {
		if err := mode.run(t.Context(), append(mode.args, "--loris", loris)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
