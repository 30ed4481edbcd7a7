// Package tool is what the commands that measure have in common.
package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// Main runs the command of a name with the process's arguments: parse reads them
// into S, run does the work until it is done or a signal asks it to end (SIGINT or
// SIGTERM), so that processes which it has started end with it. An error of either is
// printed, and ends the process with status 1. flag.ErrHelp, for which the flags have
// been printed already, is none.
func Main[S any](name string, parse func(args []string) (S, error), run func(context.Context, S) error) {
	s, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, s)
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Threads adds the flag --threads, a list of positive numbers with commas between
// them, to f. It sets *list, which has the default.
func Threads(f *flag.FlagSet, list *[]int) {
	*list = []int{1, 2}
	f.Func("threads", "numbers of threads (default 1,2)", func(text string) error {
		var all []int
		for t := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(t)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of threads", t)
			}
			all = append(all, n)
		}
		*list = all
		return nil
	})
}
