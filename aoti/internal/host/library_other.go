//go:build !linux || !cgo

package host

import (
	"context"

	"github.com/loris-ml/loris/backend"
)

// Library is an opened library; in this build there is none.
type Library struct{}

// OpenLibrary returns ErrNoLibraries.
func OpenLibrary(string, LibraryOptions) (*Library, error) { return nil, ErrNoLibraries }

// Info returns what the library says of itself.
func (l *Library) Info() LibraryInfo { return LibraryInfo{} }

// Close gives the library up.
func (l *Library) Close() error { return nil }

// NewInstance returns ErrNoLibraries.
func (l *Library) NewInstance() (*Instance, error) { return nil, ErrNoLibraries }

// Instance is an instance of a library's model; in this build there is none.
type Instance struct{ backend.BlobModel }

// RunInto returns ErrNoLibraries.
func (m *Instance) RunInto(context.Context, []backend.Buffer, []bool, []backend.Buffer) error {
	return ErrNoLibraries
}

// CallSpec returns nothing.
func (m *Instance) CallSpec() (in, out string) { return "", "" }

// Provides reports whether the process has a function that libraries call.
func Provides(string) bool { return false }

// Available returns nil where libraries can be opened, and ErrNoLibraries
// elsewhere.
func Available() error { return ErrNoLibraries }
