//go:build !linux || (!amd64 && !arm64)

package filecalls

// Injector has calls fail; there is none on this system.
type Injector struct{}

// Prepare does nothing.
func Prepare() error { return nil }

// Install returns ErrUnsupported.
func Install() (*Injector, error) { return nil, ErrUnsupported }

// Arm does nothing.
func (*Injector) Arm(dir string, n int) {}

// Disarm returns "".
func (*Injector) Disarm() (failed string) { return "" }
