package cpu

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// TestFewSums adds few elements of narrow floats to many, some of them to the same: the others are not converted.
func TestFewSums(t *testing.T) {
	for _, d := range []ir.DType{ir.BF16, ir.F16} {
		for _, c := range []struct {
			self, index, source, call string
			n                         int // elements of the source
		}{
			{"3000", "5", "5", "index_add(%x, 0, %i, %y)", 5},
			{"3000,1", "5", "5,1", "index_add(%x, 0, %i, %y)", 5},
			{"1,3000", "5", "1,5", "index_add(%x, 1, %i, %y)", 5},
			{"3000", "5", "7", `scatter_reduce(%x, 0, %i, %y, "sum")`, 7},
			{"5,600", "5,1", "5,1", "scatter_add(%x, 1, %i, %y)", 5},
			{"600,5", "5,1", "5,3", "scatter_add(%x, 0, %i, %y)", 15},
		} {
			sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %v[%s]
				%%y = parameter "y" : %v[%s]
				%%i = parameter "i" : i64[%s]
				return %s }`, d, c.self, d, c.source, c.index, c.call), 0, hashed(3000), hashed(c.n), []float64{3, 4, 3, 0, 3})
		}
	}
}

// TestFewRowsOfMany states that adding few rows to many takes no memory for each of the many.
func TestFewRowsOfMany(t *testing.T) {
	for _, body := range []string{
		"index_add(%x, 0, %i, %y)", `scatter_reduce(%x, 0, expand(reshape(%i, [5,1]), [5,8]), %y, reduce="sum")`,
	} {
		text := `program @p {
			%x = parameter "x" : f32[100000,8]
			%i = parameter "i" : i64[5]
			%y = parameter "y" : f32[5,8]
			return ` + body + ` }`
		if n := mustCompile(t, New(), text).plan.Workspace; n > 4096 {
			t.Errorf("%s: %d bytes of workspace", body, n)
		}
		sameAsRef(t, New(), text, 1e-6, hashed(800000), []float64{99999, 3, 3, 0, 7}, hashed(40))
	}
}

// TestAddsRowsOfBools adds true to what is true, which stays true, as often as it wraps a byte around.
func TestAddsRowsOfBools(t *testing.T) {
	n := 300
	index := make([]float64, n) // all to row 0, but for the last
	index[n-1] = 2
	for _, inner := range []int{1, 5, 40} {
		self, source := make([]float64, 3*inner), make([]float64, n*inner)
		for i := range source {
			source[i] = float64(i % inner % 2)
		}
		self[inner] = 1
		sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : bool[3,%d]
			%%i = parameter "i" : i64[%d]
			%%y = parameter "y" : bool[%d,%d]
			return index_add(%%x, 0, %%i, %%y) }`, inner, n, n, inner), 0, self, index, source)
	}
}

// TestTakesFromTheEnd selects by an index that counts from both ends, which takes no memory where it is of i64, nor do the
// elements of a matrix that is transposed.
func TestTakesFromTheEnd(t *testing.T) {
	index := make([]float64, 60)
	for i := range index {
		index[i] = float64(i*37%300 - 150)
	}
	for _, d := range []string{"bool", "bf16", "f32", "f64"} {
		text := `program @p { %x = parameter "x" : ` + d + `[3,50]
			%i = parameter "i" : i64[20,3]
			return take(%x, %i), take(transpose(%x, 0, 1), %i) }`
		p, _ := graph.Optimize(program(t, text), graph.Options{Supports: New().Supports})
		m, err := compile(New(), p, backend.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := m.plan.Workspace; n > 0 {
			t.Errorf("%s: %d bytes of workspace", d, n)
		}
	}
	for _, of := range []string{"take(%x, %i)", "take(transpose(%x, 0, 1), %i)", "take(mul(%x, %x), add(%i, %i))"} {
		for _, d := range []string{"i32", "i64"} {
			sameAsRef(t, New(), `program @p { %x = parameter "x" : f32[30,50]
				%i = parameter "i" : `+d+`[20,3]
				return `+of+` }`, 0, hashed(1500), index)
		}
	}
}
