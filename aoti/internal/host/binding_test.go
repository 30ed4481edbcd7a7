//go:build linux && cgo

package host

import (
	"strings"
	"testing"
)

// Every binding is for functions that the shim has, and gives each of them a way to be computed.
func TestBindingsNameFunctions(t *testing.T) {
	for _, row := range bindings {
		if row.op != "" && eagerKernelOf(row.op) == nil {
			t.Errorf("there is no op %s for %s", row.op, row.functions)
		}
		for name := range strings.FieldsSeq(row.functions) {
			candidates := []string{name, "cpu_" + name, "cuda_" + name, "aten_" + name}
			if exact, ok := strings.CutPrefix(name, "="); ok {
				candidates = []string{exact}
			}
			found := 0
			for _, c := range candidates {
				line, ok := shimLines()[shimPrefix+c]
				if !ok {
					continue
				}
				found++
				if f := functions[line]; f.host == nil && f.device == nil && f.program == nil && !row.noFallback {
					t.Errorf("%s cannot be computed", c)
				}
			}
			if found == 0 {
				t.Errorf("the shim has no function %s", name)
			}
		}
	}
}

// Every function of the shim for the CPU is bound but for those that need other parts of PyTorch.
func TestFunctionsForTheCPUAreBound(t *testing.T) {
	absent := map[string]bool{
		"cpu__to_sparse": true, "cpu_to_sparse": true,
	}
	for line := range signatures {
		s := &signatures[line]
		name := strings.TrimPrefix(s.name, shimPrefix)
		if !s.math || strings.HasPrefix(name, "cuda_") {
			continue
		}
		if got := functions[line].host != nil; got == absent[name] {
			t.Errorf("%s is bound: %v", name, got)
		}
	}
}
