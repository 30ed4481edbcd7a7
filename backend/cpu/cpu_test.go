package cpu_test

import (
	"testing"

	"github.com/loris-ml/loris/backend/backendtest"
	"github.com/loris-ml/loris/backend/cpu"
)

func TestConformance(t *testing.T) { backendtest.Run(t, cpu.New(), cpu.Device) }

func TestOpInfo(t *testing.T) { backendtest.RunOpInfo(t, cpu.New(), cpu.Device) }
