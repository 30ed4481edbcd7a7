// Command loris trains the digits example and shows what the library has. What needs more of the
// library, and takes longer to compile, is in package full, which this program runs for it.
package main

import (
	"github.com/loris-ml/loris/cmd/loris/internal/cli"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

func main() { command.Run(cli.NewRoot(cli.Rest{})) }
