package emit

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// MostSlots bounds the parameter of an entry: 4096 bytes.
const MostSlots = 512

const (
	// shareSlots is the size of Share in prelude.cuh.
	shareSlots = 6
	// mostShared bounds the blocks of a kernel that shares a launch: more keep a
	// device busy.
	mostShared = 2 * manyBlocks
)

// part is what a launch is as a part of another.
type part struct {
	// name is that of the forms, and forms their source; both are empty for a
	// function of the library.
	name, forms string
	// call is the function to call, with a frame and a Grid and, if it has forms, pool
	// words of shared memory.
	frame, call string
	pool        int
}

// part returns what a launch of an entry is as a part of another; nil if its blocks
// are larger than others.
func (l *Loop) part(form, entry string) *part {
	if form == "broad" {
		return nil
	}
	return &part{name: l.Name, forms: l.forms, frame: l.Frame(), call: l.instance(entry), pool: l.pool()}
}

// Shares reports whether the launch can be a part of another.
func (l *Launch) Shares(dev Limits) bool {
	return l.part != nil && numel(l.Block[:]) == dev.block() && numel(l.Grid[:]) <= mostShared
}

// Slots returns how many slots the launch takes as a part of another.
func (l *Launch) Slots() int { return shareSlots + len(l.Params) }

// Member is a launch that is to share another.
type Member struct {
	*Launch
	// Number tells which operand of all an operand of its own is.
	Number func(operand int) int
	// Fault is where its fault is, in bytes from that of all.
	Fault int
}

// Horizontal returns one launch that does what several do. The launches have no more
// than MostSlots in all, and none depends on another. The blocks of each follow
// those of the launch before.
func Horizontal(launches []Member) Launch {
	order := make([]int, len(launches))
	for i := range order {
		order[i] = i
	}
	// Those of one entry lie beside each other, and share its code.
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(launches[a].Entry, launches[b].Entry) })
	t := horizontal{}
	all := Launch{Block: [3]int{numel(launches[0].Block[:]), 1, 1}, Grid: [3]int{0, 1, 1}}
	for _, i := range order {
		l := launches[i].Launch
		if n := len(t.entries); n == 0 || t.entries[n-1].Entry != l.Entry {
			t.entries, t.counts = append(t.entries, l), append(t.counts, 0)
		}
		t.counts[len(t.counts)-1]++
		for _, v := range []int{all.Grid[0], l.Grid[0], l.Grid[1], l.Grid[2], bits.Len(uint(l.Block[0])) - 1, bits.Len(uint(l.Block[1])) - 1} {
			all.Params = append(all.Params, uint64(v))
		}
		all.Grid[0] += numel(l.Grid[:])
	}
	for _, i := range order {
		for _, a := range launches[i].Addresses {
			a.Slot += len(all.Params)
			switch {
			case a.Operand == Fault:
				a.Offset += launches[i].Fault
			case a.Operand >= 0:
				a.Operand = launches[i].Number(a.Operand)
			}
			all.Addresses = append(all.Addresses, a)
		}
		all.Params = append(all.Params, launches[i].Params...)
	}
	all.Entry, all.Source = t.name(), t.source
	return all
}

// horizontal is the entry of a launch that kernels share.
type horizontal struct {
	entries []*Launch // one of each
	counts  []int     // how many there are
}

func (t *horizontal) name() string {
	h := sha256.New()
	for i, l := range t.entries {
		fmt.Fprintln(h, l.Entry, t.counts[i])
	}
	return fmt.Sprintf("horizontal_%x", h.Sum(nil)[:8])
}

// source returns the complete source. The loops are in a namespace: one that has
// them, too, may be compiled beside it.
func (t *horizontal) source() string {
	name := t.name()
	var b, frame, calls strings.Builder
	b.WriteString(prelude)
	if slices.ContainsFunc(t.entries, func(l *Launch) bool { return l.part.forms == "" }) {
		b.WriteString(library)
	}
	fmt.Fprintf(&b, "// kernel that is several\nnamespace in_%s {\n", name)
	seen := map[string]bool{"": true}
	pool, first := 1, 0
	for i, l := range t.entries {
		p := l.part
		call := fmt.Sprintf("in_%s::%s(f.frame%d[k - %d], f.share[k].grid(), pool)", name, p.call, i, first)
		if p.forms == "" {
			call = fmt.Sprintf("%s(f.frame%d[k - %d], f.share[k].grid())", p.call, i, first)
		}
		if !seen[p.name] {
			seen[p.name] = true
			b.WriteString(p.forms)
			pool = max(pool, p.pool)
		}
		first += t.counts[i]
		fmt.Fprintf(&frame, "  %s frame%d[%d];\n", p.frame, i, t.counts[i])
		fmt.Fprintf(&calls, "  if (k < %d) return %s;\n", first, call)
	}
	fmt.Fprintf(&b, "struct Frames {\n  Share share[%d];\n%s};\n\nINLINE void all(const Frames& f, u64* pool) {\n", first, &frame)
	fmt.Fprintf(&b, "  int k = 0;\n  while (k + 1 < %d && blockIdx.x >= f.share[k + 1].start) k++;\n%s}\n}\n", first, &calls)
	fmt.Fprintf(&b, "\nextern \"C\" __global__ void __launch_bounds__(%d, 2) %s(const __grid_constant__ in_%s::Frames f) {\n%s  in_%s::all(f, pool);\n}\n",
		mostThreads, name, name, poolWords(pool), name)
	return b.String()
}
