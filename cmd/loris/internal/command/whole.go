package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
)

// whole lists the commands that only the whole program has: what they import takes longer to compile
// than all that the others need.
var whole = []struct{ name, short string }{
	{"run", "Run a program in text form or an imported model"},
	{"inspect", "Tell what a model takes, gives and holds, without running it"},
	{"aoti", "Inspect, run, measure and write packages of compiled models"},
	{"serve", "Serve models over REST and gRPC"},
	{"top", "Show what a running program computes"},
}

// Absent returns a command for each that the program lacks, which runs the whole program.
func Absent() []*cobra.Command {
	var all []*cobra.Command
	for _, w := range whole {
		all = append(all, &cobra.Command{
			Use: w.name, Short: w.short, DisableFlagParsing: true,
			RunE: func(c *cobra.Command, _ []string) error { return BecomeWhole(c, w.name) },
		})
	}
	return all
}

const wholePackage = "github.com/loris-ml/loris/cmd/loris/full"

// BecomeWhole runs the whole program with the arguments of this process, in its place. It is built of
// the clone in whose folder the process runs; one that was built to stay runs no code of a folder.
func BecomeWhole(c *cobra.Command, what string) error {
	if version, _ := Version(); version != "(devel)" || !inClone(c.Context()) {
		return fmt.Errorf("this program was built without %s: go build -o loris ./cmd/loris/full in a clone makes one with all commands, as releases are", what)
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	line := []string{tool, "run"}
	if tags := Setting("-tags"); tags != "" {
		line = append(line, "-tags="+tags)
	}
	return become(c, append(append(line, wholePackage), os.Args[1:]...))
}

// inClone reports whether the folder is one of the source's.
func inClone(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "list", wholePackage).Output()
	return err == nil && strings.TrimSpace(string(out)) == wholePackage
}
