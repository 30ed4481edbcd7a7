package cpu_test

import (
	"runtime"
	"testing"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/longtest"
)

func TestConformance(t *testing.T) { backendtest.Run(t, cpu.New(), cpu.Device) }

func TestOpInfo(t *testing.T) { backendtest.RunOpInfo(t, cpu.New(), cpu.Device) }

// TestConformanceLevels runs the suite with tiny pieces on each level of
// instructions.
func TestConformanceLevels(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for name, b := range cpu.Levels() {
		t.Run(name, func(t *testing.T) { backendtest.Run(t, cpu.Split(b), cpu.Device) })
	}
}

// TestConformancePortable runs the suite without native kernels.
func TestConformancePortable(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("TestConformanceSplit goes the same ways")
	}
	backendtest.Run(t, cpu.NewPortable(), cpu.Device)
}

// TestConformanceSplit runs the suite without native kernels, with every step cut
// into tiny pieces that several goroutines share.
func TestConformanceSplit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	backendtest.Run(t, cpu.Split(cpu.NewPortable()), cpu.Device)
}

// TestConformanceKernelsSplit runs kernels by their definition.
func TestConformanceKernelsSplit(t *testing.T) {
	if !longtest.Enabled() && len(cpu.Levels()) > 0 {
		t.Skip("TestConformanceLevels makes the same kernels")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	backendtest.Run(t, cpu.Split(cpu.NewDefined()), cpu.Device)
}

// FuzzPrograms holds native and portable kernels against ref on random Programs.
func FuzzPrograms(f *testing.F) {
	native, portable := cpu.New(), cpu.NewPortable()
	for ops := range uint8(8) {
		f.Add(uint64(1000+int(ops)), 8*ops)
	}
	f.Add(uint64(35), uint8(189))  // reduced dimensions apart in memory
	f.Add(uint64(453), uint8(162)) // the same, with ops on the sum
	f.Add(uint64(1725), byte('=')) // grew until ref took half a minute
	f.Fuzz(func(t *testing.T, seed uint64, ops uint8) {
		if err := backendtest.CheckProgram(seed, 1+int(ops)%64, cpu.Device, native, portable); err != nil {
			t.Error(err)
		}
	})
}

func TestAttributes(t *testing.T) { backendtest.RunAttributes(t, cpu.New(), cpu.Device) }
