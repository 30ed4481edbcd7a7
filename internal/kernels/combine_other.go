//go:build !amd64 || noasm

package kernels

// nativeRowLoops returns the loops that this processor can run: none.
func nativeRowLoops() (l allCombiners) { return l }

// hasRamps says whether this processor has loops over equal steps: it has not, and these are not called.
const hasRamps = false

func ramp(int, *byte, *[32]byte, *[32]byte, int) {}

func lineSingles(*float32, *[8]float64, float64, float64, float64, int) {}

func lineDoubles(*float64, *[8]float64, float64, float64, float64, int) {}
