package cpu

import (
	"container/heap"
	"slices"

	"github.com/loris-ml/loris/backend"
)

// reorder brings steps forward that give up more memory than they take: an
// update of weights comes as soon as its gradient is there, and not when all
// gradients are. Other steps stay in the order of the Program.
func (l *lowering) reorder(aliases []backend.Alias) {
	l.findDonors(aliases)
	r := newReordering(l)
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

// findDonors notes which parameters the results may take the memory of.
func (l *lowering) findDonors(aliases []backend.Alias) {
	donors := map[int]int{} // by result
	for _, a := range aliases {
		if _, twice := donors[a.Output]; !twice && a.Input >= 0 && a.Input < len(l.p.Params) {
			donors[a.Output] = a.Input
		}
	}
	for i := range l.bufs {
		b := &l.bufs[i]
		if d, ok := donors[b.output]; ok && b.output >= 0 && l.bufs[d].bytes == b.bytes {
			b.donor = d
		}
	}
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
	// touched lists the buffers that a step uses, once each, and users the steps
	// that use a buffer; uses counts those of them that are left.
	touched [][]int
	users   [][]int32
	uses    []int32
	ready   stepHeap // candidates that may come forward
}

// stepHeap is a heap of steps with the least number first.
type stepHeap []int32

func (n stepHeap) Len() int           { return len(n) }
func (n stepHeap) Less(i, j int) bool { return n[i] < n[j] }
func (n stepHeap) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *stepHeap) Push(x any)        { *n = append(*n, x.(int32)) }
func (n *stepHeap) Pop() any {
	x := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return x
}

func newReordering(l *lowering) *reordering {
	n := len(l.steps)
	r := &reordering{
		l: l, order: make([]int32, 0, n), done: make([]bool, n), waits: make([]int32, n), after: make([][]int32, n),
		touched: make([][]int, n), users: make([][]int32, len(l.bufs)), uses: make([]int32, len(l.bufs)),
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
		r.touched[i] = buffersOf(s)
		for _, b := range r.touched[i] {
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
		c := heap.Pop(&r.ready).(int32)
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
			heap.Push(&r.ready, next)
		}
	}
	for _, b := range r.touched[i] {
		if r.uses[b]--; r.uses[b] != 1 {
			continue
		}
		for _, last := range r.users[b] {
			if !r.done[last] && r.waits[last] == 0 {
				heap.Push(&r.ready, last)
			}
		}
	}
}

// frees reports whether a step that may run now leaves less memory in use than
// there was.
func (r *reordering) frees(i int32) bool {
	s := &r.l.steps[i]
	net := 0
	for _, b := range r.touched[i] {
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
	d := r.l.bufs[b].donor
	if d < 0 {
		return false
	}
	return r.uses[d] == 0 || r.uses[d] == 1 && slices.Contains(r.l.steps[i].inPlace, pair{b, d})
}
