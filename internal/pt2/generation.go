package pt2

import (
	"fmt"
	"sort"
	"strings"
)

// Generation says which of PyTorch's interfaces between a library and its host a
// library has.
type Generation struct {
	// Version is the first known PyTorch version with the interface ("2.15").
	Version string
	// Functions are the names of the container functions that it exports, sorted.
	Functions []string
}

// String returns the version and the number of functions.
func (g Generation) String() string {
	if g.Version == "" {
		return fmt.Sprintf("unknown (%d container functions)", len(g.Functions))
	}
	return fmt.Sprintf("PyTorch %s (%d container functions)", g.Version, len(g.Functions))
}

// Has reports whether the library exports a function.
func (g Generation) Has(name string) bool {
	i := sort.SearchStrings(g.Functions, name)
	return i < len(g.Functions) && g.Functions[i] == name
}

// marks are functions that tell the generations apart, the newest first.
var marks = []struct{ function, version string }{
	{"AOTInductorGetLastError", "2.15"},
	{"AOTInductorModelContainerUpdateUserManagedConstantBufferPairs", "2.11"},
	{"AOTInductorModelContainerRunSingleThreaded", "2.7"},
	{"AOTInductorModelContainerRun", "2.6"},
}

// Generation returns the interface of the library. A newer one than the newest
// known has its version: interfaces only grow.
func (l *Library) Generation() Generation {
	var g Generation
	for _, s := range l.Defined {
		if strings.HasPrefix(s.Name, "AOTInductor") {
			g.Functions = append(g.Functions, s.Name)
		}
	}
	sort.Strings(g.Functions)
	for _, m := range marks {
		if g.Has(m.function) {
			g.Version = m.version
			break
		}
	}
	return g
}
