// Command full is loris with all commands: it runs, inspects, trains and serves. Releases have it under
// the name loris.
package main

import (
	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/cli"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

func main() { command.Run(newRoot()) }

func newRoot() *cobra.Command { return cli.NewRoot(newRest()) }

func newRest() cli.Rest {
	return cli.Rest{
		Commands: []*cobra.Command{newRun(), newInspectModel(), newAOTI(), newServe(), newTop()},
		Publish:  serveReport,
		Package:  packageDigits,
	}
}
