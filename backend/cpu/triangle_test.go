package cpu

import (
	"fmt"
	"slices"
	"testing"
)

// TestTriangles holds the places of triangles, which come from formulas, against those of loops.
func TestTriangles(t *testing.T) {
	b := New()
	for rows := range 5 {
		for cols := range 5 {
			for offset := -5; offset <= 5; offset++ {
				testTriangle(t, b, rows, cols, offset)
			}
		}
	}
	for _, d := range [][3]int{{300, 200, -50}, {200, 300, 50}, {257, 129, 0}, {1, 700, 3}, {700, 1, 0}, {64, 64, 63}} {
		testTriangle(t, b, d[0], d[1], d[2])
	}
}

func testTriangle(t *testing.T, b *Backend, rows, cols, offset int) {
	t.Helper()
	for _, op := range []string{"tril_indices", "triu_indices"} {
		var first, second []float32
		for i := range rows {
			for j := range cols {
				if op == "tril_indices" && j-i <= offset || op == "triu_indices" && j-i >= offset {
					first, second = append(first, float32(i)), append(second, float32(j))
				}
			}
		}
		p := program(t, fmt.Sprintf("program @triangle {\n%%0 = %s(row=%d, col=%d, offset=%d, dtype=i32)\n%%1 = cast(%%0, dtype=f32)\nreturn %%1 }", op, rows, cols, offset))
		if got, want := runOptimized(t, b, p, b.Supports), append(first, second...); !slices.Equal(got, want) {
			t.Errorf("%s of %d×%d, offset %d: %v, want %v", op, rows, cols, offset, got, want)
		}
	}
}
