package nest

import (
	"testing"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// TestHintStreams holds which results pass by the cache: large ones that nothing reads, where operands are more
// than a cache holds, and huge ones.
func TestHintStreams(t *testing.T) {
	const mega = 1 << 20 // elements of four bytes
	row := strided.View{Rank: 2, Dims: [strided.MaxRank]int{mega / 1024, 1024}, Strides: [strided.MaxRank]int{0, 1}}
	dense := func(n int) strided.View { return strided.Dense([]int{n}) }
	for _, c := range []struct {
		name   string
		inputs []strided.View
		result int
		read   bool // something in the Program reads the result
		want   bool
	}{
		{"small", []strided.View{dense(mega)}, mega, false, false},
		{"both in the cache", []strided.View{dense(2 * mega)}, 2 * mega, false, false},
		{"three of them are more", []strided.View{dense(2 * mega), dense(2 * mega)}, 2 * mega, false, true},
		{"of a repeated row", []strided.View{row, row, row, row, row}, 2 * mega, false, false},
		{"large", []strided.View{dense(4 * mega)}, 4 * mega, false, true},
		{"large and read", []strided.View{dense(4 * mega)}, 4 * mega, true, false},
		{"huge and read", []strided.View{dense(1)}, 7 * mega, true, true},
	} {
		k := &fuse.Kernel{Loop: &loop.Kernel{}}
		add := func(v strided.View, r fuse.Role) {
			k.Args = append(k.Args, fuse.Arg{DType: ir.F32, View: v, Role: r, ID: 0})
			k.Loop.Args = append(k.Loop.Args, loop.Arg{DType: ir.F32, Cols: loop.Unit, Write: r == fuse.Output})
		}
		for _, v := range c.inputs {
			add(v, fuse.Input)
		}
		add(dense(c.result), fuse.Output)
		uses := &fuse.Uses{Users: make([][]int32, 1), Kept: []bool{true}}
		if c.read {
			uses.Users[0] = []int32{1}
		}
		Hint(k, uses)
		if got := k.Loop.Args[len(c.inputs)].Stream; got != c.want {
			t.Errorf("%s: stream is %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCostlyPieces holds that kernels of costly functions are cut into smaller pieces, and that
// reductions are not, whatever they cost.
func TestCostlyPieces(t *testing.T) {
	const n = 1 << 14
	for _, c := range []struct {
		axis loop.Axis
		cost float64
		want int
	}{{loop.None, 0.5, 1}, {loop.None, 5, 6}, {loop.Columns, 5, 1}} {
		k := &fuse.Kernel{Loop: &loop.Kernel{Axis: c.axis}, Cost: c.cost, Parts: 1}
		k.Grid.Rows.N, k.Grid.Cols.N = 1, n
		if u := Of(k, n).Units; u.Rows*u.Cols != c.want {
			t.Errorf("%v at %v ns: %d pieces, want %d", c.axis, c.cost, u.Rows*u.Cols, c.want)
		}
	}
}

// TestTallUnits checks that a unit has all rows of lines that are taken whole, whatever their kernel reduces.
func TestTallUnits(t *testing.T) {
	for _, axis := range []loop.Axis{loop.None, loop.Rows} {
		for _, cols := range []int{1, 31, 5_000, 70_001} {
			k := &fuse.Kernel{
				Loop: &loop.Kernel{Axis: axis, Height: 3, Args: make([]loop.Arg, 1)}, Args: make([]fuse.Arg, 1),
				Grid: fuse.Grid{Rows: fuse.Dim{N: 3, Steps: []int{1}}, Cols: fuse.Dim{N: cols, Steps: []int{3}}},
			}
			u := Of(k, Piece).Units
			if u.Rows != 1 || u.RowSize != 3 || u.Cols*u.ColSize < cols {
				t.Errorf("axis %d, 3x%d: %+v", axis, cols, u)
			}
		}
	}
}

// TestPartsOfProducts has more parts of floats that are multiplied than of those that are added up.
func TestPartsOfProducts(t *testing.T) {
	for _, c := range []struct {
		dtype   ir.DType
		product bool
		n, want int
	}{
		{ir.F32, false, 1 << 19, 16}, {ir.F32, true, 1 << 19, 64}, {ir.I64, true, 1 << 19, 16},
		{ir.F64, true, 1 << 13, 1}, {ir.F64, true, 1 << 30, 256}, {ir.F64, false, 1 << 30, 64},
	} {
		r := fuse.Reduction{Shape: ir.MakeShape(c.dtype, c.n), Mask: [ir.MaxRank]bool{true}, Axis: loop.Columns, Lines: 1, Product: c.product}
		if got := Cuts().Parts(r); got != c.want {
			t.Errorf("%d of %v, multiplied %v: %d parts, want %d", c.n, c.dtype, c.product, got, c.want)
		}
	}
}
