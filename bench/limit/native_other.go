//go:build !amd64 || noasm

package limit

// native returns nil: there are no loops but those in Go.
func native() *loops { return nil }
