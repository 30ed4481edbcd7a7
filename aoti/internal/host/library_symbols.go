//go:build linux && cgo

package host

import (
	"sync"

	"github.com/loris-ml/loris/internal/pt2"
)

// shimLines are the lines of symbolText by name.
var shimLines = sync.OnceValue(func() map[string]int {
	m := make(map[string]int, len(signatures))
	for i := range signatures {
		m[signatures[i].name] = i
	}
	return m
})

// Provides reports whether the process has a function that libraries call, by
// the name that it has in a library as PyTorch made it ("aoti_torch_clone").
func Provides(name string) bool { return builtIn(name) || customShim(name) != nil }

// builtIn is Provides without the functions of custom ops.
func builtIn(name string) bool {
	if line, ok := shimLines()[name]; ok {
		return implemented(line)
	}
	return exported(pt2.HostName(name))
}
