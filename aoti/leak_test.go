//go:build linux && cgo

package aoti_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
)

var cycles = flag.Int("cycles", 10, "how often TestCyclesLeaveNothing loads, runs and closes each package")

// state is what a process must not have more of after a cycle.
type state struct {
	libraries, files int
	bytes, handles   int64
}

func observe(t *testing.T) state {
	t.Helper()
	runtime.GC() // finds buffers that were dropped without Release
	debug.FreeOSMemory()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return state{strings.Count(mapped(t), "memfd:"), len(files), host.BytesInUse(), host.Handles()}
}

// resident returns the process's memory in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// 193915: mapped memory stays after a model is closed. Cycles of loading, running,
// failing, updating and closing leave no mapping, descriptor, byte or handle.
func TestCyclesLeaveNothing(t *testing.T) {
	names := []string{"mlp", "mlp_2_11", "mlp_2_6", "folding", "weights_mmap", "weights_blob", "weights_disk"}
	files := map[string]*fixture{}
	for _, name := range names {
		files[name] = open(t, name)
		cycle(t, files[name]) // what is opened once and stays, such as libstdc++
	}
	host.Trim()
	before, memory, begun := observe(t), resident(t), time.Now()
	for range *cycles {
		for _, name := range names {
			cycle(t, files[name])
		}
		if t.Failed() {
			return
		}
	}
	host.Trim()
	after := observe(t)
	if after != before {
		t.Errorf("%+v before, %+v after", before, after)
	}
	grown := resident(t) - memory
	fmt.Printf("%d cycles of load, run and close in %v: %d mappings, %d descriptors, %d bytes and %d handles more; resident memory %+d KiB\n",
		*cycles*len(names), time.Since(begun).Round(time.Millisecond), after.libraries-before.libraries,
		after.files-before.files, after.bytes-before.bytes, after.handles-before.handles, grown>>10)
	if perCycle := grown / int64(*cycles*len(names)); *cycles >= 1000 && perCycle > 1024 {
		t.Errorf("each cycle leaves %d bytes of resident memory", perCycle)
	}
}

func cycle(t *testing.T, f *fixture) {
	t.Helper()
	ctx := context.Background()
	r, err := aoti.Load(ctx, path(f.name))
	if err != nil {
		t.Fatal(err)
	}
	in := f.list(t, "in")
	outs, err := r.Run(ctx, in...)
	if err != nil {
		t.Error(err)
	}
	for _, b := range outs {
		b.Release()
	}
	constants, err := r.ExtractConstants(ctx, aoti.Active, false)
	if err != nil {
		t.Error(err)
	}
	if err := r.Update(ctx, constants, aoti.Inactive); err != nil {
		t.Error(err)
	}
	for _, b := range constants {
		b.Release()
	}
	if err := r.Swap(ctx); err != nil {
		t.Error(err)
	}
	if outs, err = r.Run(ctx, in...); err != nil {
		t.Error(err)
	}
	for _, b := range outs {
		b.Release()
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Close waits for runs in flight, and a call after it is refused.
func TestCloseWaits(t *testing.T) {
	ctx := context.Background()
	f := open(t, "mlp")
	started, gate := make(chan struct{}), make(chan struct{})
	r := load(t, "mlp", aoti.RunStep(func(ctx context.Context, m aoti.Model, inputs []aoti.Buffer, donated []bool) ([]aoti.Buffer, error) {
		close(started)
		<-gate
		return m.Run(ctx, inputs, donated)
	}))
	ran := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, f.list(t, "in")...)
		ran <- err
	}()
	<-started
	closed := make(chan error, 1)
	go func() { closed <- r.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(gate)
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := r.Run(ctx, f.list(t, "in")...); err == nil {
		t.Error("a run after Close")
	}
}
