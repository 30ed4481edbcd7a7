package vecmath

import (
	"runtime"
	"slices"
)

// A Function is one of the mathematical functions that vectors of every width have.
type Function struct {
	Name   string  // as in C, without the suffix of a type
	Args   int     // 1 or 2
	Suffix string  // the accuracy in the symbol's name: "_u10", or "" for exact ones
	ULP    float64 // the largest error in units of the last place; 0 for exact ones
	Only32 bool    // for floats only
}

// functions lists what Inductor's vector headers call.
var functions = []Function{
	{Name: "acos", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "acosh", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "asin", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "asinh", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "atan", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "atan2", Args: 2, Suffix: "_u10", ULP: 1},
	{Name: "atanh", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "copysign", Args: 2},
	{Name: "cos", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "cos", Args: 1, Suffix: "_u35", ULP: 3.5, Only32: true},
	{Name: "cosh", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "erf", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "erfc", Args: 1, Suffix: "_u15", ULP: 1.5},
	{Name: "exp", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "exp2", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "expm1", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "fmod", Args: 2},
	{Name: "hypot", Args: 2, Suffix: "_u05", ULP: 0.501},
	{Name: "lgamma", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "log", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "log10", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "log1p", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "log2", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "nextafter", Args: 2},
	{Name: "pow", Args: 2, Suffix: "_u10", ULP: 1},
	{Name: "sin", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "sin", Args: 1, Suffix: "_u35", ULP: 3.5, Only32: true},
	{Name: "sinh", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "tan", Args: 1, Suffix: "_u10", ULP: 1},
	{Name: "tanh", Args: 1, Suffix: "_u10", ULP: 1},
}

// Functions lists the mathematical functions, ordered by name and then accuracy.
func Functions() []Function { return slices.Clone(functions) }

// Vectors lists the vector types of this machine's architecture, as they are written in
// the symbols: f16, d8 (AVX-512), f8, d4 (AVX2), f4, d2 (128 bits).
// It is empty where the package provides nothing: without cgo, and on systems other than
// linux/amd64 and linux/arm64.
func Vectors() []string {
	switch {
	case !provided:
		return nil
	case runtime.GOARCH == "amd64":
		return []string{"f16", "d8", "f8", "d4", "f4", "d2"}
	default:
		return []string{"f4", "d2"}
	}
}

// Symbol is the name of f for a vector type: "Loris_expf16_u10".
func (f Function) Symbol(vector string) string {
	return "Loris_" + f.Name + vector + f.Suffix
}

// Symbols lists every name that the package provides to libraries, sorted. A program
// holds them by importing the package, and exports them when it is linked with -rdynamic.
func Symbols() []string {
	var names []string
	for _, v := range Vectors() {
		for _, f := range functions {
			if f.Only32 && v[0] == 'd' {
				continue
			}
			names = append(names, f.Symbol(v))
		}
	}
	slices.Sort(names)
	return names
}
