package ref_test

import (
	"testing"

	"github.com/loris-ml/loris/backend/backendtest"
	"github.com/loris-ml/loris/backend/ref"
)

func TestConformance(t *testing.T) { backendtest.Run(t, ref.New(), ref.Device) }

func TestAttributes(t *testing.T) { backendtest.RunAttributes(t, ref.New(), ref.Device) }
