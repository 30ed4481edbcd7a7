package ir

import "testing"

// TestReplay counts how often Replay calls the function that records.
func TestReplay(t *testing.T) {
	const steps = 20
	number := func(b *Builder, x Value) Value {
		v, _ := b.BinaryNumber(opAdd, x, 1.0, false)
		return v
	}
	for name, c := range map[string]struct {
		b    *Builder
		step func(b *Builder, i int, x, y Value) (in []*Node, record func() []Value)
		want int
	}{
		"the same": {NewRecorder(), func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node, y.Node}, func() []Value { return []Value{b.Add(x, y), y} }
		}, 2},
		"always with other inputs": {NewRecorder(), func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			z := tensor(F32, 2+i)
			return []*Node{x.Node, z.Node}, func() []Value { return []Value{b.Exp(x)} }
		}, steps},
		"without a trie": {&Builder{}, func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node}, func() []Value { return []Value{b.Exp(x)} }
		}, steps},
		"an input that is not listed": {NewRecorder(), func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node}, func() []Value { return []Value{b.Add(x, y)} }
		}, steps},
		"a number of its own": {NewRecorder(), func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node}, func() []Value { return []Value{number(b, x)} }
		}, steps},
		"a result that is not recorded": {NewRecorder(), func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node}, func() []Value { return []Value{y} }
		}, steps},
		"with lines": {&Builder{trie: newTrie(), Lines: LinesAlways}, func(b *Builder, i int, x, y Value) ([]*Node, func() []Value) {
			return []*Node{x.Node}, func() []Value { return []Value{b.Exp(x)} }
		}, steps},
	} {
		called := 0
		for i := range steps {
			x, y := tensor(F32, 2), tensor(F32, 2)
			in, record := c.step(c.b, i, x, y)
			outs := c.b.Replay(7, in, nil, func() []Value {
				called++
				return record()
			})
			for k, want := range record() {
				if outs[k].Hash() != want.Hash() {
					t.Errorf("%s: result %d of step %d is another", name, k, i)
				}
			}
			c.b.NextStep()
		}
		if called != c.want {
			t.Errorf("%s: %d calls in %d steps, want %d", name, called, steps, c.want)
		}
	}
}

// TestReplayAsksWhere records what is the same but for its inputs, its shape or
// what it is called.
func TestReplayAsksWhere(t *testing.T) {
	b := NewRecorder()
	record := func(what int, shape uint32, x Value) {
		t.Helper()
		called := false
		b.Replay(what, []*Node{x.Node}, []uint32{shape}, func() []Value {
			called = true
			return []Value{b.Exp(x)}
		})
		b.NextStep()
		if !called {
			t.Errorf("%d, %d, %v: recorded as something else", what, shape, x.Shape())
		}
	}
	x := func() Value { return tensor(F32, 3) }
	record(1, 1, x())
	record(1, 1, x())
	record(2, 1, x())
	record(1, 2, x())
	record(1, 1, tensor(F32, 4))
	record(1, 1, NewLeaf(nil, MakeShape(F32, 3), Device{Type: 1}).Out(0))
	n, _ := ScalarValue(0.5)
	record(1, 1, NewScalar(n.Node.Leaf().(*ScalarLeaf), F32, Device{}, false).Out(0))
	record(1, 1, NewScalar(n.Node.Leaf().(*ScalarLeaf), F32, Device{}, true).Out(0))
}
