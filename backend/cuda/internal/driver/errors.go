package driver

import (
	"errors"
	"fmt"
	"strings"
)

// What errors of this package are compared with by errors.Is.
var (
	// ErrNoDriver says that this machine has no NVIDIA driver: libcuda cannot be
	// opened.
	ErrNoDriver = errors.New("no NVIDIA driver")
	// ErrNoLibrary says that NVRTC or cuBLASLt cannot be opened.
	ErrNoLibrary = errors.New("a library of CUDA is missing")
	// ErrNoDevice says that the driver sees no GPU, or none of that index.
	ErrNoDevice = errors.New("no such CUDA device")
	// ErrOldDriver says that the driver, or another library, is too old for this
	// program: its version, or a function that it lacks.
	ErrOldDriver = errors.New("the driver is too old")
	// ErrOutOfMemory says that memory, of a device or pinned, is exhausted.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrIllegalAddress says that a kernel or copy touched memory that it must
	// not. The context is lost.
	ErrIllegalAddress = errors.New("illegal address")
	// ErrLost says that the context is lost: CUDA repeats the error in every
	// further call.
	ErrLost = errors.New("the context is lost")
	// ErrImage says that a module is damaged or made for another GPU.
	ErrImage = errors.New("the module does not suit the device")
	// ErrInvalid says that an argument is wrong.
	ErrInvalid = errors.New("invalid value")
	// ErrNotSupported says that the device or the library cannot do this.
	ErrNotSupported = errors.New("not supported")
	// ErrGraphChanged says that an executable graph cannot take the new one's
	// place: nodes were added, removed or reordered.
	ErrGraphChanged = errors.New("the graph's structure changed")
	// ErrCompile says that a source does not compile; see CompileError.
	ErrCompile = errors.New("the source does not compile")
)

// Error is a call of CUDA that failed.
type Error struct {
	Call string // the function, such as "cuLaunchKernel"
	Code int    // CUDA's number
	Name string // its name, such as "CUDA_ERROR_ILLEGAL_ADDRESS"; may be empty
	Text string // what CUDA says of it; may be empty

	is []error // the sentinels that it is
}

// Error names the call, what CUDA says and the name or the number.
func (e *Error) Error() string {
	name := e.Name
	if name == "" {
		name = fmt.Sprintf("error %d", e.Code)
	}
	if e.Text == "" {
		return fmt.Sprintf("%s: %s", e.Call, name)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Text, name)
}

// Unwrap returns the sentinels that the error is.
func (e *Error) Unwrap() []error { return e.is }

// IsLost reports whether an error is final for the context it came from.
func IsLost(err error) bool { return errors.Is(err, ErrLost) }

// LoadError says why a library cannot be used.
type LoadError struct {
	Library string   // what is missing, such as "NVRTC"
	Reasons []string // the loader's words, one for each name that was tried
	Hint    string   // what can be done

	is error
}

// Error names what was tried.
func (e *LoadError) Error() string {
	text := fmt.Sprintf("%v: %s could not be opened: %s", e.is, e.Library, strings.Join(e.Reasons, "; "))
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns ErrNoDriver or ErrNoLibrary.
func (e *LoadError) Unwrap() error { return e.is }

// SymbolError is a function that a library lacks.
type SymbolError struct {
	Library string // the file
	Symbol  string
	Version Version // of the driver; zero where it is not known
}

// Error names the library, the function and the version.
func (e *SymbolError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("%v: %s has no %s", ErrOldDriver, e.Library, e.Symbol)
	}
	return fmt.Sprintf("%v: %s, for CUDA %v, has no %s", ErrOldDriver, e.Library, e.Version, e.Symbol)
}

// Unwrap returns ErrOldDriver.
func (e *SymbolError) Unwrap() error { return ErrOldDriver }

// VersionError is a driver that is older than MinVersion.
type VersionError struct {
	Library       string // the file
	Version, Want Version
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: %s is for CUDA %v, and CUDA %v is needed", ErrOldDriver, e.Library, e.Version, e.Want)
}

// Unwrap returns ErrOldDriver.
func (e *VersionError) Unwrap() error { return ErrOldDriver }

// MemoryError is an allocation of device memory that failed.
type MemoryError struct {
	Device   int
	Wanted   int64 // bytes
	Used     int64 // of the pool, by live allocations
	Reserved int64 // of the pool, free ones included
	Free     int64 // of the device
	Total    int64 // of the device
	Err      error // what CUDA said
}

// Error says what was wanted and what is held.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("cuda:%d: %v: %s wanted; the pool has %s in use and %s reserved, the device %s of %s free",
		e.Device, ErrOutOfMemory, size(e.Wanted), size(e.Used), size(e.Reserved), size(e.Free), size(e.Total))
}

// Unwrap returns what CUDA said, which is ErrOutOfMemory.
func (e *MemoryError) Unwrap() error { return e.Err }

// size writes bytes for people.
func size(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	v, u := float64(n)/1024, 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// Version is a version of CUDA: 1000 times the major number and 10 times the
// minor one.
type Version int

// MinVersion is the oldest CUDA whose driver serves.
const MinVersion Version = 12000

// Major returns the first number.
func (v Version) Major() int { return int(v) / 1000 }

// String returns, for example, "12.9".
func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }
