package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/dist"
)

// launchFlags are the flags of `launch`.
type launchFlags struct {
	ranks, restarts int
	trace           string
}

func newLaunch() *cobra.Command {
	f := &launchFlags{}
	c := &cobra.Command{
		Use:   "launch -n RANKS -- PROGRAM [ARG]...",
		Short: "Start a program several times on this machine, as ranks that compute together",
		Long: `Start PROGRAM as ranks that find each other by dist.Init, without mpiexec: rank 0
brings them together. They need MPICH or Intel MPI (LORIS_MPI, or a libmpi that the
system finds); scripts/mpi-env.sh brings MPICH. When a rank fails the others have ten
seconds to save what they have; with --restarts all are started again if one of them
ended with status 75.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	c.Flags().IntVarP(&f.ranks, "ranks", "n", 2, "number of ranks")
	c.Flags().StringVar(&f.trace, "trace", "", "have dist write a trace of all ranks to this `file`, for https://ui.perfetto.dev; by other launchers: LORIS_TRACE")
	c.Flags().IntVar(&f.restarts, "restarts", 0, "how often to start the ranks again")
	return c
}

func (f *launchFlags) run(c *cobra.Command, args []string) error {
	if f.ranks < 1 || f.restarts < 0 {
		return command.Usagef("%d ranks and %d restarts: there is at least one rank", f.ranks, f.restarts)
	}
	for try := 0; ; try++ {
		restart, err := f.once(c, args)
		if err == nil || !restart || try >= f.restarts || c.Context().Err() != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "%v: start %d of %d again\n", err, try+1, f.restarts)
	}
}

// grace is how long ranks have after the first has failed.
const grace = 10 * time.Second

// once starts the ranks and waits for all of them. It returns the error of the first that failed, and
// whether one asks to be started again.
func (f *launchFlags) once(c *cobra.Command, args []string) (restart bool, err error) {
	port, err := freePort()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	token := rand.Text()
	env := os.Environ()
	if f.trace != "" {
		path, err := filepath.Abs(f.trace)
		if err != nil {
			return false, err
		}
		env = append(env, "LORIS_TRACE="+path)
	}
	out, errOut := &lockedWriter{to: c.OutOrStdout()}, &lockedWriter{to: c.ErrOrStderr()}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r := range f.ranks {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = grace
		cmd.Stdout, cmd.Stderr = out, errOut
		cmd.Env = append(slices.Clone(env), "RANK="+strconv.Itoa(r), "LOCAL_RANK="+strconv.Itoa(r), "WORLD_SIZE="+strconv.Itoa(f.ranks),
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port, "LORIS_PORT="+port, "LORIS_TOKEN="+token)
		wg.Go(func() {
			failed := cmd.Run()
			if failed == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			var exit *exec.ExitError
			restart = restart || errors.As(failed, &exit) && exit.ExitCode() == dist.ExitRestart
			if err == nil {
				err = fmt.Errorf("rank %d of %s: %w", r, filepath.Base(args[0]), failed)
				time.AfterFunc(grace, cancel)
			}
		})
	}
	wg.Wait()
	return restart, err
}

// lockedWriter is a writer for several ranks.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// freePort returns a port of this machine that nobody listens at.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}
