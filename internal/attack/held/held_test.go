package held

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestBack(t *testing.T) {
	before := Now()
	if err := Back(before); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Now().Files == 0 {
		t.Skip("the system does not tell")
	}
	if err := back(before, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "open files") {
		t.Errorf("a file is open, and back returns %v", err)
	}
}

// The runtime opens files for its first timer, which are no leak of what happens afterwards.
func TestFirstTimer(t *testing.T) {
	if os.Getenv("LORIS_HELD_CHILD") == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestFirstTimer$", "-test.timeout=0") // a timeout is a timer
		cmd.Env = append(os.Environ(), "LORIS_HELD_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	before := Now()
	time.Sleep(time.Millisecond)
	if after := Now(); after.Files != before.Files {
		t.Fatalf("%d open files, %d before the first timer", after.Files, before.Files)
	}
}
