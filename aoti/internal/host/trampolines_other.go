//go:build !linux || !cgo

package host

// BoundShims are the custom functions that one library calls; in this build there
// are none.
type BoundShims struct{ Names map[string]string }

// BindShims returns ErrNoLibraries.
func BindShims([]string) (*BoundShims, error) { return nil, ErrNoLibraries }

// Close does nothing.
func (b *BoundShims) Close() {}

func builtIn(string) bool { return false }
