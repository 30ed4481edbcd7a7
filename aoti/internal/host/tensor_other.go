//go:build !linux || !cgo

package host

// BytesInUse returns the bytes of the live tensors of libraries: none, where no
// library can be opened.
func BytesInUse() int64 { return 0 }

// Handles returns how many tensor handles are alive.
func Handles() int64 { return 0 }

// PooledBytes returns the bytes that are kept for reuse.
func PooledBytes() int64 { return 0 }

// SetPoolLimit bounds the bytes that are kept for reuse.
func SetPoolLimit(int64) {}

// Trim frees what is kept for reuse.
func Trim() {}

// ProvidesOp reports whether the host can run an op by its name in PyTorch.
func ProvidesOp(string) bool { return false }
