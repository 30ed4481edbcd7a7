//go:build unix

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestMain is a program without the commands of the whole one where a test has started it again.
func TestMain(m *testing.M) {
	if os.Getenv("LORIS_TEST_COMMAND") != "" {
		root := &cobra.Command{Use: "loris"}
		root.AddCommand(Absent()...)
		Run(root)
	}
	os.Exit(m.Run())
}

// A command that is absent becomes the whole program of the clone, with all arguments, and elsewhere
// says how to get it.
func TestAbsentCommands(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // its go says what it was asked for
	script := "#!/bin/sh\nif [ $1 = list ]; then echo \"$LORIS_TEST_LISTED\"; else echo \"$@\"; exit 7; fi\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	invoke := func(listed string) (code int, text string) {
		c := exec.Command(self, "serve", "m.pt2", "--http", ":0", "--help")
		c.Env = append(os.Environ(), "LORIS_TEST_COMMAND=1", "LORIS_TEST_LISTED="+listed, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, _ := c.CombinedOutput() // the code says how it ended
		return c.ProcessState.ExitCode(), strings.TrimSpace(string(out))
	}
	if code, text := invoke(wholePackage); code != 7 || !strings.HasPrefix(text, "run ") || !strings.HasSuffix(text, wholePackage+" serve m.pt2 --http :0 --help") {
		t.Errorf("in a clone: exit code %d: %s", code, text)
	}
	if code, text := invoke(""); code != ExitError || !strings.Contains(text, "built without serve: go build") || strings.Contains(text, "\n") {
		t.Errorf("elsewhere: exit code %d: %s", code, text)
	}
}
