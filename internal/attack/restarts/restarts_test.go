//go:build linux

package restarts

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/longtest"
)

const childArgs = "LORIS_RESTARTS_CHILD"

func TestRun(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("it takes several starts of each kind: scripts/long-tests.sh")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Seed: 1, Time: 15 * time.Second, Dir: t.TempDir(), Package: "../../../aoti/testdata/bounds.pt2",
		Command: func(ctx context.Context, c Child) *exec.Cmd {
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestChild$")
			cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(c.Strings(), "\n"))
			return cmd
		}}
	rows, err := Run(context.Background(), o)
	for _, r := range rows {
		t.Logf("%+v", r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestChild(t *testing.T) {
	args := os.Getenv(childArgs)
	if args == "" {
		t.Skip("it is the child of TestRun")
	}
	c, err := ParseChild(strings.Split(args, "\n"))
	if err == nil {
		err = c.Run(context.Background(), os.Stdout)
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // without a line of the test's on standard output
}

// What a process says is held against what was saved before.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		out  string
		good bool
	}{
		{"loaded 5\nbegun 9\nsaved 9\nend 0\n", true},
		{"loaded 7\nend 0\n", true}, // written, but not said to be
		{"loaded 4\nend 0\n", false},
		{"loaded 8\nend 0\n", false},
		{"loaded 5\nbegun 1", true}, // killed
		{"loaded five\n", false},
		{"panic\n", false},
	} {
		p := &parent{saved: 5, begun: 7}
		r, err := parse(c.out)
		if err == nil {
			err = p.compare(r)
		}
		if (err == nil) != c.good {
			t.Errorf("%q: %v", c.out, err)
		}
	}
}
