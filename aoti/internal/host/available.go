//go:build linux && cgo

package host

// Available returns nil where libraries can be opened, and ErrNoLibraries
// elsewhere.
func Available() error { return nil }
