package hostile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/sanitizer"
)

func targets(t *testing.T) []Target {
	t.Helper()
	all, err := Targets(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Whole files are read, so that what is refused is refused for its damage.
func TestSeedsAreAccepted(t *testing.T) {
	for _, target := range targets(t) {
		w, err := newWorkspace(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, seed := range target.Seeds {
			if o, why := target.try(w, seed); o != accepted {
				t.Errorf("%s: seed %d: %v: %s %v", target.Name, i, o, why, target.read(w, seed))
			}
		}
	}
}

// Each reader withstands some inputs; the command does more.
func TestReaders(t *testing.T) {
	for _, target := range targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			w, err := newWorkspace(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			inputs := uint64(60)
			if sanitizer.Race {
				inputs = 8
			}
			for n := range inputs {
				if _, why := target.try(w, target.Input(0, n)); why != "" {
					t.Fatalf("input %d: %s", n, why)
				}
			}
		})
	}
}

func TestMutations(t *testing.T) {
	seed := []byte(strings.Repeat("abc 12345 {x}", 40))
	for _, m := range mutations {
		changed := false
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			got := m.apply(r, bytes.Clone(seed), []byte("other"))
			changed = changed || !bytes.Equal(got, seed)
		}
		if !changed {
			t.Errorf("%q changes nothing", m.name)
		}
	}
	for n := range uint64(300) {
		if got := Mutate(rand.New(rand.NewPCG(0, n)), seed, seed); len(got) > maxInput {
			t.Fatalf("%d bytes", len(got))
		}
	}
}

// A process that ends, one that hangs and one that takes too much are each counted once, and the
// inputs after them are read.
func TestDrive(t *testing.T) {
	target := Target{Name: "test", Seeds: [][]byte{[]byte("seed")}, Mutate: Mutate}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	c, err := target.Drive(context.Background(), Options{Time: time.Minute, Count: 20, Report: &report, Limit: time.Second,
		Command: func(ctx context.Context, _ string, a Args) *exec.Cmd {
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestDriveWorker$")
			cmd.Env = append(os.Environ(), "HOSTILE_TEST_WORKER="+strings.Join(a.Strings(), " "))
			return cmd
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{Inputs: 20, Accepted: 15, Crashes: 2, Hangs: 1, Greedy: 1, Wrong: 1}
	if c != want || !strings.Contains(report.String(), "input 3 of seed 0 ended the process") {
		t.Errorf("got %+v, want %+v\n%s", c, want, report.String())
	}
}

func TestDriveWorker(t *testing.T) {
	text := os.Getenv("HOSTILE_TEST_WORKER")
	if text == "" {
		t.Skip("it is the child of TestDrive")
	}
	var a Args
	args := strings.Fields(text)
	for i := 0; i+1 < len(args); i += 2 {
		switch args[i] {
		case "-from":
			fmt.Sscan(args[i+1], &a.From)
		case "-count":
			fmt.Sscan(args[i+1], &a.Count)
		case "-dir":
			a.Dir = args[i+1]
		}
	}
	n := a.From
	var hold [][]byte
	target := Target{Name: "test", Seeds: [][]byte{[]byte("seed")}, Mutate: Mutate, read: func(*workspace, []byte) error {
		n++
		switch n - 1 {
		case 3:
			os.Exit(3)
		case 5:
			panic("five")
		case 8:
			hold = append(hold, make([]byte, 100<<20))
		case 10:
			for {
				n++
			}
		case 11:
			return wrong{os.ErrInvalid}
		}
		return nil
	}}
	if err := target.Work(a.Dir, os.NewFile(3, "progress"), os.Stdout, 0, a.From, a.Count, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_ = hold
}
