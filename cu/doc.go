// Package cu lets a program that uses CUDA by gorgonia.org/cu share with Loris: the context,
// streams, events, and memory in both directions. Nothing is copied and the host waits for nothing.
//
// Both compute in the primary context of a device. A program takes it with Context and makes it
// current, where it would otherwise make a context of its own (Device.MakeContext, NewContext):
// streams, events and memory of another context are none of Loris's.
//
//	primary, err := cu.Context(loris.CUDA(0))
//	err = primary.Lock() // as package cu of Gorgonia wants it
//	stream, err := gcu.MakeStream(gcu.NonBlocking)
//
//	x, err := cu.FromDevicePtr(session, loris.CUDA(0), ptr, shape, stream, free) // memory as a tensor
//	y, done, err := cu.DevicePtr(ctx, x.Relu(), stream)                          // and back
//	// ... enqueue in the stream what reads y ...
//	err = done()
//
// Order is that of streams. What is made in a stream is there for the tensor; what makes a tensor
// is done when the stream goes on. A stream that waits for an event (Stream.Wait) before
// FromDevicePtr has Loris wait for it, and Record gives an event that stands behind a tensor.
//
// Loris's own CUDA backend links to nothing. A program with this package links to libcuda, since
// gorgonia.org/cu does, and its build needs CUDA's headers and the build tag cuda. It is
// experimental, as the backend is: it is tested on a stand-in for CUDA's libraries only.
package cu
