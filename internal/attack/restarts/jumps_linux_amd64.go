package restarts

import "sync/atomic"

// clockJumps says that the clock of this process can be set without that of the machine.
const clockJumps = true

// ahead is by how many seconds the wall clock of this process is ahead of the machine's. Assembly
// reads it, which needs the address of a plain word.
var ahead int64

// installClock has Go's runtime read the time from a function of this package rather than from the
// kernel's, whose address it keeps in a variable.
func installClock()

func setAhead(seconds int64) { atomic.StoreInt64(&ahead, seconds) }
