package cpu_test

import (
	"runtime"
	"testing"

	"github.com/loris-ml/loris/backend/backendtest"
	"github.com/loris-ml/loris/backend/cpu"
)

func TestConformance(t *testing.T) { backendtest.Run(t, cpu.New(), cpu.Device) }

func TestOpInfo(t *testing.T) { backendtest.RunOpInfo(t, cpu.New(), cpu.Device) }

// TestConformanceSplit runs the suite with every step cut into tiny pieces that
// several goroutines share.
func TestConformanceSplit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	backendtest.Run(t, cpu.NewSplit(), cpu.Device)
}
