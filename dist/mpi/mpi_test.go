//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// installation is an MPI that the tests run on.
type installation struct{ name, dir string }

// installations returns those that scripts/mpi-env.sh names.
func installations(t *testing.T) []installation {
	t.Helper()
	var out []installation
	for _, x := range []installation{
		{"MPICH", os.Getenv("LORIS_TEST_MPICH")}, {"Open MPI", os.Getenv("LORIS_TEST_OPENMPI")}, {"Intel MPI", os.Getenv("LORIS_TEST_INTELMPI")},
	} {
		if x.dir != "" {
			out = append(out, x)
		}
	}
	if out == nil {
		t.Skip(`there is no MPI for tests: eval "$(scripts/mpi-env.sh)" brings two`)
	}
	return out
}

// mpiexec runs a program on n ranks, for a minute at most, and returns what it printed.
func (x installation) mpiexec(n int, program string, env ...string) (stdout, stderr string, err error) {
	args := []string{"-n", strconv.Itoa(n)}
	if x.name == "Open MPI" {
		args = append(args, "--oversubscribe", "--bind-to", "none")
	}
	if program == "kill" || program == "panic" || program == "exit" {
		// Launchers end the other ranks as soon as one has ended: these are to say what they see before.
		args = append(args, "sh", "-c", `"$0"; status=$?; sleep 1; exit $status`)
	}
	if x.name == "Intel MPI" {
		env = append([]string{"I_MPI_ROOT=" + x.dir, "I_MPI_PIN=0"}, env...)
	}
	cmd := command(filepath.Join(x.dir, "bin", "mpiexec"), program, append(env, "PATH="+filepath.Join(x.dir, "bin")+":"+os.Getenv("PATH")))
	cmd.Args = append(append(cmd.Args, args...), os.Args[0])
	return output(cmd)
}

// command is a rank, or the mpiexec of ranks.
func command(path, program string, env []string) *exec.Cmd {
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "LORIS_TEST_PROGRAM="+program, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func output(cmd *exec.Cmd) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	if !late.Stop() {
		err = errors.Join(errors.New("it took more than a minute"), err)
	}
	return out.String(), errs.String(), err
}

// TestPrograms runs what must succeed on two ranks of each MPI.
func TestPrograms(t *testing.T) {
	for _, x := range installations(t) {
		for _, name := range []string{"sums", "lanes", "pipeline", "storm", "signals", "forms"} {
			t.Run(x.name+"/"+name, func(t *testing.T) {
				if stdout, stderr, err := x.mpiexec(2, name); err != nil {
					t.Errorf("%v\n%s%s", err, stdout, stderr)
				}
			})
		}
	}
}

// abis are the libraries of an installation, one for each ABI.
var abis = map[string][]string{
	"MPICH": {"libmpi_abi.so.1", "libmpi.so.12"}, "Open MPI": {"libmpi.so.40"}, "Intel MPI": {"libmpi_abi.so.1", "libmpi.so.12"},
}

// TestCollectives runs every collective on every dtype, and on long tensors, on three ranks of each MPI:
// through memory that they share, and by the library alone as ranks of several machines do.
func TestCollectives(t *testing.T) {
	for _, x := range installations(t) {
		for _, far := range []string{"", "1"} {
			for _, name := range []string{"collectives", "sums"} {
				if stdout, stderr, err := x.mpiexec(3, name, "LORIS_TEST_FAR="+far); err != nil {
					t.Errorf("%s, %s, far %q: %v\n%s%.2000s", x.name, name, far, err, stdout, stderr)
				}
			}
		}
	}
}

// TestABIs opens each library of an installation.
func TestABIs(t *testing.T) {
	for _, x := range installations(t) {
		for _, lib := range abis[x.name] {
			t.Run(x.name+"/"+lib, func(t *testing.T) {
				if stdout, stderr, err := x.mpiexec(2, "sums", "LORIS_MPI="+filepath.Join(x.dir, "lib", lib)); err != nil {
					t.Errorf("%v\n%s%s", err, stdout, stderr)
				}
			})
		}
	}
}

func TestSpinFor(t *testing.T) {
	for _, x := range []struct {
		ranks, processors int
		want              time.Duration
	}{{1, 1, spinAlone}, {2, 2, spinAlone}, {2, 64, spinAlone}, {3, 2, spinShared}, {2, 1, spinShared}} {
		if got := spinFor(x.ranks, x.processors); got != x.want {
			t.Errorf("%d ranks on %d processors ask for %v, want %v", x.ranks, x.processors, got, x.want)
		}
	}
}

// TestHasRoom: where /dev/shm is too small ranks do without shared memory, in place of a SIGBUS.
func TestHasRoom(t *testing.T) {
	for _, x := range []struct {
		dir   string
		bytes uint64
		want  bool
	}{{"/dev/shm", 0, true}, {"/dev/shm", 1 << 62, false}, {"/nonexistent", 1 << 62, true}} {
		if got := hasRoom(x.dir, x.bytes); got != x.want {
			t.Errorf("%d bytes in %s: %v, want %v", x.bytes, x.dir, got, x.want)
		}
	}
}

// TestNothingIsLeft kills a rank with -9: no file of the job's stays in /dev/shm.
func TestNothingIsLeft(t *testing.T) {
	for _, x := range installations(t) {
		stdout, stderr, err := x.mpiexec(2, "leftovers")
		if err == nil || strings.Count(stdout, "shares nothing that has a name") != 2 {
			t.Errorf("%s: %v\n%s%s", x.name, err, stdout, stderr)
		}
	}
}

// TestLibrarySums runs the sums of whole numbers, which no order changes, by the library's all-reduce.
func TestLibrarySums(t *testing.T) {
	for _, x := range installations(t) {
		if stdout, stderr, err := x.mpiexec(2, "sums", "LORIS_TEST_LIBRARY=1"); err != nil {
			t.Errorf("%s: %v\n%s%s", x.name, err, stdout, stderr)
		}
	}
}

// TestSameBits trains on 1, 2 and 4 ranks of each MPI.
func TestSameBits(t *testing.T) {
	want := ""
	for _, x := range installations(t) {
		for _, n := range []int{1, 2, 4, -2} { // -2 share no memory
			far := ""
			if n < 0 {
				n, far = -n, "1"
			}
			stdout, stderr, err := x.mpiexec(n, "bits", "LORIS_TEST_FAR="+far)
			weights := regexp.MustCompile(`weights [0-9a-f]{64}`).FindString(stdout)
			if err != nil || weights == "" {
				t.Fatalf("%s, %d ranks: %v\n%s%s", x.name, n, err, stdout, stderr)
			}
			if want == "" {
				want = weights
			}
			if weights != want {
				t.Errorf("%s, %d ranks: %s, before %s", x.name, n, weights, want)
			}
			t.Logf("%-9s %d ranks: %.24s", x.name, n, weights)
		}
	}
}

// TestFaults has a rank with a fault. The others must say which, at which op and line, within the limit. With
// -v it prints the table of docs/distributed.md.
func TestFaults(t *testing.T) {
	mpis := installations(t)
	var mu sync.Mutex
	says, times := map[string]string{}, map[string]string{}
	t.Cleanup(func() {
		table := "| fault of rank 1 | what rank 0 says | after |\n|---|---|---|\n"
		for _, name := range slices.Sorted(maps.Keys(says)) {
			table += fmt.Sprintf("| %s | %s | %s |\n", name, says[name], strings.TrimPrefix(times[name], "; "))
		}
		t.Log("\n" + table)
	})
	for _, x := range mpis {
		for _, f := range []struct {
			program string
			want    []string
		}{
			{"kill", []string{"rank 0", "rank 1 has died", "all_reduce", "programs_test.go:"}},
			{"panic", []string{"rank 0", "rank 1 has died", "all_reduce", "programs_test.go:"}},
			{"exit", []string{"rank 0", "rank 1 has died", "all_reduce", "programs_test.go:"}},
			{"stop", []string{"rank 0", "rank 1 has said nothing", "all_reduce", "programs_test.go:"}},
			{"sleep", []string{"rank 0", "not all ranks came within 2s", "rank 1 is at transfer", "all_reduce", "programs_test.go:"}},
			{"shapes", []string{"disagree", "all_reduce(f32[4], sum)", "all_reduce(f32[5], sum)", "programs_test.go:"}},
			{"order", []string{"disagree", "broadcast(f32[4], root 0)", "all_reduce(f32[4], sum)", "programs_test.go:"}},
			{"one", []string{"disagree", "rank 0 has close", "rank 1 has all_reduce(f32[4], sum)", "programs_test.go:"}},
			{"full", []string{"rank 0", "rank 1 could not write its part; the checkpoint from before stays", "it is whole"}},
		} {
			if x.name == "Intel MPI" && f.program == "stop" {
				continue // its mpiexec lets a rank that was stopped go on
			}
			t.Run(x.name+"/"+f.program, func(t *testing.T) {
				t.Parallel() // they wait most of the time
				stdout, stderr, err := x.mpiexec(2, f.program, "LORIS_TEST_LIMIT=2s", "LORIS_TEST_DIR="+t.TempDir())
				for _, want := range f.want {
					if !strings.Contains(stderr, want) {
						t.Errorf("nobody says %q: %v\n%s%s", want, err, stdout, stderr)
						break
					}
				}
				after := "at once" // there is no moment from which on it could be told
				begun, told := moment(stderr, "fault"), moment(stderr, "rank 0")
				if !begun.IsZero() && !told.IsZero() {
					after = told.Sub(begun).String()
				}
				mu.Lock()
				defer mu.Unlock()
				says[f.program] = said(stderr)
				times[f.program] += fmt.Sprintf("; %s %s", after, x.name)
			})
		}
	}
}

// said returns why rank 0 has given up.
func said(stderr string) string {
	for line := range strings.Lines(stderr) {
		_, text, ok := strings.Cut(strings.TrimSpace(line), "rank 0: ")
		if !ok {
			continue
		}
		if _, cause, ok := strings.Cut(text, "gave up"); ok {
			_, text, _ = strings.Cut(cause, "): ") // after the op and the line
		}
		return text[max(strings.Index(text, "dist: "), 0):]
	}
	return ""
}

// moment returns when the line was written that has a text.
func moment(text, what string) time.Time {
	for line := range strings.Lines(text) {
		at, rest, ok := strings.Cut(line, ": ")
		if ms, err := strconv.ParseInt(at, 10, 64); ok && err == nil && strings.Contains(rest, what) {
			return time.UnixMilli(ms)
		}
	}
	return time.Time{}
}

// TestOtherVersion opens another MPI than the launcher's: each process would be alone.
func TestOtherVersion(t *testing.T) {
	all := installations(t)
	if len(all) < 2 {
		t.Skip("there is one MPI only")
	}
	for i, lib := range []string{"libmpi.so.40", "libmpi_abi.so.1"} {
		t.Run(all[i].name, func(t *testing.T) {
			t.Parallel()
			_, stderr, err := all[i].mpiexec(2, "sums", "LORIS_TEST_LIMIT=10s", "LORIS_MPI="+filepath.Join(all[1-i].dir, "lib", lib))
			if err == nil || !strings.Contains(stderr, "it is not the library of the launcher; set LORIS_MPI") {
				t.Errorf("%v\n%s", err, stderr)
			}
		})
	}
}

// TestSlowRank has a rank that comes late, but within the limit: that is no error, however long the others
// hear nothing of collectives.
func TestSlowRank(t *testing.T) {
	for _, x := range installations(t) {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			if stdout, stderr, err := x.mpiexec(2, "slow", "LORIS_TEST_LIMIT=6s"); err != nil {
				t.Errorf("%v\n%s%s", err, stdout, stderr)
			}
		})
	}
}

// bare starts rank 0 of two without a launcher.
func bare(t *testing.T, env ...string) (stderr string, err error) {
	_, stderr, err = output(command(os.Args[0], "sums", append([]string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "LORIS_PORT=" + freePort(t), "LORIS_TOKEN=secret", "LORIS_TEST_LIMIT=2s"}, env...)))
	return stderr, err
}

// TestRankNeverStarts has rank 0 wait for a rank that does not come.
func TestRankNeverStarts(t *testing.T) {
	x := installations(t)[0]
	if x.name != "MPICH" {
		t.Skip("Open MPI starts under its own mpiexec only")
	}
	t.Parallel()
	stderr, err := bare(t, "LORIS_MPI="+filepath.Join(x.dir, "lib", "libmpi_abi.so.1"))
	for _, want := range []string{"rank 0 of 2", "not all ranks came within 2s", "rank 1 has not come to rank 0"} {
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("nobody says %q: %v\n%s", want, err, stderr)
		}
	}
}

// TestNoMPI starts a rank where no MPI is.
func TestNoMPI(t *testing.T) {
	t.Parallel()
	stderr, err := bare(t, "PATH=/nonexistent", "LORIS_MPI=", "LD_LIBRARY_PATH=")
	if strings.Contains(stderr, "not all ranks came") {
		t.Skip("the system has an MPI")
	}
	if err == nil || !strings.Contains(stderr, "no MPI library was found; install MPICH or Open MPI") {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// TestBareProcesses starts ranks without mpiexec, as torchrun does: rank 0 brings them together. A
// stranger without the token is none of them.
func TestBareProcesses(t *testing.T) {
	x := installations(t)[0]
	if x.name != "MPICH" {
		t.Skip("Open MPI starts under its own mpiexec only")
	}
	port := freePort(t)
	const n = 2
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			cmd := command(os.Args[0], "sums", []string{"RANK=" + strconv.Itoa(r), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "LORIS_PORT=" + port, "LORIS_TOKEN=secret", "LORIS_MPI=" + filepath.Join(x.dir, "lib", "libmpi_abi.so.1")})
			if stdout, stderr, err := output(cmd); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w\n%s%s", r, err, stdout, stderr)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// TestOtherLibrary opens a library that is not the launcher's, and none.
func TestOtherLibrary(t *testing.T) {
	x := installations(t)[0]
	_, stderr, err := x.mpiexec(2, "sums", "LORIS_MPI=/none/libmpi.so")
	if err == nil || !strings.Contains(stderr, "LORIS_MPI") || !strings.Contains(stderr, "/none/libmpi.so") {
		t.Errorf("no library: %v\n%s", err, stderr)
	}
}

// TestPMIRefusesStrangers talks to the server without the token, and then with it.
func TestPMIRefusesStrangers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servePMI(ctx, ln, 2, "secret")
	ask := func(token string) string {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, greeting(token, 1), "cmd=put key=a value=1\ncmd=get key=a\ncmd=get key=b\n")
		buf := make([]byte, 4096)
		n := 0
		for strings.Count(string(buf[:n]), "\n") < 3 {
			k, err := conn.Read(buf[n:])
			n += k
			if err != nil {
				break
			}
		}
		return string(buf[:n])
	}
	if got := ask("guess"); got != "" {
		t.Errorf("a stranger was told %q", got)
	}
	if got, want := ask("secret"), "cmd=put_result rc=0 msg=success\ncmd=get_result rc=0 msg=success value=1\ncmd=get_result rc=-1 msg=key_b_not_found value=unknown\n"; got != want {
		t.Errorf("the answers are %q, want %q", got, want)
	}
}

// TestStrangersGetLittle connects to what rank 0 serves and says too much before a token, or nothing.
func TestStrangersGetLittle(t *testing.T) {
	h := &hub{token: "secret", peers: make([]*peer, 2)}
	p := &pmi{token: "secret", size: 2, came: make([]bool, 2)}
	for name, serve := range map[string]func(net.Conn){"control": h.serve, "PMI": p.serve} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan int, 2)
		go accept(ctx, ln, 100*time.Millisecond, func(conn net.Conn) {
			c := &countedConn{Conn: conn}
			serve(c)
			read <- c.n
		})
		for what, text := range map[string]string{"much": `{"Token":"` + strings.Repeat("a", 1<<20), "nothing": ""} {
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.WriteString(conn, text)
			select {
			case n := <-read:
				if n > 2*maxLine {
					t.Errorf("%s reads %d bytes of a stranger who says %s", name, n, what)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s waits for a stranger who says %s", name, what)
			}
		}
	}
}

// countedConn counts the bytes that are read of a connection.
type countedConn struct {
	net.Conn
	n int
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n += n
	return n, err
}
