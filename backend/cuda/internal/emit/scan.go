package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// Scan is cumsum, cumprod or cummax of x, seen as [Outer, N, Inner], along the
// middle. Its operands are dst and x, or values, i64 indices and x for a cummax,
// all dense and of one dtype.
type Scan struct {
	Op              ir.Op
	DType           ir.DType // any that is computed with; bool for cummax only
	Outer, N, Inner int
}

var scans = map[string]string{"cumsum": "CumSum", "cumprod": "CumProd", "cummax": "CumMax"}

const (
	// sideBySide is how many lines that lie side by side keep a device busy with a
	// thread for each.
	sideBySide = 4096
	// fewLines is how many lines leave a device idle.
	fewLines = 64
	// scanPart is how many elements a part of a line has at least.
	scanPart = 4096
	// mostScanParts bounds the parts, which one thread joins.
	mostScanParts = 256
)

// Plan returns how it is launched: threads have lines, blocks have them, or blocks
// have parts of them.
func (g *Scan) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	lines := g.Outer * g.Inner
	if lines*g.N == 0 {
		return &r.Plan
	}
	parts := 1
	if lines < fewLines {
		parts = max(1, min(g.N/scanPart, mostScanParts))
	}
	g.plan(r, parts, g.Inner > 1 && lines >= sideBySide)
	return &r.Plan
}

func (g *Scan) plan(r *routine, parts int, byThread bool) {
	lines := g.Outer * g.Inner
	targs := fmt.Sprintf("<%s, %s>", cxx.Stored(g.DType), scans[g.Op.String()])
	indices, x := 1, 2
	if g.Op != aten.Cummax {
		indices, x = 0, 1
	}
	carry := 0
	frame := func() *slots {
		return (&slots{}).at(0, 0).at(indices, 0).at(x, 0).at(Work, carry).num(lines, g.N, g.Inner, parts)
	}
	if byThread {
		r.each("scan_lines"+targs, "ScanFrame", frame(), lines)
		return
	}
	grid, block := [3]int{r.dev.blocks(lines * parts), 1, 1}, [3]int{r.dev.block(), 1, 1}
	if parts > 1 {
		carry = r.alloc(16 * lines * parts)
		r.launch("scan_parts"+targs, "ScanFrame", frame(), grid, block)
		r.each("scan_carry"+targs, "ScanFrame", frame(), lines)
	}
	r.launch("scan"+targs, "ScanFrame", frame(), grid, block)
}
