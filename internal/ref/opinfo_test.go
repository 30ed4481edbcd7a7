package ref_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/ref"
)

func TestOpInfo(t *testing.T) { backendtest.RunOpInfo(t, ref.New(), ref.Device) }
