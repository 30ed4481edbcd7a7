//go:build linux && (amd64 || arm64)

package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is an MPI library that has been opened. All memory whose address it gets is outside of Go's
// heap: what it keeps past a call the collector could not know of.
type library struct {
	abi
	path   string
	handle uintptr
	calls  map[string]uintptr

	mu      sync.Mutex
	cells   []*cells  // free ones
	windows []uintptr // those of lanes, in the order in which they were made
}

// used are the functions that are called.
var used = []string{
	"MPI_Init_thread", "MPI_Finalize", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_set_errhandler", "MPI_Comm_split", "MPI_Comm_dup",
	"MPI_Iallgather", "MPI_Iallgatherv", "MPI_Ialltoall", "MPI_Ialltoallv", "MPI_Ibcast", "MPI_Iallreduce", "MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Alloc_mem",
	"MPI_Comm_split_type", "MPI_Comm_free", "MPI_Win_allocate_shared", "MPI_Win_shared_query", "MPI_Win_free",
	"MPI_Error_string", "MPI_Get_library_version",
}

// underOpenMPI reports whether Open MPI's mpiexec has started this process.
func underOpenMPI() bool { return os.Getenv("OMPI_COMM_WORLD_RANK") != "" }

// candidates are the paths where the library may be, the likeliest first.
func candidates() []string {
	if path := os.Getenv("LORIS_MPI"); path != "" {
		return []string{path}
	}
	names := []string{"libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"}
	if underOpenMPI() {
		names = []string{"libmpi.so.40", "libmpi_abi.so.1"}
	}
	var out []string
	for _, d := range launcherDirs() {
		for _, n := range names {
			out = append(out, filepath.Join(filepath.Dir(d), "lib", n))
		}
	}
	return append(out, names...)
}

// launcherDirs returns the folders of the program that started this one, and of mpiexec.
func launcherDirs() []string {
	var out []string
	if parent, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid())); err == nil {
		out = append(out, filepath.Dir(parent))
	}
	if at, err := exec.LookPath("mpiexec"); err == nil {
		out = append(out, filepath.Dir(at))
		if real, err := filepath.EvalSymlinks(at); err == nil {
			out = append(out, filepath.Dir(real))
		}
	}
	return out
}

// settings are variables that libraries get unless they are set. UCX must not take the signals by which Go
// finds nil pointers. Open MPI's windows over UCX, which are not used, say on standard error where they
// cannot be.
var settings = map[string]string{"UCX_ERROR_SIGNALS": "", "OMPI_MCA_osc": "^ucx"}

// open opens the first candidate that there is.
func open() (*library, error) {
	for name, value := range settings {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, path := range candidates() {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return newLibrary(path, h)
	}
	return nil, fmt.Errorf("no MPI library was found; install MPICH or Open MPI, scripts/mpi-env.sh brings one, or set LORIS_MPI to the path of a libmpi: %w", errors.Join(errs...))
}

func newLibrary(path string, h uintptr) (*library, error) {
	l := &library{path: path, handle: h, calls: map[string]uintptr{}}
	var missing []string
	for _, name := range used {
		if l.calls[name] = l.symbol(name); l.calls[name] == 0 {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("%s lacks %s: it is no MPI library of MPI 3 or later", path, strings.Join(missing, ", "))
	}
	switch {
	case l.standardABI():
		l.abi = standard
	case l.symbol("ompi_mpi_comm_world") != 0:
		l.abi = openMPI(l.symbol)
	default:
		l.abi = mpich
	}
	return l, nil
}

// standardABI asks a library that knows the standard ABI whether it has it.
func (l *library) standardABI() bool {
	f := l.symbol("MPI_Abi_get_version")
	if f == 0 {
		return false
	}
	c := l.cell()
	defer l.free(c)
	rc, _, _ := purego.SyscallN(f, c.at(0), c.at(1))
	return int32(rc) == 0 && int32(c.words[0]) >= 1
}

func (l *library) symbol(name string) uintptr {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0
	}
	return p
}

// mpiError is a code that a function returned, with the library's text.
type mpiError struct {
	call, text string
	code       int32
}

func (e *mpiError) Error() string { return fmt.Sprintf("%s: %s (code %d)", e.call, e.text, e.code) }

// call calls a function that returns a code.
func (l *library) call(name string, args ...uintptr) error {
	rc, _, _ := purego.SyscallN(l.calls[name], args...)
	if int32(rc) == 0 {
		return nil
	}
	e := &mpiError{call: name, code: int32(rc), text: "unknown error"}
	if text, ok := l.text("MPI_Error_string", uintptr(uint32(rc))); ok {
		e.text = strings.ReplaceAll(text, "\n", "; ")
	}
	return e
}

// text calls a function that writes a text and its length, after other arguments.
func (l *library) text(name string, args ...uintptr) (string, bool) {
	c := l.cell()
	defer l.free(c)
	rc, _, _ := purego.SyscallN(l.calls[name], append(args, c.at(1), c.at(0))...)
	n := int(int32(c.words[0]))
	if int32(rc) != 0 || n < 0 || n > 8*(len(c.words)-1) {
		return "", false
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(&c.words[1])), n)), true
}

// version returns what the library says of itself, in one line.
func (l *library) version() string {
	text, _ := l.text("MPI_Get_library_version")
	text, _, _ = strings.Cut(text, "\n")
	return strings.Join(strings.Fields(text), " ")
}

// cells is memory outside of Go's heap for what calls write: numbers, handles, a text of up to 8 KiB.
type cells struct{ words []uint64 }

func (c *cells) at(i int) uintptr { return uintptr(unsafe.Pointer(&c.words[i])) }

const cellWords = 2048

// cell returns cells, all zero.
func (l *library) cell() *cells {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.cells); n > 0 {
		c := l.cells[n-1]
		l.cells = l.cells[:n-1]
		clear(c.words[:4])
		return c
	}
	m, err := syscall.Mmap(-1, 0, 8*cellWords, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Errorf("16 KiB for the calls of MPI: %w", err))
	}
	return &cells{unsafe.Slice((*uint64)(unsafe.Pointer(&m[0])), cellWords)}
}

func (l *library) free(c *cells) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cells = append(l.cells, c)
}

// init starts MPI, for calls from any thread.
func (l *library) init() error {
	c := l.cell()
	defer l.free(c)
	if err := l.call("MPI_Init_thread", 0, 0, l.threadMultiple, c.at(0)); err != nil {
		return err
	}
	if uintptr(c.words[0]) < l.threadMultiple {
		return fmt.Errorf("%s serves calls from one thread only (level %d)", l.path, c.words[0])
	}
	return l.call("MPI_Comm_set_errhandler", l.world, l.errorsReturn)
}
