//go:build !(cuda && linux && cgo)

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

func TestNotBuilt(t *testing.T) {
	if d, err := Devices(); d != nil || !errors.Is(err, ErrNotBuilt) {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestUseOfWhatIsNotBuilt(t *testing.T) {
	_, err := backend.For(ir.Device{Type: DeviceType})
	if !errors.Is(err, ErrNotBuilt) || !errors.Is(err, ir.ErrDevice) || !strings.Contains(err.Error(), "cuda") {
		t.Errorf("got %v", err)
	}
}
