//go:build !(cuda && linux && cgo)

package cuda

import (
	"errors"
	"testing"
)

func TestNotBuilt(t *testing.T) {
	if d, err := Devices(); d != nil || !errors.Is(err, ErrNotBuilt) {
		t.Errorf("got %v, %v", d, err)
	}
}
