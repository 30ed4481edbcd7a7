package graph

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
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

// TestWidenParts counts the conversions of halves, and of wholes.
func TestWidenParts(t *testing.T) {
	for _, c := range []struct {
		name, text    string
		parts, wholes int
	}{
		{"halves for kernels", `program @p {
			%x = parameter "x" : bf16[8,16]
			%f = cast(%x, f32)
			return mul(slice(%f, 1, 0, 8, 1), exp(slice(%f, 1, 8, 16, 1)))
		}`, 2, 0},
		{"a half that is a result", `program @p {
			%x = parameter "x" : f16[8,16]
			%f = cast(%x, f32)
			return slice(%f, 1, 0, 8, 1), exp(slice(%f, 1, 8, 16, 1))
		}`, 1, 1},
		{"a half for a product", `program @p {
			%x = parameter "x" : f16[8,16]
			%f = cast(%x, f32)
			return matmul(slice(%f, 1, 0, 8, 1), slice(%f, 1, 8, 16, 1))
		}`, 0, 1},
		{"the whole beside a half", `program @p {
			%x = parameter "x" : bf16[8,16]
			%f = cast(%x, f32)
			return sum(%f, [1], false), exp(slice(%f, 1, 8, 16, 1))
		}`, 1, 1},
		{"half a vector for a matrix", `program @p {
			%x = parameter "x" : bf16[16]
			%y = parameter "y" : f32[4,8]
			return add(%y, slice(cast(%x, f32), 0, 0, 8, 1))
		}`, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			w := widenParts(p)
			text := w.String()
			if _, err := Parse(text); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			parts, wholes := 0, 0
			for i := range w.Instrs {
				if in := &w.Instrs[i]; in.Op == aten.Cast {
					if w.Shape(in.Out).SameDims(w.Shapes[0]) {
						wholes++
					} else {
						parts++
					}
				}
			}
			if parts != c.parts || wholes != c.wholes {
				t.Errorf("%d parts and %d wholes are made f32, want %d and %d:\n%s", parts, wholes, c.parts, c.wholes, text)
			}
		})
	}
}
