package emit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// add is z = x + y with operands of an alignment.
func addition() *loop.Kernel {
	b := looptest.New(loop.None)
	x, y := b.Load(b.Arg(ir.F32, loop.Unit, false)), b.Load(b.Arg(ir.F32, loop.Unit, false))
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(aten.Add, x, y))
	return &b.Kernel
}

// TestPlans states which forms are chosen.
func TestPlans(t *testing.T) {
	large := Limits{Processors: 132, Threads: 1024}
	sum := func(axis loop.Axis) *loop.Kernel { return reduction(axis, ir.F32, loop.Unit, false) }
	for _, test := range []struct {
		name       string
		k          *loop.Kernel
		rows, cols int
		gap        int // bytes after each row
		offset     int
		want       string
	}{
		{"one long row", addition(), 1, 1 << 20, 0, 0, "each_x4 1024×1×1 of 256×1×1"},
		{"an odd number of elements", addition(), 1, 1<<20 + 1, 4, 0, "each_x4 1025×1×1 of 256×1×1"},
		{"a very long row", addition(), 1, 1 << 28, 0, 0, "each_x4 4224×1×1 of 256×1×1"},
		{"short rows", addition(), 1000, 8, 0, 0, "each_x4 1×8×1 of 2×128×1"},
		{"rows that are not aligned", addition(), 64, 64, 4, 0, "each_x1 1×4×1 of 16×16×1"},
		{"an operand that is not aligned", addition(), 1, 4096, 0, 4, "each_x1 4×1×1 of 256×1×1"},
		{"fewer elements than a pack", addition(), 1, 3, 0, 0, "each_x1 1×1×1 of 256×1×1"},
		{"no elements", addition(), 0, 3, 0, 0, ""},
		{"softmax of short rows", softmax(ir.F32), 4096, 64, 0, 0, "held_x4 128×1×1 of 8×32×1"},
		{"softmax of rows", softmax(ir.F32), 4096, 1024, 0, 0, "held_x4 1024×1×1 of 64×4×1"},
		{"softmax of long rows", softmax(ir.F32), 4096, 16384, 0, 0, "broad_x4 4096×1×1 of 512×1×1"},
		{"softmax of longer rows", softmax(ir.F32), 4096, 65536, 0, 0, "whole_x4 4096×1×1 of 256×1×1"},
		{"sums of rows", sum(loop.Columns), 4096, 1024, 0, 0, "whole_x4 1024×1×1 of 64×4×1"},
		{"a sum", sum(loop.Columns), 1, 1 << 20, 0, 0, "part0_x4 128×1×1 of 256×1×1, final0_x1 1×1×1 of 128×2×1"},
		{"sums of columns", sum(loop.Rows), 64, 8192, 0, 0, "whole_x4 256×1×1 of 8×16×1"},
		{"sums of few tall columns", sum(loop.Rows), 1 << 16, 16, 0, 0, "part0_x4 1×1×128 of 4×64×1, final0_x1 1×1×1 of 16×16×1"},
		{"a sum of a grid", sum(loop.Both), 64, 64, 256, 0, "whole_x4 1×1×1 of 256×1×1"},
		{"a sum of a large grid", sum(loop.Both), 1024, 1024, 256, 0, "part0_x4 128×1×1 of 256×1×1, final0_x1 1×1×1 of 128×2×1"},
	} {
		l, err := WriteLoop(test.k, Options{Scratch: make([]bool, len(test.k.Args))})
		if err != nil {
			t.Fatal(err)
		}
		g := &Geometry{Rows: test.rows, Cols: test.cols, Args: make([]Place, len(test.k.Args))}
		for i, a := range test.k.Args {
			g.Args[i] = Place{Offset: test.offset, Row: test.cols*a.DType.Size() + test.gap}
		}
		p := l.Plan(g, large)
		var got []string
		for _, launch := range p.Launches {
			if !slices.Contains(l.Entries(), launch.Entry) {
				t.Errorf("%s: there is no entry %s", test.name, launch.Entry)
			}
			form, _ := strings.CutPrefix(launch.Entry, l.Name+"_")
			got = append(got, fmt.Sprintf("%s %d×%d×%d of %d×%d×%d", form, launch.Grid[0], launch.Grid[1], launch.Grid[2], launch.Block[0], launch.Block[1], launch.Block[2]))
		}
		if s := strings.Join(got, ", "); s != test.want {
			t.Errorf("%s: %s, want %s", test.name, s, test.want)
		}
	}
}

// TestBind has addresses in the slots of operands, of scratch ones in the
// workspace.
func TestBind(t *testing.T) {
	l, err := WriteLoop(softmax(ir.F32), Options{Scratch: []bool{false, false, true}})
	if err != nil {
		t.Fatal(err)
	}
	p := l.Plan(&Geometry{Rows: 2, Cols: 100000, Args: []Place{{Row: 400000}, {Row: 400000}, {}}}, small)
	for i := range p.Launches {
		launch := &p.Launches[i]
		s := launch.Bind([]uint64{1000, 2000, 3000}, 5000, 6000)
		if s[slotWork] != 5000 || s[slotFault] != 6000 || s[l.operand(0)] != 1000 || s[l.operand(1)] != 2000 {
			t.Errorf("launch %d: %v", i, s)
		}
		if at := s[l.operand(2)]; at < 5000 || at+2*400000 > 5000+uint64(p.Workspace) {
			t.Errorf("launch %d: scratch at %d of %d", i, at-5000, p.Workspace)
		}
	}
}
