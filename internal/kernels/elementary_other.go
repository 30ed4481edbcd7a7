//go:build !amd64 || noasm

package kernels

func nativeElementary() []*elementary { return nil }

// keyAt is nil: there are no loops for it.
var keyAt func(keys *int32, n, at int) (key int32, less int)
