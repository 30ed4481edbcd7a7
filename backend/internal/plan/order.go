package plan

import (
	"container/heap"
	"slices"
)

// reorder brings steps forward that free more memory than they take: an update of weights comes
// as soon as its gradient is there, and not when all gradients are. Other steps stay in the order
// of the Program.
func (p *Plan[P]) reorder() {
	r := newReordering(p)
	for i := range p.Steps {
		r.take(int32(i))
	}
	permute(p.Steps, r.order)
}

// permute puts element order[i] of a list at i, for all i. It uses order up.
func permute[T any](list []T, order []int32) {
	for i := range order {
		if order[i] == int32(i) {
			continue
		}
		first, at := list[i], int32(i)
		for order[at] != int32(i) {
			from := order[at]
			list[at], order[at] = list[from], at
			at = from
		}
		list[at], order[at] = first, at
	}
}

// reordering is the state of reorder. Steps have their numbers in the order of the Program.
type reordering[P any] struct {
	p     *Plan[P]
	order []int32
	done  []bool
	// waits counts, by step, the steps that must come before it; after lists those that must
	// come after it.
	waits []int32
	after [][]int32
	// touched lists, by step, the distinct buffers that it uses; users lists, by buffer, the steps
	// that use it, and uses counts those of them that are left.
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

func newReordering[P any](p *Plan[P]) *reordering[P] {
	n := len(p.Steps)
	r := &reordering[P]{p: p, order: make([]int32, 0, n), done: make([]bool, n), waits: make([]int32, n), uses: make([]int32, len(p.Buffers))}
	r.touch()
	wrote := make([]int32, len(p.Buffers)) // the last step that wrote a buffer, + 1
	readers := lists(r.uses)
	var edges edges
	latest := make([]int32, n) // by step: the last that was found to come after it, + 1
	before := func(x, y int32) {
		if x != y && latest[x] != y+1 {
			latest[x] = y + 1
			edges = append(edges, [2]int32{x, y})
			r.waits[y]++
		}
	}
	for i := range p.Steps {
		s, at := &p.Steps[i], int32(i)
		for _, b := range s.Reads {
			if wrote[b] > 0 {
				before(wrote[b]-1, at)
			}
			if k := len(readers[b]); k == 0 || readers[b][k-1] != at {
				readers[b] = append(readers[b], at)
			}
		}
		for _, b := range s.Writes {
			if wrote[b] > 0 {
				before(wrote[b]-1, at)
			}
			for _, x := range readers[b] {
				before(x, at)
			}
			wrote[b], readers[b] = at+1, readers[b][:0]
		}
	}
	r.after = edges.bySource(n)
	return r
}

// touch finds the buffers of each step and the steps of each buffer.
func (r *reordering[P]) touch() {
	all := 0
	for i := range r.p.Steps {
		all += len(r.p.Steps[i].Reads) + len(r.p.Steps[i].Writes)
	}
	r.touched = make([][]int, len(r.p.Steps))
	room := make([]int, all)
	for i := range r.p.Steps {
		s := &r.p.Steps[i]
		own := append(append(room[:0:len(s.Reads)+len(s.Writes)], s.Reads...), s.Writes...)
		room = room[len(own):]
		slices.Sort(own)
		r.touched[i] = slices.Compact(own)
		for _, b := range r.touched[i] {
			r.uses[b]++
		}
	}
	r.users = lists(r.uses)
	for i, buffers := range r.touched {
		for _, b := range buffers {
			r.users[b] = append(r.users[b], int32(i))
		}
	}
}

// lists returns empty lists with room for the given numbers of elements, in one piece of memory.
func lists(room []int32) [][]int32 {
	all := 0
	for _, n := range room {
		all += int(n)
	}
	l, elements := make([][]int32, len(room)), make([]int32, all)
	for i, n := range room {
		l[i], elements = elements[:0:n], elements[n:]
	}
	return l
}

// edges are pairs of steps of which the first comes before the second.
type edges [][2]int32

// bySource returns, by step, those that come after it, in the order of the edges.
func (e edges) bySource(steps int) [][]int32 {
	count := make([]int32, steps)
	for _, x := range e {
		count[x[0]]++
	}
	after := lists(count)
	for _, x := range e {
		after[x[0]] = append(after[x[0]], x[1])
	}
	return after
}

// take appends a step to the order, unless it came forward, and then the steps that may come
// forward because of it.
func (r *reordering[P]) take(i int32) {
	if r.done[i] {
		return
	}
	r.makeWay(i)
	r.put(i)
	for len(r.ready) > 0 {
		c := heap.Pop(&r.ready).(int32)
		if !r.done[c] && r.waits[c] == 0 && r.frees(c) {
			r.put(c)
		}
	}
}

func (r *reordering[P]) put(i int32) {
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

// makeWay puts steps before step i that are all that keeps one of its results from being written over an
// operand: the others that read the operand, if they may run now and their own results are smaller.
func (r *reordering[P]) makeWay(i int32) {
	for _, q := range r.p.Steps[i].InPlace {
		b := &r.p.Buffers[q.Read]
		if b.Kind != Work || b.Output >= 0 || r.uses[q.Read] < 2 || r.begun(q.Write, i) {
			continue
		}
		room, first := r.p.Buffers[q.Write].Bytes, true
		for _, u := range r.users[q.Read] {
			if u == i || r.done[u] {
				continue
			}
			s := &r.p.Steps[u]
			first = first && r.waits[u] == 0 && !s.Late
			for _, w := range s.Writes {
				room -= r.p.Buffers[w].Bytes
			}
		}
		if !first || room <= 0 {
			continue
		}
		for _, u := range r.users[q.Read] {
			if u != i && !r.done[u] {
				r.put(u)
			}
		}
	}
}

// frees reports whether a step that may run now leaves less memory in use than before.
func (r *reordering[P]) frees(i int32) bool {
	s := &r.p.Steps[i]
	if s.Late {
		return false
	}
	net := 0
	for _, b := range r.touched[i] {
		buf := &r.p.Buffers[b]
		last := r.uses[b] == 1 && buf.Output < 0
		switch {
		case buf.Kind != Work:
		case slices.Contains(s.Writes, b):
			if !last && !r.begun(b, i) && !r.takesOver(b, i) {
				net += buf.Bytes
			}
		case last:
			net -= buf.Bytes
		}
	}
	return net < 0
}

// begun reports whether a step other than i has written a buffer already.
func (r *reordering[P]) begun(b int, i int32) bool {
	for _, u := range r.users[b] {
		if u != i && r.done[u] {
			return true
		}
	}
	return false
}

// takesOver reports whether an output may have the memory of the input that it replaces: no other
// step is left that reads it.
func (r *reordering[P]) takesOver(b int, i int32) bool {
	d := r.p.Buffers[b].Donor
	if d < 0 {
		return false
	}
	return r.uses[d] == 0 || r.uses[d] == 1 && slices.Contains(r.p.Steps[i].InPlace, Pair{b, d})
}

// delay moves late steps to where what they write is used, or to the end.
func (p *Plan[P]) delay() {
	if !slices.ContainsFunc(p.Steps, func(s Step[P]) bool { return s.Late }) {
		return
	}
	steps := make([]Step[P], 0, len(p.Steps))
	var late []Step[P]
	for _, s := range p.Steps {
		if s.Late {
			late = append(late, s)
			continue
		}
		late = slices.DeleteFunc(late, func(l Step[P]) bool {
			due := slices.ContainsFunc(l.Writes, s.uses)
			if due {
				steps = append(steps, l)
			}
			return due
		})
		steps = append(steps, s)
	}
	p.Steps = append(steps, late...)
}
