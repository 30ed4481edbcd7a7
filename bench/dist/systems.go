package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ranks is how many of them all jobs have, but for the one that does without.
const ranks = 2

//go:embed peer
var peers embed.FS

// system is a job to measure. It prints lines "result WHAT FORM MEDIAN LEAST", in microseconds.
type system struct {
	name   string
	column string
	run    func(ctx context.Context) (stdout string, err error)
}

// jobLimit is how long a job may take.
const jobLimit = 5 * time.Minute

// mpis are the libraries, by the variables of scripts/mpi-env.sh.
var mpis = []struct{ name, variable string }{{"MPICH", "LORIS_TEST_MPICH"}, {"Open MPI", "LORIS_TEST_OPENMPI"}}

// findSystems returns what there is to measure, and a function that removes what it has written. What is
// missing is told and left out.
func findSystems(ctx context.Context, s settings, log io.Writer) (found []system, done func(), err error) {
	dir, err := os.MkdirTemp("", "bench-dist")
	if err != nil {
		return nil, nil, err
	}
	done = func() { os.RemoveAll(dir) }
	if err := os.CopyFS(dir, peers); err != nil {
		done()
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		done()
		return nil, nil, err
	}
	add := func(name, column string, run func(ctx context.Context) (string, error)) {
		if strings.Contains(name, s.only) {
			found = append(found, system{name, column, run})
		}
	}
	for _, m := range mpis {
		home := os.Getenv(m.variable)
		if home == "" {
			fmt.Fprintf(log, "%s is left out: %s names no installation (scripts/mpi-env.sh brings one)\n", m.name, m.variable)
			continue
		}
		job := func(line ...string) func(ctx context.Context) (string, error) {
			return func(ctx context.Context) (string, error) { return mpiexec(ctx, m.name, home, line...) }
		}
		add("Loris all_reduce "+m.name, "Loris on "+m.name, job(self, "--rank"))
		add("Loris train "+m.name, "Loris on "+m.name, job(self, "--rank", "--train"))
		add("Loris library all_reduce "+m.name, "Loris on "+m.name+", library", job(self, "--rank", "--library"))
		add("Loris library train "+m.name, "Loris on "+m.name+", library", job(self, "--rank", "--train", "--library"))
		if program, err := compile(ctx, home, dir, m.variable); err != nil {
			fmt.Fprintf(log, "the C program on %s is left out: %v\n", m.name, err)
		} else {
			add("C all_reduce "+m.name, m.name+" in C", job(program))
		}
	}
	add("Loris train alone", "Loris, 1 rank, 2 threads", func(ctx context.Context) (string, error) {
		return output(command(ctx, self, "--rank", "--train", "--threads", strconv.Itoa(ranks)), nil)
	})
	for _, python := range s.pythons {
		for _, peer := range []struct{ module, name, arg string }{
			{"torch", "PyTorch, gloo", "all_reduce"}, {"torch", "PyTorch, gloo", "train"}, {"mlx", "MLX, ring", "all_reduce"}, {"jax", "JAX, gloo", "all_reduce"},
		} {
			if err := exec.CommandContext(ctx, python, "-c", "import "+peer.module).Run(); err != nil {
				continue
			}
			script := filepath.Join(dir, "peer", "in_"+peer.module+".py")
			add(peer.name+" "+peer.arg, peer.name, func(ctx context.Context) (string, error) {
				return bare(ctx, dir, python, script, peer.arg)
			})
		}
	}
	return found, done, nil
}

// compile builds the C program against an installation.
func compile(ctx context.Context, home, dir, name string) (program string, err error) {
	program = filepath.Join(dir, name)
	libraries, err := filepath.Glob(filepath.Join(home, "lib", "libmpi.so.[0-9]*"))
	if err != nil || len(libraries) == 0 {
		return "", fmt.Errorf("%s has no libmpi", home)
	}
	cmd := exec.CommandContext(ctx, "cc", "-O2", "-I"+filepath.Join(home, "include"), "-o", program, filepath.Join(dir, "peer", "allreduce.c"), libraries[0], "-Wl,-rpath,"+filepath.Join(home, "lib"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// mpiexec runs a program on all ranks under the launcher of an installation.
func mpiexec(ctx context.Context, name, home string, line ...string) (string, error) {
	args := []string{"-n", strconv.Itoa(ranks)}
	if name == "Open MPI" {
		args = append(args, "--bind-to", "none")
	}
	env := []string{"PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")}
	for _, v := range []string{"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"} {
		env = append(env, v+"=1")
	}
	return output(command(ctx, filepath.Join(home, "bin", "mpiexec"), append(args, line...)...), env)
}

func command(ctx context.Context, path string, args ...string) func(limited context.Context) *exec.Cmd {
	return func(limited context.Context) *exec.Cmd { return exec.CommandContext(limited, path, args...) }
}

// output runs a command within the limit and returns what it prints. Its ranks have one thread each, if
// nothing else tells them.
func output(start func(ctx context.Context) *exec.Cmd, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), jobLimit)
	defer cancel()
	cmd := start(ctx)
	cmd.Env = append(append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"), env...)
	cmd.WaitDelay = time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, last(errs.String()))
	}
	return string(out), nil
}

// last is the end of what a job said of its failure.
func last(text string) string { return text[max(0, len(text)-2000):] }

// bare starts the ranks of a Python program by the variables that torchrun would set, and for MLX by its
// file of hosts.
func bare(ctx context.Context, dir string, line ...string) (string, error) {
	ports, err := freePorts(ranks)
	if err != nil {
		return "", err
	}
	hosts := filepath.Join(dir, "hosts.json")
	var list []string
	for _, p := range ports {
		list = append(list, `["127.0.0.1:`+p+`"]`)
	}
	if err := os.WriteFile(hosts, []byte("["+strings.Join(list, ",")+"]"), 0o600); err != nil {
		return "", err
	}
	outs, errs := make([]string, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			outs[r], errs[r] = output(command(ctx, line[0], line[1:]...), []string{
				"RANK=" + strconv.Itoa(r), "WORLD_SIZE=" + strconv.Itoa(ranks), "LOCAL_RANK=" + strconv.Itoa(r),
				"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + ports[0], "MLX_RANK=" + strconv.Itoa(r), "MLX_HOSTFILE=" + hosts,
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	return outs[0], nil
}

// freePorts returns ports of this machine that nobody listens at.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close() // after the last, so that all differ
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			return nil, err
		}
		out = append(out, port)
	}
	return out, nil
}
