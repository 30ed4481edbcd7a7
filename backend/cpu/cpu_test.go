package cpu

import (
	"testing"

	"github.com/loris-ml/loris/backend/backendtest"
)

func TestConformance(t *testing.T) { backendtest.Run(t, New(), Device) }
