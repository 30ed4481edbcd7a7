//go:build !(cuda && linux && cgo)

package cuda

import (
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Context returns an error that is ErrNotBuilt.
func Context(ir.Device) (uintptr, error) { return 0, notBuilt() }

// FromBlob returns an error that is ErrNotBuilt.
func FromBlob(ir.Device, uintptr, ir.Shape, uintptr, func()) (backend.Buffer, error) {
	return nil, notBuilt()
}

// DataPtr returns an error that is ErrNotBuilt.
func DataPtr(backend.Buffer, uintptr) (uintptr, func() error, error) { return 0, nil, notBuilt() }

// RecordEvent returns an error that is ErrNotBuilt.
func RecordEvent(backend.Buffer, uintptr) error { return notBuilt() }
