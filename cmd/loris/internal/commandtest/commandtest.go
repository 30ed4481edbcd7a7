// Package commandtest runs command lines in tests.
package commandtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

// Invoke runs one command line.
func Invoke(t *testing.T, root *cobra.Command, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = command.Main(t.Context(), root, args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// Succeed runs one command line that must not fail.
func Succeed(t *testing.T, root *cobra.Command, args ...string) string {
	t.Helper()
	code, out, errOut := Invoke(t, root, "", args...)
	if code != command.ExitOK {
		t.Fatalf("loris %s: exit code %d: %s", strings.Join(args, " "), code, errOut)
	}
	return out
}

// Write makes a file in a fresh folder.
func Write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Affine is a program in text form.
const Affine = `program @affine {
  %x = parameter "x" : f32[2,3]
  %s = parameter "scale" : f32[3]
  %0 = mul(%x, %s) : f32[2,3]
  %1 = sum(%0, dim=[1])
  %2 = gt(%1, 10.0)
  return %0, %2
}
`
