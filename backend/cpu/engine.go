package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/loop"
)

// executable is a compiled kernel.
type executable interface {
	// Run computes the grid of a Frame. It is safe for concurrent use with
	// different Frames.
	Run(f *loop.Frame)
	// SpillBytes is the memory that a Frame's Spill must have.
	SpillBytes() int
}

// maxCodes and maxCodeBytes bound the kernels that an engine keeps for programs to come, of all
// sessions. Models hold on to those that they use.
const (
	maxCodes     = 2048
	maxCodeBytes = 32 << 20
)

// codeBytes returns the memory of a kernel with its key: that of machine code is there twice, as
// bytes for artefacts and on pages of its own.
func codeBytes(key string, code executable) int64 {
	n := int64(len(key)) + 256
	if c, ok := code.(interface{ Size() int }); ok {
		const page = 4096
		n += int64(c.Size()) + (int64(c.Size())+page-1)/page*page
	}
	return n
}

// engine turns kernels into executables. It keeps them by structure, so that
// the same computation at other sizes is not compiled again, and remembers what
// it can't compile.
type engine struct {
	name  string // the instructions that it compiles to
	build func(*loop.Kernel) (executable, error)
	check func(*loop.Kernel) error         // why build fails, without building
	load  func([]byte) (executable, error) // from an artefact; nil: it keeps none

	templates *fuse.Templates
	evictions atomic.Int64 // of codes

	building singleflight.Group // by key: sessions compile different kernels at the same time

	mu       sync.Mutex                         // guards the rest
	codes    *simplelru.LRU[string, executable] // nil ones can't be compiled
	bytes    int64                              // of codes
	probes   map[fuse.Probe]bool
	compiles int
	scripts  *simplelru.LRU[*graph.Template, *fuse.Script]
	scripted int // instructions of scripts
}

// maxScripts and maxScripted bound the scripts that an engine keeps, and their instructions.
const (
	maxScripts  = 256
	maxScripted = 1 << 15
)

// script returns what was decided of a Program of a Template, or nil.
func (e *engine) script(t *graph.Template) *fuse.Script {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, _ := e.scripts.Get(t)
	return s
}

func (e *engine) keepScript(t *graph.Template, s *fuse.Script) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts.Remove(t)
	e.scripts.Add(t, s)
	for e.scripted += s.Instrs(); e.scripted > maxScripted && e.scripts.Len() > 1; {
		e.scripts.RemoveOldest()
	}
}

func newEngine(build func(*loop.Kernel) (executable, error), check func(*loop.Kernel) error) *engine {
	e := &engine{build: build, check: check, templates: fuse.NewTemplates(), probes: map[fuse.Probe]bool{}}
	codes, err := simplelru.NewLRU(maxCodes, func(key string, code executable) {
		e.bytes -= codeBytes(key, code)
		e.evictions.Add(1)
	})
	if err != nil {
		panic(err) // maxCodes is positive
	}
	e.codes = codes
	e.scripts, err = simplelru.NewLRU(maxScripts, func(_ *graph.Template, s *fuse.Script) { e.scripted -= s.Instrs() })
	if err != nil {
		panic(err) // so is maxScripts
	}
	return e
}

// compileAs returns the executable of the kernel with a key; false if there can
// be none.
func (e *engine) compileAs(key string, k *loop.Kernel) (executable, bool) {
	if code, known := e.known(key); known {
		return code, code != nil
	}
	code, err, _ := e.building.Do(key, func() (any, error) {
		if code, known := e.known(key); known { // since the caller looked
			return code, nil
		}
		code, err := e.build(k)
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil {
			code = nil // also what is not supported is remembered
		} else {
			e.compiles++
		}
		e.keep(key, code)
		return code, nil
	})
	if code == nil || err != nil {
		return nil, false
	}
	return code.(executable), true
}

// known returns the executable of a key, nil if there can be none; known is false if
// the key has not been compiled.
func (e *engine) known(key string) (code executable, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.codes.Get(key)
}

// keep adds the code of a key unless it is there, learned from an artefact meanwhile; the caller
// holds mu.
func (e *engine) keep(key string, code executable) {
	if e.codes.Contains(key) {
		return
	}
	e.bytes += codeBytes(key, code)
	e.codes.Add(key, code)
	for e.bytes > maxCodeBytes && e.codes.Len() > 1 {
		e.codes.RemoveOldest()
	}
}

// count returns how many kernels have been compiled.
func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.compiles
}

// supports reports whether kernels can hold what the probe says.
func (e *engine) supports(q fuse.Probe) bool {
	e.mu.Lock()
	ok, known := e.probes[q]
	e.mu.Unlock()
	if known {
		return ok
	}
	ok = e.check(q.Kernel()) == nil
	e.mu.Lock()
	e.probes[q] = ok
	e.mu.Unlock()
	return ok
}
