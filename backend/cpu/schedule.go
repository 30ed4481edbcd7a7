package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend"
)

// reorder brings steps forward that give up more memory than they take: an
// update of weights comes as soon as its gradient is there, and not when all
// gradients are. Other steps stay in the order of the Program.
func (l *lowering) reorder(aliases []backend.Alias) {
	r := newReordering(l, aliases)
	for i := range l.steps {
		r.take(int32(i))
	}
	steps := make([]step, len(l.steps))
	for at, i := range r.order {
		steps[at] = l.steps[i]
	}
	l.steps = steps
	for i := range l.bufs {
		l.bufs[i].first, l.bufs[i].last = -1, -1
	}
	for i := range steps {
		l.use(i)
	}
	l.keepOutputs()
}

// reordering is the state of reorder. Steps are known by their numbers in the
// order of the Program.
type reordering struct {
	l     *lowering
	order []int32
	done  []bool
	// waits counts the steps that must come first, and after lists those that wait.
	waits []int32
	after [][]int32
	// uses counts the steps left that use a buffer, users lists all.
	uses  []int32
	users [][]int32
	donor []int32 // by buffer: the parameter whose memory it is to take, or -1
	ready []int32 // candidates that may come forward
}

func newReordering(l *lowering, aliases []backend.Alias) *reordering {
	n := len(l.steps)
	r := &reordering{
		l: l, order: make([]int32, 0, n), done: make([]bool, n), waits: make([]int32, n), after: make([][]int32, n),
		uses: make([]int32, len(l.bufs)), users: make([][]int32, len(l.bufs)), donor: make([]int32, len(l.bufs)),
	}
	for i := range r.donor {
		r.donor[i] = -1
		for _, a := range aliases {
			if out := l.bufs[i].output; out >= 0 && out == a.Output && a.Input >= 0 && a.Input < len(l.p.Params) {
				r.donor[i] = int32(a.Input)
			}
		}
	}
	wrote := make([]int32, len(l.bufs)) // the last step that wrote a buffer, + 1
	readers := make([][]int32, len(l.bufs))
	for i := range l.steps {
		s, at := &l.steps[i], int32(i)
		for _, b := range s.reads {
			if wrote[b] > 0 {
				r.before(wrote[b]-1, at)
			}
			readers[b] = append(readers[b], at)
		}
		for _, b := range s.writes {
			if wrote[b] > 0 {
				r.before(wrote[b]-1, at)
			}
			for _, x := range readers[b] {
				r.before(x, at)
			}
			wrote[b], readers[b] = at+1, readers[b][:0]
		}
		for _, b := range buffersOf(s) {
			r.uses[b]++
			r.users[b] = append(r.users[b], at)
		}
	}
	return r
}

// buffersOf returns the distinct buffers that a step uses.
func buffersOf(s *step) []int {
	all := append(slices.Clone(s.reads), s.writes...)
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *reordering) before(x, y int32) {
	if x == y || len(r.after[x]) > 0 && r.after[x][len(r.after[x])-1] == y {
		return
	}
	r.after[x] = append(r.after[x], y)
	r.waits[y]++
}

// take puts a step into its place, unless it came forward, and then all that may
// come forward because of it.
func (r *reordering) take(i int32) {
	if r.done[i] {
		return
	}
	r.put(i)
	for len(r.ready) > 0 {
		k := 0
		for j, c := range r.ready {
			if c < r.ready[k] {
				k = j
			}
		}
		c := r.ready[k]
		r.ready = slices.Delete(r.ready, k, k+1)
		if !r.done[c] && r.waits[c] == 0 && r.frees(c) {
			r.put(c)
		}
	}
}

func (r *reordering) put(i int32) {
	r.order = append(r.order, i)
	r.done[i] = true
	for _, next := range r.after[i] {
		if r.waits[next]--; r.waits[next] == 0 {
			r.ready = append(r.ready, next)
		}
	}
	for _, b := range buffersOf(&r.l.steps[i]) {
		if r.uses[b]--; r.uses[b] != 1 {
			continue
		}
		for _, last := range r.users[b] {
			if !r.done[last] && r.waits[last] == 0 {
				r.ready = append(r.ready, last)
			}
		}
	}
}

// frees reports whether a step that may run now leaves less memory in use than
// there was.
func (r *reordering) frees(i int32) bool {
	s := &r.l.steps[i]
	net := 0
	for _, b := range buffersOf(s) {
		buf := &r.l.bufs[b]
		last := r.uses[b] == 1 && buf.output < 0
		switch {
		case buf.kind != workBuffer:
		case slices.Contains(s.writes, b):
			if !last && !r.begun(b, i) && !r.takesOver(b, i) {
				net += buf.bytes
			}
		case last:
			net -= buf.bytes
		}
	}
	return net < 0
}

// begun reports whether a step other than i has written a buffer already.
func (r *reordering) begun(b int, i int32) bool {
	for _, u := range r.users[b] {
		if u != i && r.done[u] {
			return true
		}
	}
	return false
}

// takesOver reports whether a result may have the memory of the parameter that it
// replaces: nothing else is left to read that.
func (r *reordering) takesOver(b int, i int32) bool {
	p := r.donor[b]
	if p < 0 || r.l.bufs[p].bytes != r.l.bufs[b].bytes {
		return false
	}
	return r.uses[p] == 0 || r.uses[p] == 1 && slices.Contains(r.l.steps[i].inPlace, pair{b, int(p)})
}
