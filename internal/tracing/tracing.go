// Package tracing knows the functions that are being traced in the process (loris.Compile), so that
// host code which they call can say what its results depend on, and what a traced function must not
// do can be found on the goroutine that does it.
package tracing

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Trace is a function that is being traced.
type Trace struct {
	owner any

	mu     sync.Mutex
	guards []Guard
	set    []any // the keys of Set
	err    error
}

// Guard is a host value that what was recorded depends on.
type Guard struct {
	key   any
	get   func() any
	value any // at the time of the trace
}

var (
	active atomic.Int32 // the length of traces
	mu     sync.Mutex
	traces []*Trace // guarded by mu
)

// New returns a trace of an owner, an executor.
func New(owner any) *Trace { return &Trace{owner: owner} }

// Run calls fn, which is traced.
//
//go:noinline
func (t *Trace) Run(fn func()) {
	mu.Lock()
	traces = append(traces, t)
	mu.Unlock()
	active.Add(1)
	defer func() {
		active.Add(-1)
		mu.Lock()
		defer mu.Unlock()
		i := slices.Index(traces, t)
		traces = slices.Delete(traces, i, i+1)
	}()
	fn()
}

// runEntry is the address of Run, whose frame is on the stack of a goroutine that runs a traced
// function.
var runEntry = sync.OnceValue(func() (entry uintptr) {
	New(nil).Run(func() {
		var pcs [2]uintptr
		runtime.Callers(1, pcs[:]) // this function, then Run
		entry = runtime.FuncForPC(pcs[1] - 1).Entry()
	})
	return entry
})

// Active reports whether any function is being traced in the process. It costs one atomic load.
func Active() bool { return active.Load() != 0 }

// Inside reports whether the calling goroutine runs a function that is being traced.
func Inside() bool {
	if !Active() {
		return false
	}
	entry := runEntry()
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == entry {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}

// each calls f for the traces that the calling goroutine may be in: all that are in progress, since
// its stack does not say which.
func each(f func(*Trace)) {
	if !Inside() {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	for _, t := range traces {
		f(t)
	}
}

// Fail makes the trace that the calling goroutine runs fail, with the error that makes returns, and
// returns that error, or nil if it runs none. If several are in progress it is one of the owner's.
func Fail(owner any, makes func() error) (err error) {
	mine, all := 0, []*Trace(nil)
	each(func(t *Trace) {
		if t.owner == owner {
			mine++
		}
		all = append(all, t)
	})
	if len(all) == 0 {
		return nil
	}
	err = makes()
	for _, t := range all {
		if mine == 0 || t.owner == owner {
			t.fail(err)
		}
	}
	return err
}

func (t *Trace) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// Depend makes what is being traced on the calling goroutine depend on what get returns, a
// comparable value. Of several with one key, unless that is nil, the first counts.
func Depend(key any, get func() any) {
	value := get()
	each(func(t *Trace) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if key != nil && (slices.Contains(t.set, key) || slices.ContainsFunc(t.guards, func(g Guard) bool { return g.key == key })) {
			return
		}
		t.guards = append(t.guards, Guard{key, get, value})
	})
}

// Set says that what is being traced on the calling goroutine has chosen the value of a key, so that
// it does not depend on the one that there was.
func Set(key any) {
	each(func(t *Trace) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.set = append(t.set, key)
	})
}

// Err returns the error of the first Fail.
func (t *Trace) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Guards returns what was passed to Depend.
func (t *Trace) Guards() []Guard {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.guards)
}

// Hold reports whether all values are those of the trace.
func Hold(guards []Guard) bool {
	for i := range guards {
		if guards[i].get() != guards[i].value {
			return false
		}
	}
	return true
}
