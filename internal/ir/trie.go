package ir

// trie remembers the sequences of ops of past steps. The cursor stands at the last op recorded, and
// its children are the ops that followed it before. An entry caches what depends on hashes alone
// (shapes, hash, line) and never a node, so a hit keeps no old data alive.
type trie struct {
	root entry
	// aside is the root of what is recorded aside from the steps.
	aside entry
	cur   *entry
	size  int
	// like is an entry that stood where the new entry likeOf stands now, with other sizes. What follows
	// the one is like what follows the other.
	like, likeOf *entry
}

type entry struct {
	op     Op
	attr   string
	in     []Hash
	shapes []Shape
	hash   Hash
	line   uintptr
	within Op
	last   *entry   // the child taken last, tried first
	kids   []*entry // at most maxKids: the oldest goes
	oldest int
	// recording is what Replay recorded after the op; misses counts the visits that no recording fitted.
	recording *recording
	misses    uint8
	// few and only are the memory of in and kids where these are short, as they mostly are.
	few  [2]Hash
	only [1]*entry
}

const (
	maxKids    = 16
	maxEntries = 1 << 21
)

func newTrie() *trie {
	t := &trie{}
	t.cur = &t.root
	return t
}

func (t *trie) reset() {
	t.cur = &t.root
}

func (t *trie) insert(e *entry) {
	if t.size >= maxEntries { // a program that never ends its step
		t.root, t.aside, t.size = entry{}, entry{}, 0
		t.cur = &t.root
	}
	c := t.cur
	if c.kids == nil {
		c.kids = c.only[:0]
	}
	if len(c.kids) < maxKids {
		c.kids = append(c.kids, e)
	} else {
		c.kids[c.oldest] = e
		c.oldest = (c.oldest + 1) % maxKids
	}
	c.last, t.cur = e, e
	t.size++
}

// likeNext returns an entry with the op of e and as many operands that was recorded where e is to
// be, or nil. e is inserted next.
func (t *trie) likeNext(e *entry) (like *entry) {
	kids := t.cur.kids
	if len(kids) == 0 && t.likeOf == t.cur && t.like != nil {
		kids = t.like.kids
	}
	for _, k := range kids {
		if k.op == e.op && len(k.in) == len(e.in) && (like == nil || k.attr == e.attr) {
			like = k
		}
	}
	t.like, t.likeOf = like, e
	return like
}

func (t *trie) step(e *entry) *entry {
	t.cur.last, t.cur = e, e
	return e
}

func (t *trie) find1(op Op, x Hash) *entry {
	if e := t.cur.last; e != nil && e.op == op && len(e.in) == 1 && e.in[0] == x && e.attr == "" {
		t.cur = e
		return e
	}
	for _, e := range t.cur.kids {
		if e.op == op && len(e.in) == 1 && e.in[0] == x && e.attr == "" {
			return t.step(e)
		}
	}
	return nil
}

func (t *trie) find2(op Op, x, y Hash) *entry {
	if e := t.cur.last; e != nil && e.op == op && len(e.in) == 2 && e.in[0] == x && e.in[1] == y && e.attr == "" {
		t.cur = e
		return e
	}
	for _, e := range t.cur.kids {
		if e.op == op && len(e.in) == 2 && e.in[0] == x && e.in[1] == y && e.attr == "" {
			return t.step(e)
		}
	}
	return nil
}

func (t *trie) find(op Op, attr string, in []Value) *entry {
	if e := t.cur.last; e != nil && e.match(op, attr, in) {
		t.cur = e
		return e
	}
	for _, e := range t.cur.kids {
		if e.match(op, attr, in) {
			return t.step(e)
		}
	}
	return nil
}

func (e *entry) match(op Op, attr string, in []Value) bool {
	if e.op != op || len(e.in) != len(in) || e.attr != attr {
		return false
	}
	for i, v := range in {
		if e.in[i] != v.key() {
			return false
		}
	}
	return true
}
