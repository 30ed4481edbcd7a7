//go:build linux

package restarts

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris"
)

// reasons are the errors of the system that follow from a Fault, and what the dynamic linker says.
var reasons = [faults]struct {
	errs   []unix.Errno
	linker []string
}{
	Descriptors: {[]unix.Errno{unix.EMFILE}, []string{"Too many open files"}},
	Memory:      {[]unix.Errno{unix.ENOMEM, unix.EAGAIN}, []string{"Cannot allocate memory", "failed to map segment", "cannot enable executable stack"}},
	Length:      {[]unix.Errno{unix.EFBIG}, []string{"File too large"}},
	Full:        {[]unix.Errno{unix.ENOSPC}, []string{"No space left"}},
}

// explains reports whether an error follows from the Fault.
func (f Fault) explains(err error) bool {
	if f == Memory && errors.As(err, new(*loris.OutOfMemory)) {
		return true
	}
	r := reasons[f]
	var errno unix.Errno
	if errors.As(err, &errno) {
		return slices.Contains(r.errs, errno)
	}
	return slices.ContainsFunc(r.linker, func(s string) bool { return strings.Contains(err.Error(), s) })
}

func full(err error) bool { return errors.Is(err, unix.ENOSPC) }

// limit has the system give this process little from now on.
func (c Child) limit() error {
	what, n := 0, uint64(0)
	switch c.Fault {
	case Descriptors:
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		what, n = unix.RLIMIT_NOFILE, uint64(len(open))+c.Amount%5
	case Memory:
		used, err := addressSpace()
		if err != nil {
			return err
		}
		what, n = unix.RLIMIT_AS, used+c.Amount%(512<<20)
	case Length:
		what, n = unix.RLIMIT_FSIZE, c.Amount%(8<<10)
	default:
		return nil
	}
	return unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n})
}

// addressSpace returns the bytes of this process's.
func addressSpace() (uint64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages := uint64(0)
	_, err = fmt.Sscan(string(b), &pages)
	return pages * uint64(os.Getpagesize()), err
}

// OwnDisk mounts a file system of a few megabytes at dir for this process, which must be one with
// mounts of its own, and its children.
func OwnDisk(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m,mode=0700") }
