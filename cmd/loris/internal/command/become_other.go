//go:build !unix

package command

import (
	"os/exec"

	"github.com/spf13/cobra"
)

// become runs a program to its end.
func become(c *cobra.Command, line []string) error {
	run := exec.CommandContext(c.Context(), line[0], line[1:]...)
	run.Stdin, run.Stdout, run.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	return run.Run()
}
