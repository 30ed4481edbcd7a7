// Package filecalls has system calls on files fail, by number: the kernel asks before each (seccomp's
// user notification), so that all code of the process is covered, the standard library's, too.
package filecalls

import "errors"

// ErrUnsupported is of systems that cannot be asked for this: all but Linux from 5.19 on, on amd64 and
// arm64, and sandboxes that forbid it.
var ErrUnsupported = errors.New("filecalls: the system has no notifications of system calls")
