// Package cli is the command line of loris. Each command is a file that reads
// flags, calls the library and prints; nothing here computes.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/ref" // registers the device
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/escape"
	"github.com/loris-ml/loris/ir"
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1 // the command failed
	exitUsage = 2 // the command line is wrong

	exitInterrupted = 130 // stopped by a signal, as shells count SIGINT
)

// Main runs one command line and returns the exit code. Results go to out,
// errors and progress to errOut, an error as one line. Both are text, in which control
// characters that come from files are escaped.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	safeOut, safeErr := escape.NewWriter(out), escape.NewWriter(errOut)
	code := executeLine(ctx, args, in, safeOut, safeErr)
	if errors.Join(safeOut.Flush(), safeErr.Flush()) != nil {
		return max(code, exitError)
	}
	return code
}

func executeLine(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	started := false
	noteStart(root, &started)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errInterrupted) {
		fmt.Fprintln(errOut, err)
		return exitInterrupted
	}
	var usage *usageError
	if !started || errors.As(err, &usage) {
		printError(errOut, fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
		return exitUsage
	}
	printError(errOut, err)
	if rank := (*dist.RankError)(nil); errors.As(err, &rank) {
		return dist.ExitRestart
	}
	return exitError
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "loris",
		Short:         "Run, inspect and train with Loris",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newInspectModel(), newDump(), newOps(), newDevices(), newVersion(), newTrain(), newPredict(), newAOTI(), newServe(), newCache(), newLaunch(), newPlan(), newTop())
	return root
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

// errInterrupted is the end of a command that a signal stopped and that left
// things in order.
var errInterrupted = errors.New("interrupted")

// usageError is a mistake in the command line that only the command can see.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// sourceError is a mistake in a program's text; it stands alone on its line, so
// that editors find the place.
type sourceError struct {
	path string
	err  *graph.ParseError
}

func (e *sourceError) Error() string { return e.path + ":" + e.err.Error() }

func (e *sourceError) Unwrap() error { return e.err }

func printError(w io.Writer, err error) {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	var source *sourceError
	if !errors.As(err, &source) {
		text = "loris: " + strings.TrimPrefix(text, "loris: ")
	}
	fmt.Fprintln(w, text)
}

// deviceFlag adds --device.
func deviceFlag(c *cobra.Command, device *string) {
	c.Flags().StringVar(device, "device", "cpu", "device to compute on, such as cpu or ref")
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc("device", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, b := range backend.All() {
			names = append(names, b.DeviceType().String())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// parseDevice returns a device that can be used and its backend.
func parseDevice(name string) (ir.Device, backend.Backend, error) {
	d, err := ir.ParseDevice(name)
	if err != nil {
		return d, nil, err
	}
	b, err := backend.For(d)
	return d, b, err
}

// printJSON writes v indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
