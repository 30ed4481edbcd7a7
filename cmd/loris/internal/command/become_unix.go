//go:build unix

package command

import (
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// become runs a program in place of this one, so that signals and the exit code are its own.
func become(_ *cobra.Command, line []string) error {
	return syscall.Exec(line[0], line, os.Environ())
}
