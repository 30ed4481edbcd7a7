package cpu

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
)

// TestColumnsMadeRows checks that the columns of a kernel are made rows only where an operand's lie apart: each
// row is a call of its own then.
func TestColumnsMadeRows(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []int // of the columns, by operand
		want  bool
	}{
		{"adjacent and broadcast", []int{1, 0, 0, 1}, false},
		{"every second of one", []int{1, 2, 0, 1}, true},
	} {
		n := len(c.steps)
		k := &fuse.Kernel{Loop: &loop.Kernel{}, Args: make([]fuse.Arg, n), Grid: fuse.Grid{Rows: fuse.Dim{N: 50, Steps: make([]int, n)}, Cols: fuse.Dim{N: 100, Steps: c.steps}}}
		for _, s := range c.steps {
			k.Loop.Args = append(k.Loop.Args, loop.Arg{Cols: []loop.Stride{loop.Fixed, loop.Unit, loop.Free}[s]})
		}
		l := &lowering{engine: &journal{engine: &engine{together: func(*loop.Kernel) bool { return true }}}, tune: tuning{together: 32}}
		if got := l.takeTogether(k); got != c.want || (k.Grid.Rows.N == 100) != c.want {
			t.Errorf("%s: taken together %v, %d rows", c.name, got, k.Grid.Rows.N)
		}
	}
}

// TestFewRowsAcross holds results in another order than that of their rows, of fewer rows than a vector has, against the
// reference: lanes of rows that there are not must not be taken for those of others.
func TestFewRowsAcross(t *testing.T) {
	for _, s := range [][3]int{{1, 2, 2}, {1, 3, 2}, {1, 2, 3}, {500, 3, 2}, {500, 2, 3}, {300, 5, 2}, {40, 3, 4}, {40, 4, 8}} {
		var x []float64
		for i := range s[0] * s[1] * s[2] {
			x = append(x, float64(i%37)/8)
		}
		text := fmt.Sprintf(`program @p {
			%%x = parameter "x" : f32[%d,%d,%d]
			%%a = sin(%%x)
			return permute(add(%%a, 1.5), [0,2,1]), %%a
		}`, s[0], s[1], s[2])
		for _, b := range []*Backend{New(), Split(New())} {
			sameAsRef(t, b, text, 1e-5, x)
		}
	}
}
