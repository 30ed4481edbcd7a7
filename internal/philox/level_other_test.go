//go:build !amd64 || noasm

package philox

import "testing"

func eachLevel(t *testing.T, f func(t *testing.T)) { t.Run("go", f) }
