// Package importer holds what the importers of other people's graphs share: the weights of a model
// as Variables under the names of its file, and the recording of ops by name.
package importer

import (
	"fmt"
	"iter"

	"github.com/loris-ml/loris"
)

// Kind says what a weight is to the module that holds it.
type Kind uint8

const (
	// Parameter is trained and saved.
	Parameter Kind = iota
	// Buffer is saved and not trained.
	Buffer
	// Constant is neither: it belongs to the program.
	Constant
)

// Weights are the variables of a model in the order of its file. They implement nn.Module. The zero
// Weights are empty; one goroutine fills them before use.
type Weights struct {
	entries []weight
	names   map[string]int
}

type weight struct {
	name   string
	v      *loris.Variable
	kind   Kind
	frozen bool // a parameter that counts as a buffer
}

// Add adds a variable. Any name is allowed that is not taken.
func (w *Weights) Add(name string, v *loris.Variable, kind Kind) error {
	if w.names == nil {
		w.names = map[string]int{}
	}
	if _, taken := w.names[name]; taken {
		return fmt.Errorf("there are two weights %q", name)
	}
	w.names[name] = len(w.entries)
	w.entries = append(w.entries, weight{name: name, v: v, kind: kind})
	return nil
}

// Lookup returns the variable of a name, nil if there is none.
func (w *Weights) Lookup(name string) *loris.Variable {
	if i, ok := w.names[name]; ok {
		return w.entries[i].v
	}
	return nil
}

// Params implements nn.Module.
func (w *Weights) Params() iter.Seq2[string, *loris.Variable] {
	return w.each(func(e *weight) bool { return e.kind == Parameter && !e.frozen })
}

// Buffers implements nn.Module.
func (w *Weights) Buffers() iter.Seq2[string, *loris.Variable] {
	return w.each(func(e *weight) bool { return e.kind == Buffer || e.kind == Parameter && e.frozen })
}

// SetTraining implements nn.Module. It does nothing: a program trains or evaluates as it was
// exported.
func (w *Weights) SetTraining(bool) {}

// SetFrozen makes parameters buffers, or parameters again; nn.Freeze and nn.Unfreeze call it.
func (w *Weights) SetFrozen(vars map[*loris.Variable]bool, frozen bool) {
	for i := range w.entries {
		if e := &w.entries[i]; e.kind == Parameter && vars[e.v] {
			e.frozen = frozen
		}
	}
}

// each yields the weights that are wanted, each variable once, under its first name.
func (w *Weights) each(want func(*weight) bool) iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		seen := map[*loris.Variable]bool{}
		for i := range w.entries {
			e := &w.entries[i]
			if !want(e) || seen[e.v] {
				continue
			}
			seen[e.v] = true
			if !yield(e.name, e.v) {
				return
			}
		}
	}
}

// Replace puts other variables in the places of those that are keys of the map, for instance copies on
// another device.
func (w *Weights) Replace(vars map[*loris.Variable]*loris.Variable) {
	for i := range w.entries {
		if to := vars[w.entries[i].v]; to != nil {
			w.entries[i].v = to
		}
	}
}
