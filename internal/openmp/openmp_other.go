//go:build !linux || !cgo

package openmp

// Available says that this build has the runtime.
const Available = false

// SetLimit bounds how many threads run in parallel regions at once.
func SetLimit(int) {}

// Limit returns how many threads may run in parallel regions at once.
func Limit() int { return 1 }

// Run calls work.
func Run(_ int, work func()) { work() }
