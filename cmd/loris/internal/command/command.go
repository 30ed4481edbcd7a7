// Package command is what the programs of this module have in common: how a line is run, and how its
// end is told.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/escape"
)

// The exit codes.
const (
	ExitOK    = 0
	ExitError = 1 // the command failed
	ExitUsage = 2 // the command line is wrong

	ExitInterrupted = 130 // stopped by a signal, as shells count SIGINT
)

// Run runs the process's command line and ends the process.
func Run(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program
	code := Main(ctx, root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	dist.Exit(code)
}

// Main runs one command line and returns the exit code. Results go to out,
// errors and progress to errOut, an error as one line. Both are text, in which control
// characters that come from files are escaped.
func Main(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	safeOut, safeErr := escape.NewWriter(out), escape.NewWriter(errOut)
	code := executeLine(ctx, root, args, in, safeOut, safeErr)
	if errors.Join(safeOut.Flush(), safeErr.Flush()) != nil {
		return max(code, ExitError)
	}
	return code
}

func executeLine(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	started := false
	noteStart(root, &started)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, ErrInterrupted) {
		fmt.Fprintln(errOut, err)
		return ExitInterrupted
	}
	var usage *usageError
	if !started || errors.As(err, &usage) {
		printError(errOut, root, fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
		return ExitUsage
	}
	printError(errOut, root, err)
	if rank := (*dist.RankError)(nil); errors.As(err, &rank) {
		return dist.ExitRestart
	}
	return ExitError
}

// noteStart sets *started when a command's own code begins: an error before is
// one of the command line.
func noteStart(c *cobra.Command, started *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*started = true
			return run(c, args)
		}
	}
	for _, sub := range c.Commands() {
		noteStart(sub, started)
	}
}

// ErrInterrupted is the end of a command that a signal stopped and that left
// things in order.
var ErrInterrupted = errors.New("interrupted")

// usageError is a mistake in the command line that only the command can see.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// Usagef returns a mistake in the command line.
func Usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func printError(w io.Writer, root *cobra.Command, err error) {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	var source *sourceError
	if !errors.As(err, &source) {
		text = root.Name() + ": " + strings.TrimPrefix(text, "loris: ")
	}
	fmt.Fprintln(w, text)
}

// Version returns the version of the program, or (devel) for a build from a checkout, and the revision
// in the version control, or "".
func Version() (version, revision string) {
	version = "(devel)"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	return version, Setting("vcs.revision")
}

// Setting returns a setting of the build, or "".
func Setting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
