// Package fuse decides what of a Program is computed together: which
// instructions become one kernel (package loop), over which grid, and what a
// product or convolution does to its results while it has them. It knows nothing
// of memory or devices, so that every backend that emits kernels has the same
// plan.
package fuse
