//go:build linux && (cgo || mpi)

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the command where a test has started this binary again.
func TestMain(m *testing.M) {
	if os.Getenv("LORIS_TEST_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestRestart kills a rank of a training with -9. The others save; started again by the launcher, or by hand on
// another number of ranks, training ends with the weights of one that nobody disturbed.
func TestRestart(t *testing.T) {
	mpich := os.Getenv("LORIS_TEST_MPICH")
	if mpich == "" {
		t.Skip(`there is no MPI for tests: eval "$(scripts/mpi-env.sh)" brings one`)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// launch trains in a folder; where kill is set it kills the last rank after the second epoch.
	launch := func(out string, ranks int, kill bool, flags ...string) (stderr string, err error) {
		args := append([]string{"launch", "-n", fmt.Sprint(ranks)}, flags...)
		args = append(args, "--", self, "train", "digits", "--dist", "--auto-resume", "--json", "--hidden", "16", "--batch", "200", "--epochs", "10", "--out", filepath.Join(dir, out))
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), "LORIS_TEST_COMMAND=1", "LORIS_MPI="+filepath.Join(mpich, "lib", "libmpi_abi.so.1"))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		lines, err := cmd.StdoutPipe()
		if err != nil {
			return "", err
		}
		if err := cmd.Start(); err != nil {
			return "", err
		}
		late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		for s := bufio.NewScanner(lines); s.Scan(); {
			if kill && strings.Contains(s.Text(), `"epoch":2`) {
				kill = false
				if err := killRank(cmd.Process.Pid, ranks-1); err != nil {
					t.Error(err)
				}
			}
		}
		err = cmd.Wait()
		return errs.String(), err
	}
	weights := func(out string) string {
		b, err := os.ReadFile(filepath.Join(dir, out, "digits.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(b))
	}
	if stderr, err := launch("whole", 1, false); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	want := weights("whole")
	stderr, err := launch("again", 4, true, "--restarts", "2")
	if err != nil || !strings.Contains(stderr, "rank 3 has died") || !strings.Contains(stderr, "saved ") || !strings.Contains(stderr, "start 1 of 2 again") {
		t.Errorf("%v\n%s", err, stderr)
	}
	if got := weights("again"); got != want {
		t.Errorf("started again by the launcher: other weights\n%s", stderr)
	}
	if stderr, err = launch("fewer", 4, true); err == nil || !strings.Contains(stderr, "saved ") {
		t.Errorf("%v\n%s", err, stderr)
	}
	if stderr, err = launch("fewer", 2, false); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if got := weights("fewer"); got != want {
		t.Errorf("gone on with 2 ranks of 4: other weights")
	}
}

// killRank kills a rank that a launcher has started.
func killRank(launcher, rank int) error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, fmt.Appendf(nil, "\x00RANK=%d\x00", rank)) {
			continue // not ours, or gone
		}
		stat, err := os.ReadFile(filepath.Join(d, "stat"))
		if err != nil {
			continue
		}
		var pid, parent int
		var name, state string
		if _, err := fmt.Sscan(string(stat), &pid, &name, &state, &parent); err == nil && parent == launcher {
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("rank %d of launcher %d is not there", rank, launcher)
}
