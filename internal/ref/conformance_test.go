package ref_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/ref"
)

func TestConformance(t *testing.T) { backendtest.Run(t, ref.New(), ref.Device) }

func TestAttributes(t *testing.T) { backendtest.RunAttributes(t, ref.New(), ref.Device) }
