package backend

import (
	"context"
	"time"
)

// KernelFunc gets a run of a kernel: the ops that it computes, the user's line of the first of them
// if that is known, and when it ran. It must return soon.
type KernelFunc func(name, line string, start time.Time, d time.Duration)

type kernelsKey struct{}

// WithKernels returns a context with which a Model's Run reports its kernels to f, if the backend
// can tell them apart: cpu does.
func WithKernels(ctx context.Context, f KernelFunc) context.Context {
	return context.WithValue(ctx, kernelsKey{}, f)
}

// Kernels returns the function of WithKernels, or nil.
func Kernels(ctx context.Context) KernelFunc {
	f, _ := ctx.Value(kernelsKey{}).(KernelFunc)
	return f
}
