// Package held counts what a process holds, so that campaigns can compare it with before.
package held

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
)

// Counts are what a process holds. Files and Mappings are 0 on systems that do not tell.
type Counts struct {
	// Objects are those of the heap, Tensors the bytes of the CPU's.
	Objects, Goroutines, Tensors, Files, Mappings int64
}

// Now collects garbage, so that finalizers run, and counts.
func Now() (c Counts) {
	c = few()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.Objects = int64(m.HeapObjects)
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		c.Mappings = int64(bytes.Count(maps, []byte("\n")))
	}
	return c
}

// few counts what Back compares.
func few() (c Counts) {
	time.Sleep(time.Nanosecond) // the runtime opens files for its first timer
	runtime.GC()
	c.Goroutines = int64(runtime.NumGoroutine())
	if be, err := backend.For(cpu.Device); err == nil {
		c.Tensors = be.BytesInUse(cpu.Device)
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		c.Files = int64(len(files))
	}
	return c
}

// Least counts several times while finalizers run, and returns the least of each.
func Least() Counts {
	c := Now()
	for range 10 {
		time.Sleep(5 * time.Millisecond)
		n := Now()
		c = Counts{min(c.Objects, n.Objects), min(c.Goroutines, n.Goroutines), min(c.Tensors, n.Tensors),
			min(c.Files, n.Files), min(c.Mappings, n.Mappings)}
	}
	return c
}

// Back waits until there are no more goroutines, bytes of tensors and open files than before. The
// error says what is left over.
func Back(before Counts) error { return back(before, 10*time.Second) }

func back(before Counts, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c := few()
		if c.Goroutines <= before.Goroutines && c.Tensors <= before.Tensors && c.Files <= before.Files {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left over: %d goroutines of %d, %d bytes of tensors of %d, %d open files of %d",
				c.Goroutines, before.Goroutines, c.Tensors, before.Tensors, c.Files, before.Files)
		}
	}
}
