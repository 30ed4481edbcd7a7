// Package cli has the commands of loris that need nothing but the library. Each command is a file that
// reads flags, calls the library and prints; nothing here computes.
package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

// Rest is what only the whole program has. Where something is missing, commands run the whole program in
// place of this one.
type Rest struct {
	Commands []*cobra.Command // all of command.Whole
	// Publish publishes the report of a session at an address for loris top, until stop is called. It
	// returns the address: addr may leave the port to the system.
	Publish func(addr string, report func() loris.Report) (at string, stop func() error, err error)
	// Package writes the model of a file of digits' weights as a package that PyTorch runs.
	Package func(ctx context.Context, weights, path string) error
}

// NewRoot returns the command line of loris.
func NewRoot(rest Rest) *cobra.Command {
	root := &cobra.Command{Use: "loris", Short: "Run, inspect and train with Loris"}
	root.AddCommand(newDump(), newOps(), newDevices(), newVersion(), newTrain(rest), newPredict(), newCache(), newLaunch(), newPlan())
	if rest.Commands == nil {
		rest.Commands = command.Absent()
	}
	root.AddCommand(rest.Commands...)
	return root
}
