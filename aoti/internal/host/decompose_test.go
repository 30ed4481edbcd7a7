//go:build linux && cgo

package host

import "testing"

// byProgram is the function of an op that is recorded as a Program, computed on the CPU; nil
// for an op whose entry in the table has none. What the Program leaves to the host is the host's.
func byProgram(name string) opFunc {
	f := functions[shimLines()[shimPrefix+name]]
	if fn := opTable[f.op].decompose; fn != nil {
		return evaluateProgram(fn)
	}
	return nil
}

// What devices compute by Programs is what PyTorch's own functions give.
func TestDecompositionGoldens(t *testing.T) {
	checkGoldens(t, "testdata/goldens.json", byProgram)
}
