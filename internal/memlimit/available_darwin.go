package memlimit

import (
	"math"

	"golang.org/x/sys/unix"
)

// available returns the machine's memory.
func available() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil || n > math.MaxInt64 {
		return unknown
	}
	return int64(n)
}

// unknown stands for the memory of a machine that does not tell.
const unknown = 16 << 30
