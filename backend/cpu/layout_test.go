package cpu

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
)

// A kernel has the grid and the code of an earlier one on operands that lie alike, as long as the engine
// has the code and cuts kernels in the same way, and unless its result is so large that who reads it counts.
func TestKernelsOnOperandsThatLieAlike(t *testing.T) {
	for _, c := range []struct {
		name, size string
		change     func(b *Backend)
		noted      int
	}{
		{"as they were", "64,64", func(*Backend) {}, 1},
		{"of other sizes", "64,64", func(b *Backend) { compileText(t, b, divisions("32,32")) }, 1},
		{"code was evicted", "64,64", func(b *Backend) { b.engine.evictions.Add(1) }, 0},
		{"in other pieces", "64,64", func(b *Backend) { b.tune.piece /= 2 }, 0},
		{"large results", "1100,1100", func(*Backend) {}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New()
			if b.engine == nil {
				t.Skip("a portable backend keeps nothing")
			}
			compileText(t, b, divisions(c.size))
			c.change(b)
			if j := compileText(t, b, division(c.size)); len(j.noted) != c.noted || len(j.codes) != 1 {
				t.Errorf("%d kernels are as they were kept, of %d, want %d of 1", len(j.noted), len(j.codes), c.noted)
			}
		})
	}
}

// divisions is a Program of two equal kernels, which products keep apart.
func divisions(size string) string {
	return `program @p {
	%x = parameter "x" : f32[` + size + `]
	%y = parameter "y" : f32[` + size + `]
	%0 = matmul(%x, %y)
	%1 = div(%x, %0)
	%2 = matmul(%1, %y)
	%3 = div(%x, %2)
	return %3
}`
}

// division is a Program of the first of them.
func division(size string) string {
	head, _, _ := strings.Cut(divisions(size), "\t%2")
	return head + "\treturn %1\n}"
}

func compileText(t *testing.T, b *Backend, text string) *journal {
	t.Helper()
	p, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	j := b.engine.journal(0)
	if _, err := compileNoting(t.Context(), b, p, backend.CompileOptions{}, j); err != nil {
		t.Fatal(err)
	}
	return j
}
