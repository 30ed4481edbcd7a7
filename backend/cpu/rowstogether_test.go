package cpu

import (
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
