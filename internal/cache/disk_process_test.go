package cache

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// The tests here run this test binary again as other processes on the same
// directory: diskChildRole says what such a process does.
const (
	diskChildRole = "LORIS_TEST_DISK_ROLE"
	diskChildDir  = "LORIS_TEST_DISK_DIR"
	diskChildSeed = "LORIS_TEST_DISK_SEED"
)

func diskChild(t *testing.T, role, dir string, seed int) (*exec.Cmd, *bytes.Buffer) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestDiskChild$", "-test.v")
	cmd.Env = append(os.Environ(), diskChildRole+"="+role, diskChildDir+"="+dir, diskChildSeed+"="+strconv.Itoa(seed))
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func TestDiskChild(t *testing.T) {
	role := os.Getenv(diskChildRole)
	if role == "" {
		t.Skip("runs only as a child of the tests below")
	}
	d := openTestDisk(t, os.Getenv(diskChildDir), DiskOptions{MaxBytes: 2000})
	switch role {
	case "die":
		d.beforeRename = func(string) {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // the end comes meanwhile
		}
		mustPut(t, d, testKey(1), []byte("new"))
	case "work":
		seed, err := strconv.Atoi(os.Getenv(diskChildSeed))
		if err != nil {
			t.Fatal(err)
		}
		exercise(t, d, seed, 60)
	}
}

// Killed between writing and renaming, a process leaves the old entry, or none,
// and a temporary file that goes in time.
func TestDiskKilledBeforeRename(t *testing.T) {
	for _, had := range []bool{false, true} {
		t.Run("had="+strconv.FormatBool(had), func(t *testing.T) {
			d := openTestDisk(t, t.TempDir(), DiskOptions{})
			if had {
				mustPut(t, d, testKey(1), []byte("old"))
			}
			cmd, out := diskChild(t, "die", d.Dir(), 0)
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.Exited() {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			_, temps, err := d.scan()
			if err != nil || len(temps) != 1 {
				t.Fatalf("temporary files %v, %v", temps, err)
			}
			if had {
				mustGet(t, d, testKey(1), []byte("old"))
			} else {
				mustMiss(t, d, testKey(1))
			}
			mustPut(t, d, testKey(1), []byte("newer"))
			mustGet(t, d, testKey(1), []byte("newer"))

			d.tempAge = 0
			mustPut(t, d, testKey(2), nil)
			if s := mustStat(t, d); s.Temps != 0 || s.Damaged != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestDiskManyProcesses(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 2000})
	type child struct {
		cmd *exec.Cmd
		out *bytes.Buffer
	}
	var children []child
	for seed := range 3 {
		cmd, out := diskChild(t, "work", d.Dir(), seed)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child{cmd, out})
	}
	exercise(t, d, 3, 60)
	for _, c := range children {
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, c.out)
		}
	}
	report, err := d.Verify(t.Context())
	if err != nil || len(report.Damaged) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if s := mustStat(t, d); s.Bytes > s.MaxBytes || s.Temps != 0 {
		t.Errorf("stats %+v", s)
	}
}
