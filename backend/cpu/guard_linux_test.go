package cpu_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/backendtest"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/sanitizer"
)

// TestConformanceGuarded runs the suite with every buffer, those between steps
// too, next to memory that must not be touched: with whole pieces, and with tiny
// ones on each level of instructions. A fault ends the process, so it is another
// one.
func TestConformanceGuarded(t *testing.T) {
	if sanitizer.Race && !longtest.Enabled() {
		t.Skip("the detector sees no more than the run without it")
	}
	const env = "LORIS_CPU_GUARD"
	if os.Getenv(env) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestConformanceGuarded$")
		cmd.Env = append(os.Environ(), env+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%.4000s", err, out)
		}
		return
	}
	all := map[string]*cpu.Backend{"whole": cpu.New()}
	if longtest.Enabled() {
		for name, b := range cpu.Levels() {
			all[name] = cpu.Split(b)
		}
	}
	for name, b := range all {
		t.Run(name, func(t *testing.T) { backendtest.Run(t, cpu.Guard(b), cpu.Device) })
	}
}
