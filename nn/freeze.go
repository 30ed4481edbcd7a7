package nn

import (
	"iter"

	"github.com/loris-ml/loris"
)

// Freeze makes the parameters of a module that it selects by their names in m.Params, nil: all
// of them, buffers: they are saved and loaded but no longer among Params, from which
// optimisers are made. A parameter that modules within m share is frozen in all of them.
// Modules within that neither embed Base nor have a method
// SetFrozen(map[*loris.Variable]bool, bool), as imported models have, keep theirs.
func Freeze(m Module, which func(name string) bool) { setFrozen(m, m.Params(), which, true) }

// Unfreeze makes frozen parameters, selected by their names in m.Buffers, parameters again.
// Other buffers stay.
func Unfreeze(m Module, which func(name string) bool) { setFrozen(m, m.Buffers(), which, false) }

func setFrozen(m Module, vars iter.Seq2[string, *loris.Variable], which func(name string) bool, frozen bool) {
	set := map[*loris.Variable]bool{}
	for name, v := range vars {
		if which == nil || which(name) {
			set[v] = true
		}
	}
	mark(m, set, frozen)
}

// mark sets the mark of entries with the given variables.
func mark(m Module, set map[*loris.Variable]bool, frozen bool) {
	if f, ok := m.(interface {
		SetFrozen(vars map[*loris.Variable]bool, frozen bool)
	}); ok {
		f.SetFrozen(set, frozen)
		return
	}
	b, ok := m.(interface{ base() *Base })
	if !ok {
		return
	}
	entries := b.base().entries
	for i := range entries {
		e := &entries[i]
		if e.module != nil {
			mark(e.module, set, frozen)
		} else if !e.buffer && set[e.v] {
			e.frozen = frozen
		}
	}
}

func (b *Base) base() *Base { return b }
