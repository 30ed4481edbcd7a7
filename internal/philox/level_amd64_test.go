//go:build amd64 && !noasm

package philox

import "testing"

// eachLevel runs a test with every set of loops that the processor has.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	old := level
	defer func() { level = old }()
	for l, name := range []string{"go", "avx2", "avx512"}[:old+1] {
		level = l
		t.Run(name, f)
	}
}
