package vecmath_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti/internal/vecmath"
)

// inductor is every vector function that the headers of PyTorch 2.15 call with Sleef's
// names, for the vector types they call it with; earlier releases call some of these.
const inductor = `
acos acosh asin asinh atan atan2 atanh cos cosh erf exp exp2 expm1 lgamma log log10 log1p log2 pow sin sinh tan tanh: u10
sin cos: u35 (f)
erfc: u15
hypot: u05
copysign fmod nextafter:
`

func TestSymbolsAreWhatInductorCalls(t *testing.T) {
	var want []string
	for line := range strings.Lines(strings.TrimSpace(inductor)) {
		names, ulp, _ := strings.Cut(strings.TrimSpace(line), ":")
		ulp, floats, _ := strings.Cut(strings.TrimSpace(ulp), " ")
		if ulp != "" {
			ulp = "_" + ulp
		}
		for _, name := range strings.Fields(names) {
			for _, v := range vecmath.Vectors() {
				if v[0] == 'f' || floats == "" {
					want = append(want, "Loris_"+name+v+ulp)
				}
			}
		}
	}
	slices.Sort(want)
	if got := vecmath.Symbols(); !slices.Equal(got, want) {
		t.Errorf("Symbols() = %q, want %q", got, want)
	}
}
