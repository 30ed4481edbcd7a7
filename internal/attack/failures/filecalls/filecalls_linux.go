//go:build amd64 || arm64

package filecalls

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call that can fail.
type call struct {
	number uint32
	name   string
	// path is which argument is a path, -1 for none; fd is which is a descriptor, relative to which
	// the path is if there is one.
	path, fd int
	err      unix.Errno
}

var calls = []call{
	{unix.SYS_OPENAT, "openat", 1, 0, unix.EMFILE},
	{unix.SYS_READ, "read", -1, 0, unix.EIO},
	{unix.SYS_PREAD64, "pread", -1, 0, unix.EIO},
	{unix.SYS_WRITE, "write", -1, 0, unix.ENOSPC},
	{unix.SYS_PWRITE64, "pwrite", -1, 0, unix.ENOSPC},
	{unix.SYS_FTRUNCATE, "ftruncate", -1, 0, unix.ENOSPC},
	{unix.SYS_FSYNC, "fsync", -1, 0, unix.EIO},
	{unix.SYS_FLOCK, "flock", -1, 0, unix.EIO},
	{unix.SYS_MMAP, "mmap", -1, 4, unix.ENOMEM},
	{unix.SYS_GETDENTS64, "getdents", -1, 0, unix.EIO},
	{unix.SYS_FSTAT, "fstat", -1, 0, unix.EIO},
	{newfstatat, "fstatat", 1, 0, unix.EIO},
	{unix.SYS_MKDIRAT, "mkdirat", 1, 0, unix.ENOSPC},
	{unix.SYS_UNLINKAT, "unlinkat", 1, 0, unix.EIO},
	{unix.SYS_RENAMEAT, "renameat", 1, 0, unix.ENOSPC},
	{unix.SYS_UTIMENSAT, "utimensat", 1, 0, unix.EIO},
}

// Injector has the n-th call on files below a directory fail, once.
type Injector struct {
	listener int
	memory   *os.File // of this process, to read paths from

	mu     sync.Mutex
	dir    string
	left   int // calls until the failure; negative after it
	failed string
}

// Prepare starts the program again, as the same process, with one arena for malloc. With more, malloc asks
// for the number of processors in a thread's first call, and the runtime waits for that thread to stop
// before goroutines go on, the one that answers for files among them. It is called first in main, and
// returns where the program runs so already.
func Prepare() error {
	const variable, one = "MALLOC_ARENA_MAX", "1"
	if os.Getenv(variable) == one {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(variable, one); err != nil {
		return err
	}
	return os.NewSyscallError("execve", unix.Exec(exe, os.Args, os.Environ()))
}

// Install asks the kernel for notifications, for the rest of the process. Until the Injector is armed
// all calls go on as they are.
func Install() (*Injector, error) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	filter := program(memory.Fd())
	in := &Injector{memory: memory, left: -1}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, errors.Join(ErrUnsupported, err, memory.Close())
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return nil, errors.Join(ErrUnsupported, errno, memory.Close())
	}
	in.listener = int(fd)
	go in.serve()
	return in, nil
}

// program returns the filter: it asks about calls of the table, unless they are on the descriptors
// that the runtime and the Injector use, whose threads must not wait for the answer.
func program(memory uintptr) []unix.SockFilter {
	quiet := append(runtimeFiles(), uint32(memory))
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	allow := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}
	ask := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF}
	p := []unix.SockFilter{
		{Code: load, K: 4},                    // the architecture
		{Code: equal, Jt: 1, K: architecture}, // else
		allow,
		{Code: load, K: 0}, // the number
	}
	for _, c := range calls {
		test := []unix.SockFilter{{Code: load, K: uint32(16 + 8*c.fd)}}
		if c.number == unix.SYS_MMAP {
			test = append(test, unix.SockFilter{Code: equal, Jf: 1, K: 1<<32 - 1}, allow) // no file
		} else {
			for _, fd := range quiet {
				test = append(test, unix.SockFilter{Code: equal, Jf: 1, K: fd}, allow)
			}
		}
		test = append(test, ask)
		p = append(append(p, unix.SockFilter{Code: equal, Jf: uint8(len(test)), K: c.number}), test...)
	}
	return append(p, allow)
}

// runtimeFiles returns the standard files, what the runtime polls with, and the limits of processors that
// its monitor reads every second: while that thread waits, no processor is taken from threads in calls, so
// the goroutine that answers might get none.
func runtimeFiles() (fds []uint32) {
	for fd := range uint32(64) {
		to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err == nil && (fd < 3 || strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/")) {
			fds = append(fds, fd)
		}
	}
	return fds
}

// Arm has the call number n on files below dir, and on those in memory, fail, the first being 0.
func (in *Injector) Arm(dir string, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dir, in.left, in.failed = dir, n, ""
}

// Disarm has nothing fail any more, and returns the call that did, or "".
func (in *Injector) Disarm() (failed string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.left = -1
	return in.failed
}

// notification is the kernel's struct seccomp_notif, answer its struct seccomp_notif_resp.
type notification struct {
	id           uint64
	pid, flags   uint32
	number, arch uint32
	instruction  uint64
	args         [6]uint64
}

type answer struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

func (in *Injector) serve() {
	runtime.LockOSThread()
	for {
		var n notification
		if in.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // the thread that asked is gone
		}
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if err := in.judge(&n); err != 0 {
			a.err, a.flags = -int32(err), 0
		}
		in.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
	}
}

func (in *Injector) ioctl(what uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(in.listener), what, uintptr(arg))
	return errno
}

// judge counts a call, and returns the error that it fails with, or 0.
func (in *Injector) judge(n *notification) unix.Errno {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.left < 0 {
		return 0
	}
	for _, c := range calls {
		if c.number != n.number {
			continue
		}
		path := in.path(&c, n)
		if !strings.HasPrefix(path, in.dir+"/") && path != in.dir && !strings.HasPrefix(path, "/memfd:") {
			return 0
		}
		if in.left--; in.left >= 0 {
			return 0
		}
		in.failed = c.name + " " + path
		return c.err
	}
	return 0
}

// path returns what a call is about.
func (in *Injector) path(c *call, n *notification) string {
	name := ""
	if c.path >= 0 {
		var b [4096]byte
		k, _ := unix.Pread(int(in.memory.Fd()), b[:], int64(n.args[c.path]))
		name, _, _ = strings.Cut(string(b[:max(k, 0)]), "\x00")
		if strings.HasPrefix(name, "/") {
			return name
		}
	}
	of, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int32(n.args[c.fd])))
	if err != nil {
		return name
	}
	if name == "" {
		return of
	}
	return of + "/" + name
}
