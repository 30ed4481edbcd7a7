package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

// TestLaunch starts shells as ranks: they get what dist.Init reads, one that fails is told, and those that
// ask for it are started again.
func TestLaunch(t *testing.T) {
	launch := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := command.Main(t.Context(), NewRoot(Rest{}), append([]string{"launch"}, args...), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	dir := t.TempDir()
	script := `echo "$WORLD_SIZE $MASTER_ADDR ${LORIS_TOKEN:+token} ${LORIS_PORT:+port}" > "$0/$RANK"`
	if code, out := launch("-n", "3", "--", "sh", "-c", script, dir); code != command.ExitOK {
		t.Fatalf("code %d: %s", code, out)
	}
	for _, r := range []string{"0", "1", "2"} {
		if got, err := os.ReadFile(filepath.Join(dir, r)); err != nil || string(got) != "3 127.0.0.1 token port\n" {
			t.Errorf("rank %s has %q, %v", r, got, err)
		}
	}
	if code, out := launch("-n", "2", "--", "sh", "-c", `exit $RANK`); code != command.ExitError || !strings.Contains(out, "rank 1 of sh: exit status 1") {
		t.Errorf("code %d: %s", code, out)
	}
	again := `test -e "$0/again" || { touch "$0/again"; exit 75; }`
	if code, out := launch("-n", "1", "--restarts", "1", "--", "sh", "-c", again, dir); code != command.ExitOK {
		t.Errorf("code %d: %s", code, out)
	}
}
