// Package kernels holds the loops that the CPU backend and the host of
// compiled models compute with.
//
// A kernel takes slices and writes slices. It allocates nothing, starts no
// goroutine and knows nothing of tensors: shapes arrive as plain numbers or as
// a strided.View. Where work can be done in parallel, a kernel takes a range lo..hi of
// its independent units, for parallel.For to call. Lengths are the caller's
// promise; a slice that is too short panics.
//
// Elements are Go's numbers. Bool is uint8 holding 0 or 1. The 16-bit floats
// are converted to float32 by the callers, block by block or as a whole, so
// that each kernel is written once. Kernels that only move elements are
// instantiated by element size.
//
// Floating sums accumulate in float64, so that a float32 result is right to its
// last places for any length that fits in memory; matrix products, which sum in
// the type itself, are in package gemm.
package kernels

import "fmt"

// Integer is the integer element types; uint8 also stands for bool.
type Integer interface {
	int8 | int16 | int32 | int64 | uint8
}

// Float is the floating element types that kernels compute in.
type Float interface{ float32 | float64 }

// Number is the element types that kernels compute in.
type Number interface{ Integer | Float }

// IndexError is what kernels panic with for an index outside 0..Size-1.
type IndexError struct {
	Index int64 // the offending index
	Size  int   // of the dimension indexed into
}

// Error says which index is out of range.
func (e IndexError) Error() string {
	return fmt.Sprintf("index %d is out of range for size %d", e.Index, e.Size)
}
