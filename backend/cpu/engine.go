package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

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

// codeBytes returns the memory of a kernel with its key. Machine code has pages of its own.
func codeBytes(key string, code executable) int64 {
	n := int64(len(key)) + 256
	if c, ok := code.(interface{ Size() int }); ok {
		const page = 4096
		n += (int64(c.Size()) + page - 1) / page * page
	}
	return n
}

// kernelCode is the code of a kernel, which is made when it is first needed. It is safe for concurrent
// use.
type kernelCode struct {
	key    string
	instrs int   // of the kernel
	bytes  int64 // that the engine counts; guarded by its mu

	once   sync.Once
	kernel *loop.Kernel // nil once the code is made
	made   atomic.Bool
	code   executable // nil if there can be none; not changed once it is made
	fault  any        // what making it panicked with
}

// none reports whether it is known that there can be no code.
func (c *kernelCode) none() bool { return c.made.Load() && c.code == nil }

// spill is what the code needs of a worker's memory, in whole cache lines. The code has been made.
func (c *kernelCode) spill() int { return (c.code.SpillBytes() + lineBytes - 1) &^ (lineBytes - 1) }

// engine turns kernels into executables. It keeps them by structure, so that
// the same computation at other sizes is not compiled again, and remembers what
// it can't compile.
type engine struct {
	name  string // the instructions that it compiles to
	build func(*loop.Kernel) (executable, error)
	check func(*loop.Kernel) error         // why build fails, without building
	load  func([]byte) (executable, error) // from an artefact; nil: it keeps none
	// together reports whether there is code that takes several rows of a kernel at a time; nil: there is none.
	together func(*loop.Kernel) bool
	// whole reports whether there is code that goes over the columns of a kernel without a loop; nil: there is none.
	whole func(*loop.Kernel) bool
	// tall reports whether there is code that goes over the rows of a line of a kernel without a loop; nil: there is none.
	tall func(*loop.Kernel) bool
	// grouped reports whether there is code that finishes several lines of a kernel together; nil: there is none.
	grouped func(*loop.Kernel) bool

	// byLanes says that sums are kept apart from elements of 64 bits (fuse.LaneOrdered).
	byLanes bool

	templates *fuse.Templates
	evictions atomic.Int64 // of codes

	mu       sync.Mutex // guards the rest
	codes    *simplelru.LRU[string, *kernelCode]
	bytes    int64 // of codes
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
	codes, err := simplelru.NewLRU(maxCodes, func(_ string, c *kernelCode) {
		e.bytes -= c.bytes
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

// find returns what the kernel with a key has of code, made or to be made.
func (e *engine) find(key string, k *loop.Kernel) *kernelCode {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, known := e.codes.Get(key); known {
		return c
	}
	c := &kernelCode{key: key, instrs: len(k.Instrs), kernel: k}
	e.keep(c)
	return c
}

// make makes the code unless it is made already; who comes while another makes it waits. What making it
// panics with is kept as its fault.
func (e *engine) make(c *kernelCode) {
	c.once.Do(func() {
		defer func() {
			c.fault, c.kernel = recover(), nil
			c.made.Store(true)
		}()
		code, err := e.build(c.kernel)
		if err != nil {
			return
		}
		c.code = code
		e.mu.Lock()
		defer e.mu.Unlock()
		e.compiles++
		if kept, _ := e.codes.Peek(c.key); kept == c {
			e.count(c)
		}
	})
}

// keep adds code under a key that has none; the caller holds mu.
func (e *engine) keep(c *kernelCode) {
	e.codes.Add(c.key, c)
	e.count(c)
}

// count counts the bytes of code that is among codes, and drops others if they are too many; the caller
// holds mu.
func (e *engine) count(c *kernelCode) {
	e.bytes -= c.bytes
	c.bytes = codeBytes(c.key, c.code)
	for e.bytes += c.bytes; e.bytes > maxCodeBytes && e.codes.Len() > 1; {
		e.codes.RemoveOldest()
	}
}

// compiled returns how many kernels have been compiled.
func (e *engine) compiled() int {
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
