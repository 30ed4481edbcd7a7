package pt2

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"io"
	"path"
	"slices"
	"sort"
	"strings"
)

// Rename gives undefined symbols another name.
type Rename struct {
	// From is the name, or the beginning of it, and To what takes its place, of the
	// same length.
	From, To string
	// Whole says that From is a whole name. Then To may be shorter.
	Whole bool
}

// HostRenames returns the names by which a host offers its functions to the
// private copy of a library: of the same length, and no other library's, so that
// nothing clashes with a libtorch or a libgomp in the process.
func HostRenames() []Rename {
	return []Rename{
		{From: "aoti_torch_", To: "lori_torch_"},
		{From: "aoti_record_function_", To: "lori_record_function_"},
		{From: "Sleef_", To: "Loris_"},
		{From: "GOMP_", To: "LOMP_"},
		{From: "omp_", To: "lmp_"},
		{From: "torch_parallel_for", To: "loris_parallel_for", Whole: true},
		{From: "__cxa_thread_atexit", To: "__lor_thread_atexit", Whole: true},
		{From: "__cxa_thread_atexit_impl", To: "__lor_thread_atexit_impl", Whole: true},
		{From: "__cxa_begin_catch", To: "__lor_begin_catch", Whole: true}, // keeps the text of exceptions
		{From: "_ZSt4cerr", To: "_LSt4cerr", Whole: true},                 // where libraries print that text
		{From: "cuda", To: "lrta"},                                        // CUDA's runtime, and below the parts of its driver
		{From: "cuDriverGet", To: "lrDriverGet"},
		{From: "cuGetError", To: "lrGetError"},
		{From: "cuCtx", To: "lrCtx"},
		{From: "cuModule", To: "lrModule"},
		{From: "cuFunc", To: "lrFunc"},
		{From: "cuStreamSynchronize", To: "lrStreamSynchronize", Whole: true},
		{From: "cuLaunch", To: "lrLaunch"},
		{From: "cuTensorMap", To: "lrTensorMap"},
		{From: "getenv", To: "lorenv", Whole: true}, // tells whether inputs are checked
	}
}

// HostName returns the name under which a host offers a symbol that libraries
// call name; the name itself where it keeps it.
func HostName(name string) string { return renamed(name, HostRenames()) }

func renamed(name string, renames []Rename) string {
	for _, r := range renames {
		if r.Whole && name == r.From || !r.Whole && strings.HasPrefix(name, r.From) {
			return r.To + name[len(r.From):]
		}
	}
	return name
}

// replacedLibrary reports whether the host stands in for a needed library.
func replacedLibrary(name string) bool {
	base := path.Base(name)
	for _, p := range []string{"libtorch", "libc10", "libgomp", "libcudart", "libcuda.so"} {
		if strings.HasPrefix(base, p) {
			return true
		}
	}
	return false
}

// Edit is a stretch of a file and the bytes that take its place.
type Edit struct {
	Offset int64
	Data   []byte
}

const (
	baseLibrary = "libc.so.6"
	// dtIgnored is a tag of the dynamic segment that no linker knows.
	dtIgnored = 0x60004c6f
	// elfHeader is how long the header at the beginning is.
	elfHeader = 64
)

// HostEdits returns the changes that make a copy of the library one that this
// process can host: undefined symbols get the names of HostRenames, needed
// libtorch, libc10, libgomp, libcuda and libcudart become the C library, the versions asked of them
// are dropped, process-wide unique symbols become weak ones, which don't pin the
// library in memory, and no executable stack is asked for, which newer C libraries
// refuse to give. Everything else keeps its place. Names that share bytes
// with a name that must stay are a *FormatError.
//
// The renames in more come before those of HostRenames.
func (l *Library) HostEdits(more ...Rename) ([]Edit, error) {
	return l.edits(append(slices.Clone(more), HostRenames()...))
}

func (l *Library) edits(renames []Rename) ([]Edit, error) {
	p := &patch{
		l: l, renames: renames,
		segments: slices.Clone(l.segments.data),
		dynamic:  slices.Clone(l.dynamic.data),
		strings:  slices.Clone(l.strings.data),
		symbols:  slices.Clone(l.symbols.data),
		versions: slices.Clone(l.versions.data),
		needs:    slices.Clone(l.needs.data),
	}
	for i, r := range renames {
		if r.Whole && len(r.To) < len(r.From) && r.To != "" {
			renames[i].To += strings.Repeat("\x00", len(r.From)-len(r.To))
		} else if len(r.From) != len(r.To) || r.From == "" {
			return nil, problem("cannot rename %q to %q: the lengths differ", r.From, r.To)
		}
	}
	if err := p.renameSymbols(); err != nil {
		return nil, err
	}
	p.replaceNeeded()
	p.dropVersions()
	p.weakenUnique()
	p.dropExecutableStack()
	var edits []Edit
	old := []table{l.segments, l.dynamic, l.strings, l.symbols, l.versions, l.needs}
	for i, data := range [][]byte{p.segments, p.dynamic, p.strings, p.symbols, p.versions, p.needs} {
		e, ok := difference(old[i], data)
		if !ok {
			continue
		}
		for j, other := range append(old, table{data: make([]byte, elfHeader)}) {
			if j != i && e.Offset < other.offset+int64(len(other.data)) && other.offset < e.Offset+int64(len(e.Data)) {
				return nil, problem("what has to be changed at %d belongs to two tables, or to the header", e.Offset)
			}
		}
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Offset, b.Offset) })
	return edits, nil
}

// difference returns the stretch from the first to the last byte that changed.
func difference(old table, data []byte) (Edit, bool) {
	first := 0
	for first < len(data) && data[first] == old.data[first] {
		first++
	}
	last := len(data)
	for last > first && data[last-1] == old.data[last-1] {
		last--
	}
	return Edit{old.offset + int64(first), data[first:last]}, first < last
}

// patch holds the tables while they are changed.
type patch struct {
	l                          *Library
	renames                    []Rename
	segments, dynamic, strings []byte
	symbols, versions, needs   []byte
}

func (p *patch) setVersion(row int, v uint16) {
	if len(p.versions) > 0 {
		binary.LittleEndian.PutUint16(p.versions[2*row:], v)
	}
}

// renameSymbols changes names in place. Linkers let a name share the bytes of
// another that ends with it, so each change is checked against every other user
// of those bytes.
func (p *patch) renameSymbols() error {
	l := p.l
	// lowest is, for each stretch between zero bytes, where the first name begins
	// that must stay; names after it share its bytes.
	lowest := map[int]int{}
	stay := func(at int) {
		seg := sort.SearchInts(l.nuls, at)
		if old, ok := lowest[seg]; !ok || at < old {
			lowest[seg] = at
		}
	}
	for at := range l.users {
		stay(at)
	}
	type change struct {
		at      int
		to      string
		changed int // bytes from at that differ
	}
	changes := map[int]change{}
	for _, s := range l.Undefined {
		to := renamed(s.Name, p.renames)
		if to == s.Name {
			stay(int(s.str))
			continue
		}
		n := len(to)
		for n > 0 && to[n-1] == s.Name[n-1] {
			n--
		}
		changes[int(s.str)] = change{int(s.str), to, n}
		p.setVersion(s.row, 1)
	}
	seen := map[int]change{}
	for _, c := range changes {
		seg := sort.SearchInts(l.nuls, c.at)
		if at, ok := lowest[seg]; ok && at < c.at+c.changed {
			return problem("cannot rename symbol %q of the library: another name shares its bytes", c.to)
		}
		if other, ok := seen[seg]; ok {
			return problem("cannot rename symbols %q and %q of the library: they share bytes", c.to, other.to)
		}
		seen[seg] = c
		copy(p.strings[c.at:], c.to)
	}
	return nil
}

// replaceNeeded makes the libraries that the host stands in for the C library,
// or nothing where the table has no name for it.
func (p *patch) replaceNeeded() {
	libc := -1
	for at := range p.l.users {
		if s, _ := p.l.name(uint64(at)); s == baseLibrary && (libc < 0 || at < libc) {
			libc = at
		}
	}
	for _, row := range p.l.rows {
		if row.tag != elf.DT_NEEDED {
			continue
		}
		if s, _ := p.l.name(row.val); !replacedLibrary(s) {
			continue
		}
		if libc >= 0 {
			binary.LittleEndian.PutUint64(p.dynamic[row.at+8:], uint64(libc))
		} else {
			binary.LittleEndian.PutUint64(p.dynamic[row.at:], dtIgnored)
		}
	}
}

// dropVersions takes the versions of replaced libraries out of the chain. Its
// head must stay where it is: if that is dropped, the next that is kept moves
// there.
func (p *patch) dropVersions() {
	var kept []need
	dropped := map[uint16]bool{}
	for _, n := range p.l.needList {
		if !replacedLibrary(n.file) {
			kept = append(kept, n)
			continue
		}
		for v := range n.names {
			dropped[v] = true
		}
	}
	if len(kept) == len(p.l.needList) {
		return
	}
	for row := 0; row*symSize < len(p.symbols); row++ {
		if dropped[p.l.version(row)] {
			p.setVersion(row, 1)
		}
	}
	if len(kept) == 0 {
		p.ignore(elf.DT_VERNEED, elf.DT_VERNEEDNUM, elf.DT_VERSYM)
		return
	}
	le := binary.LittleEndian
	for i, n := range kept {
		at := n.at
		if i == 0 {
			at = 0
			copy(p.needs[:verneedSize], p.l.needs.data[n.at:n.at+verneedSize])
			le.PutUint32(p.needs[8:], uint32(n.aux))
		}
		next := uint32(0)
		if i+1 < len(kept) {
			next = uint32(kept[i+1].at - at)
		}
		le.PutUint32(p.needs[at+12:], next)
	}
	for _, row := range p.l.rows {
		if row.tag == elf.DT_VERNEEDNUM {
			le.PutUint64(p.dynamic[row.at+8:], uint64(len(kept)))
		}
	}
}

// ignore hides rows of the dynamic segment from the linker.
func (p *patch) ignore(tags ...elf.DynTag) {
	for _, row := range p.l.rows {
		if slices.Contains(tags, row.tag) {
			binary.LittleEndian.PutUint64(p.dynamic[row.at:], dtIgnored)
		}
	}
}

func (p *patch) weakenUnique() {
	for at := 0; at < len(p.symbols); at += symSize {
		if info := p.symbols[at+4]; elf.SymBind(info>>4) == stbUnique {
			p.symbols[at+4] = byte(elf.STB_WEAK)<<4 | info&15
		}
	}
}

// Apply writes edits into a copy of the file that they were made for.
func Apply(w io.WriterAt, edits []Edit) error {
	for _, e := range edits {
		if _, err := w.WriteAt(e.Data, e.Offset); err != nil {
			return err
		}
	}
	return nil
}

// dropExecutableStack takes the wish for an executable stack back. Libraries have
// it only because their weights came through an assembler file that said
// nothing of the stack.
func (p *patch) dropExecutableStack() {
	le := binary.LittleEndian
	for s := p.segments; len(s) > 0; s = s[segmentSize:] {
		if elf.ProgType(le.Uint32(s)) == elf.PT_GNU_STACK {
			le.PutUint32(s[4:], le.Uint32(s[4:])&^uint32(elf.PF_X))
		}
	}
}
