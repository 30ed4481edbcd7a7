//go:build linux && cgo

package openmp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/openmp"
)

var names = regexp.MustCompile(`\b(GOMP|omp)_`)

// build compiles the tests with OpenMP and this runtime's names: the assembler
// text is changed on the way.
func build(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	asm := filepath.Join(t.TempDir(), "omp.s")
	if out, err := exec.Command("gcc", "-S", "-O2", "-fPIC", "-fopenmp", "-o", asm, "testdata/omp.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(asm)
	if err != nil {
		t.Fatal(err)
	}
	text = names.ReplaceAllFunc(text, func(m []byte) []byte {
		if m[0] == 'G' {
			return []byte("LOMP_")
		}
		return []byte("lmp_")
	})
	if err := os.WriteFile(asm, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return ctest.Build(t, asm)
}

var tests = []string{"threads", "loops", "reduction", "barriers", "shares", "ordered", "critical", "parallel_for"}

func TestConstructs(t *testing.T) {
	lib := ctest.Open(t, build(t))
	for _, limit := range []int{0, 1, 2, 16} {
		openmp.SetLimit(limit)
		for _, name := range tests {
			t.Run(fmt.Sprintf("limit%d/%s", limit, name), func(t *testing.T) {
				if text := lib.Call("test_"+name, nil); text != "" {
					t.Error(text)
				}
			})
		}
	}
	openmp.SetLimit(0)
}

// Regions of several goroutines at once share the threads that there are.
func TestConcurrentRegions(t *testing.T) {
	so := build(t)
	openmp.SetLimit(2)
	defer openmp.SetLimit(0)
	var wg sync.WaitGroup
	for range 4 {
		// The tests' own data are static: each goroutine has a copy of them.
		dir := filepath.Join(t.TempDir(), "copy.so")
		data, err := os.ReadFile(so)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, data, 0o777); err != nil {
			t.Fatal(err)
		}
		lib := ctest.Open(t, dir)
		wg.Go(func() {
			for range 4 {
				for _, name := range tests {
					if name == "threads" {
						continue // it sets what belongs to its thread
					}
					if text := lib.Call("test_"+name, nil); text != "" {
						t.Errorf("%s: %s", name, text)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// Work of Go runs on the threads of regions, several callers at once, also while
// runs take all threads that there may be.
func TestRun(t *testing.T) {
	defer openmp.SetLimit(0)
	for _, limit := range []int{1, 2, 8} {
		openmp.SetLimit(limit)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					const n = 50
					var next, calls atomic.Int32
					var taken [n]atomic.Int32
					openmp.Run(4, func() {
						calls.Add(1)
						for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
							taken[i].Add(1)
						}
					})
					for i := range taken {
						if got := taken[i].Load(); got != 1 {
							t.Errorf("part %d was taken %d times", i, got)
							return
						}
					}
					if got := calls.Load(); got < 1 || got > 4 {
						t.Errorf("%d calls, want 1 to 4", got)
					}
				}
			})
		}
		wg.Wait()
	}
}

// A thread of a region that calls Go is a thread on which Go can allocate, start
// goroutines and collect garbage.
func TestRunIsGo(t *testing.T) {
	var calls atomic.Int32
	both := make(chan struct{})
	openmp.SetLimit(2)
	defer openmp.SetLimit(0)
	openmp.Run(2, func() {
		if calls.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-time.After(10 * time.Second):
		}
		runtime.GC()
		done := make(chan []byte)
		go func() { done <- make([]byte, 1<<20) }()
		<-done
	})
	if got := calls.Load(); got != 2 {
		t.Errorf("%d calls, want 2 at once", got)
	}
}

func TestNoWarnings(t *testing.T) { ctest.NoWarnings(t) }

func TestLimit(t *testing.T) {
	defer openmp.SetLimit(0)
	openmp.SetLimit(3)
	if n := openmp.Limit(); n != 3 {
		t.Errorf("limit %d, want 3", n)
	}
	openmp.SetLimit(0)
	if n := openmp.Limit(); n < 1 {
		t.Errorf("limit %d of the processors", n)
	}
}
