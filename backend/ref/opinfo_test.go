package ref_test

import (
	"testing"

	"github.com/loris-ml/loris/backend/backendtest"
	"github.com/loris-ml/loris/backend/ref"
)

func TestOpInfo(t *testing.T) { backendtest.RunOpInfo(t, ref.New(), ref.Device) }
