//go:build unix

package main

import "syscall"

// processorTime returns what all threads of this process have computed for, in nanoseconds.
func processorTime() (int64, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano(), err
}
