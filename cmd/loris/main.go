// Command loris runs and inspects Loris programs and trains the digits example.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/loris-ml/loris/cmd/loris/internal/cli"
	"github.com/loris-ml/loris/dist"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	dist.Exit(code)
}
