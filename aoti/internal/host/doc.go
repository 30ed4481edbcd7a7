// Package host makes the process a host for models that PyTorch's AOTInductor
// compiled to shared libraries, without any of PyTorch.
//
// The executable itself exports the C functions that such a library calls, under
// names with the prefix lori_torch_ (the private copy of the library that is
// loaded asks for these): tensors as handles to reference-counted storage
// outside the Go heap, and math, which runs in Loris's own kernels.
//
// Loading libraries needs Linux and cgo. Elsewhere the package builds, and
// opening a library returns ErrNoLibraries.
package host
