//go:build !amd64 || noasm

package vec

import "testing"

func eachLevel(t *testing.T, f func(t *testing.T)) { t.Run("go", f) }
