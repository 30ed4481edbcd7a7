package graph

import (
	"strings"
	"testing"
)

// TestWiden counts the conversions of a Program in which several kernels use a 16-bit float as f32.
func TestWiden(t *testing.T) {
	for _, c := range []struct {
		name, text string
		casts      int
	}{
		{"a reduction between two uses", `program @p {
			%x = parameter "x" : bf16[8,16]
			%f = cast(%x, f32)
			%s = sum(%f, [1], true)
			return sub(%f, %s)
		}`, 2},
		{"uses without anything between them", `program @p {
			%x = parameter "x" : f16[8,16]
			%f = cast(%x, f32)
			return mul(exp(%f), neg(%f))
		}`, 1},
		{"a use that needs it in memory", `program @p {
			%x = parameter "x" : bf16[8,8]
			%f = cast(%x, f32)
			%s = sum(%f, [1], true)
			return matmul(%f, %s), sub(%f, %s)
		}`, 3},
		{"a result", `program @p {
			%x = parameter "x" : bf16[8,8]
			%f = cast(%x, f32)
			%s = sum(%f, [1], true)
			return %f, sub(%f, %s)
		}`, 3},
		{"fewer elements than the use", `program @p {
			%x = parameter "x" : bf16[8]
			%y = parameter "y" : f32[8,8]
			%f = cast(%x, f32)
			return add(%y, %f), sum(mul(%y, %f), [0])
		}`, 1},
		{"integers", `program @p {
			%x = parameter "x" : i16[8,16]
			%f = cast(%x, f32)
			%s = sum(%f, [1], true)
			return sub(%f, %s)
		}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			w := widen(p)
			if _, err := Parse(w.String()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(w.String(), "cast("); got != c.casts {
				t.Errorf("%d casts, want %d:\n%v", got, c.casts, w)
			}
		})
	}
}
