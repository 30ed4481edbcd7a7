package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{}, exitUsage, "nothing to serve"},
		{[]string{"a.pt2", "--log-level", "loud"}, exitUsage, "--log-level"},
		{[]string{"a.pt2", "--mode", "never"}, exitError, "mode"},
		{[]string{"a.pt2", "--http", "127.0.0.1:0"}, exitError, "a.pt2"},
		{[]string{"a.pt2", "--allow-digest", "12"}, exitError, "sha256"},
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append([]string{"serve"}, c.args...), nil, &out, &errOut)
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
	good := "../../../../aoti/testdata/mlp.pt2"
	code := Main(t.Context(), []string{"serve", "--verify", "m=" + good, "--models", dir}, nil, &out, &errOut)
	if code != exitError || !strings.Contains(errOut.String(), "of 2 models cannot be served") || !strings.Contains(out.String(), damaged+": ") {
		t.Errorf("%d %s%s", code, out.String(), errOut.String())
	}
}
