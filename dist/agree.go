package dist

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/ir"
)

// Agree implements collective.Communicator: for each group of a run's collectives the ranks gather a hash
// over the collectives in their order, and the number of the run. Where hashes differ they gather the
// collectives themselves, so that every rank can name two ranks that differ. Sends and receives differ by
// rank and are compared when they meet.
func (w *world) Agree(ctx context.Context, uses []collective.Use) error {
	byGroup := map[string][]Use{}
	var names []string
	for i := range uses {
		u := &uses[i]
		g := w.group(u.Group)
		if g == nil {
			return w.unknown(u)
		}
		if u.Size != 0 && u.Size != g.Size() || u.Peer >= g.Size() {
			return fmt.Errorf("dist: %w: %s (at %s) was recorded for another size of group %q, which has %d ranks", ir.ErrArg, u.Text, u.Line, u.Group, g.Size())
		}
		if sends(u) {
			continue
		}
		if byGroup[u.Group] == nil {
			names = append(names, u.Group)
		}
		byGroup[u.Group] = append(byGroup[u.Group], Use{g.Rank(), u.Text, u.Line})
	}
	defer w.meters.agreed(time.Now())
	slices.Sort(names) // the order of the groups is the same on all ranks
	for _, name := range names {
		g, list := w.group(name), byGroup[name]
		first := list[0]
		if err := g.do(ctx, first.Text, first.Line, func(ctx context.Context) error { return g.agree(ctx, list) }); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) group(name string) *Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups[name]
}

// agree compares this rank's collectives with those of the others.
func (g *Group) agree(ctx context.Context, list []Use) error {
	text := binary.LittleEndian.AppendUint64(nil, g.runs)
	for _, u := range list {
		text = append(append(text, u.Text...), 0)
	}
	mine := ir.HashBytes(text).Append(nil)
	all := make([]byte, g.Size()*len(mine))
	if err := g.engine.AllGather(ctx, all, mine); err != nil {
		return err
	}
	g.runs++
	for at := 0; at < len(all); at += len(mine) {
		if string(all[at:at+len(mine)]) != string(mine) {
			return g.compare(ctx, list)
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
