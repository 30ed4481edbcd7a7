package cuda

import "context"

// streamKey is the key of the stream in a context.
type streamKey struct{}

// WithStream has the runs of models of this package that are started with the
// context take their turn in a stream of the caller's: after the work that is in it,
// and before what the caller enqueues afterwards. The stream, a CUstream or
// cudaStream_t, belongs to the primary context of the model's device and lives until
// Run has returned. A model itself computes in a stream of its own.
func WithStream(ctx context.Context, stream uintptr) context.Context {
	return context.WithValue(ctx, streamKey{}, stream)
}
