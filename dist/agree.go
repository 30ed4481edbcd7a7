package dist

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

// Agree implements collective.Communicator: for each group of a run's collectives the ranks gather a hash
// over the collectives in their order, and the number of the run. Where hashes differ they gather the
// collectives themselves, so that every rank can name two ranks that differ. Sends and receives differ by
// rank and are compared when they meet.
func (w *world) Agree(ctx context.Context, uses []collective.Use) error {
	as, ok := uses[0].Meter.(*agreements)
	if !ok || as.w != w {
		var err error
		if as, err = w.agreements(uses); err != nil {
			return err
		}
		uses[0].Meter = as
	}
	defer w.meters.agreed(w.meters.now())
	for _, a := range as.groups {
		first := &a.uses[0]
		if err := a.group.do(ctx, first.Text, first.Line, a.agree); err != nil {
			return err
		}
	}
	return nil
}

// agreements are what a run's ranks agree about, in the order of the groups, which is the same on all of
// them. They are made once for the collectives of a Program.
type agreements struct {
	w      *world
	groups []*agreement
}

// agreement is about the collectives of one group.
type agreement struct {
	group *Group
	uses  []Use
	hash  ir.Hash
}

func newAgreement(g *Group, uses []Use) *agreement {
	var text []byte
	for _, u := range uses {
		text = append(append(text, u.Text...), 0)
	}
	return &agreement{g, uses, ir.HashBytes(text)}
}

func (w *world) agreements(uses []collective.Use) (*agreements, error) {
	byGroup := map[string][]Use{}
	for i := range uses {
		u := &uses[i]
		g := w.group(u.Group)
		if g == nil {
			return nil, w.unknown(u)
		}
		if u.Size != 0 && u.Size != g.Size() || u.Peer >= g.Size() {
			return nil, fmt.Errorf("dist: %w: %s (at %s) was recorded for another size of group %q, which has %d ranks", ir.ErrArg, u.Text, u.Line, u.Group, g.Size())
		}
		if !sends(u) {
			byGroup[u.Group] = append(byGroup[u.Group], Use{g.Rank(), u.Text, u.Line})
		}
	}
	as := &agreements{w: w}
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		as.groups = append(as.groups, newAgreement(w.group(name), byGroup[name]))
	}
	return as, nil
}

func (w *world) group(name string) *Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups[name]
}

// agree compares this rank's collectives with those of the others. The number of the run goes into the
// hash, so that hashes of different runs differ.
func (a *agreement) agree(ctx context.Context) error {
	g := a.group
	h := a.hash
	h.Lo ^= g.runs * 0x9e3779b97f4a7c15 // odd: no two runs have the same
	var room [16]byte
	mine := h.Append(room[:0])
	all := g.scratch(0, g.Size()*len(mine))
	if err := g.engine.AllGather(ctx, all, mine); err != nil {
		return err
	}
	g.runs++
	for _, theirs := range g.cut(all) {
		if string(theirs) != string(mine) {
			return g.compare(ctx, a.uses)
		}
	}
	return nil
}

// compare gathers the collectives of all ranks and returns the first difference.
func (g *Group) compare(ctx context.Context, list []Use) error {
	mine, err := json.Marshal(list)
	if err != nil {
		return err
	}
	n := g.Size()
	sizes := make([]byte, 8*n)
	if err := g.engine.AllGather(ctx, sizes, binary.LittleEndian.AppendUint64(nil, uint64(len(mine)))); err != nil {
		return err
	}
	longest := uint64(0)
	for r := range n {
		longest = max(longest, binary.LittleEndian.Uint64(sizes[8*r:]))
	}
	all := make([]byte, int(longest)*n)
	if err := g.engine.AllGather(ctx, all, append(mine, make([]byte, int(longest)-len(mine))...)); err != nil {
		return err
	}
	lists := make([][]Use, n)
	for r := range lists {
		if err := json.Unmarshal(all[r*int(longest):][:binary.LittleEndian.Uint64(sizes[8*r:])], &lists[r]); err != nil {
			return fmt.Errorf("rank %d sent what is no list of collectives: %w", r, err)
		}
	}
	return g.difference(lists)
}

// difference finds the first collective that differs between rank 0 and another.
func (g *Group) difference(lists [][]Use) error {
	use := func(r, i int) Use {
		if i < len(lists[r]) {
			return lists[r][i]
		}
		return Use{Rank: r}
	}
	for i := 0; ; i++ {
		for r := range lists {
			if a, b := use(0, i), use(r, i); a.Text != b.Text {
				return &MismatchError{Group: g.name, Index: i, Uses: [2]Use{a, b}}
			}
		}
		if !slices.ContainsFunc(lists, func(l []Use) bool { return i < len(l) }) {
			return fmt.Errorf("the ranks are at different runs: this one at run %d", g.runs)
		}
	}
}
