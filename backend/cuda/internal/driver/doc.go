// Package driver calls CUDA from Go: the driver (libcuda), its run-time compiler
// (NVRTC) and cuBLASLt, over cgo but without linking to any of them and without
// their headers. The libraries are opened when they are first asked for, so a
// program built with this package starts on every machine and says what is
// missing there.
//
// It is part of builds for linux with cgo and the tag cuda; others have its
// errors only.
//
// # Threads and contexts
//
// CUDA keeps a current context in each thread, and goroutines change threads.
// Every call that needs a context therefore makes it current in the same call
// of C; nothing is locked to a thread, and all of the package may be used from
// any goroutine. What a Close frees must not be in use by others.
//
// # Waiting
//
// No call waits for the device without bounds: Event.Wait and Stream.Wait ask
// again and again, ever less often, until their context.Context is done. The
// exceptions are copies from or to memory that is not pinned, as they say, and
// what CUDA itself may wait in: loading and unloading modules, pinned memory.
//
// # Errors
//
// A failed call is an *Error with CUDA's number, name and text, which errors.Is
// compares with the sentinels of this package. Errors for which IsLost holds
// are final for the device's context: CUDA repeats them in every later call
// until the context is released by all who retained it.
package driver
