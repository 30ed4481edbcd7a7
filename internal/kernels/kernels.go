// Package kernels holds the loops of the CPU backend and of the host of compiled models.
//
// A kernel reads and writes slices. It allocates nothing, starts no goroutine and knows nothing of
// tensors: shapes are plain numbers or a strided.View. A kernel whose work can be done in parallel
// takes a range lo..hi of independent units, which parallel.For supplies. Callers guarantee the
// lengths of slices; a kernel panics if one is too short.
//
// Elements have Go's numeric types; a bool is a uint8 that holds 0 or 1. Callers convert 16-bit
// floats to float32, so that each kernel is written once. Kernels that only move elements are
// instantiated by element size.
//
// Sums of floats accumulate in float64, so that a float32 result is precise for any length. Matrix
// products sum in their own type and are in package gemm.
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

// IndexError is the value with which kernels panic for an index outside 0..Size-1.
type IndexError struct {
	Index int64 // the offending index
	Size  int   // of the dimension indexed into
}

// Error says which index is out of range.
func (e IndexError) Error() string {
	return fmt.Sprintf("index %d is out of range for size %d", e.Index, e.Size)
}
