package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{}, command.ExitUsage, "nothing to serve"},
		{[]string{"a.pt2", "--log-level", "loud"}, command.ExitUsage, "--log-level"},
		{[]string{"a.pt2", "--mode", "never"}, command.ExitError, "mode"},
		{[]string{"a.pt2", "--http", "127.0.0.1:0"}, command.ExitError, "a.pt2"},
		{[]string{"a.pt2", "--allow-digest", "12"}, command.ExitError, "sha256"},
	} {
		var out, errOut bytes.Buffer
		code := command.Main(t.Context(), newRoot(), append([]string{"serve"}, c.args...), nil, &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%v: %d %s", c.args, code, errOut.String())
		}
	}
}

// --verify tells of each model whether it can be served, and runs none.
func TestServeVerify(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "m", "1", "model.pt2")
	if err := os.MkdirAll(filepath.Dir(damaged), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	good := "../../../aoti/testdata/mlp.pt2"
	code := command.Main(t.Context(), newRoot(), []string{"serve", "--verify", "m=" + good, "--models", dir}, nil, &out, &errOut)
	if code != command.ExitError || !strings.Contains(errOut.String(), "of 2 models cannot be served") || !strings.Contains(out.String(), damaged+": ") {
		t.Errorf("%d %s%s", code, out.String(), errOut.String())
	}
}
