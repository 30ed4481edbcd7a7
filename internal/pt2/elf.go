package pt2

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"sort"
)

// Bounds on what a library may ask this reader to hold; real ones have some
// thousand symbols and 100 KB of names.
const (
	maxSegments   = 256
	maxDynamic    = 4096
	maxSymbols    = 1 << 20
	maxTableBytes = 64 << 20
	maxVersions   = 4096
	// maxNames bounds the bytes of all names together: names may share their bytes.
	// Each counts nameCost more.
	maxNames = 128 << 20
	nameCost = 64
)

// ELF64 record sizes.
const (
	segmentSize = 56
	dynSize     = 16
	symSize     = 24
	relaSize    = 24
	verneedSize = 16
	vernauxSize = 16
)

// Library is what the dynamic linker would read of a shared library: what it
// needs, what it asks of others and what it offers. It is read by the dynamic
// segment alone, as the linker does; section headers may be missing or lie.
type Library struct {
	// Machine is the processor that it is for.
	Machine elf.Machine
	// Needed are the names of the libraries that it needs (DT_NEEDED).
	Needed []string
	// RunPath is where it asks for them to be looked up (DT_RUNPATH or DT_RPATH).
	RunPath string
	// Undefined are the symbols that it asks of others, Defined those that it
	// offers, each in the order of the table.
	Undefined, Defined []Symbol
	// Weights is where its constants lie.
	Weights Weights
	// Size is the size of the file.
	Size int64

	r        io.ReaderAt
	loads    []segment
	segments table // the program headers
	dynamic  table
	strings  table
	symbols  table
	versions table // of 16-bit numbers; empty where there are no versions
	needs    table // the chain of needed versions
	rows     []dynRow
	needList []need
	nuls     []int // positions of the zero bytes in strings
	users    map[int]bool
	named    int // bytes of the names that were read, as maxNames counts them
}

// segment is a part of the file that is mapped to memory.
type segment struct{ offset, addr, size uint64 }

// table is a stretch of the file that was read.
type table struct {
	offset int64
	data   []byte
}

// dynRow is an entry of the dynamic segment.
type dynRow struct {
	tag elf.DynTag
	val uint64
	at  int // position inside the table
}

// need is an entry of the chain of needed versions.
type need struct {
	at, aux  int // positions inside the table
	file     string
	names    map[uint16]string
	next     uint32
	auxCount int
}

// ReadLibrary reads the dynamic linking tables of an ELF shared library of size
// bytes, 64 bits and little-endian. Nothing is executed and nothing but those
// tables is read. A file that is damaged or of another kind is a *FormatError.
func ReadLibrary(r io.ReaderAt, size int64) (*Library, error) {
	l := &Library{Size: size, r: r, users: map[int]bool{}}
	dyn, err := l.readHeader()
	if err != nil {
		return nil, err
	}
	steps := []func() error{
		func() error { return l.readDynamic(dyn) },
		l.readStrings, l.readNeeds, l.readSymbolTable, l.readNames, l.disjoint, l.findWeights,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// read returns n bytes at an offset of the file.
func (l *Library) read(off, n uint64, what string) ([]byte, error) {
	if n > maxTableBytes {
		return nil, problem("the library's %s has %d bytes, more than the %d allowed", what, n, maxTableBytes)
	}
	if off > uint64(l.Size) || n > uint64(l.Size)-off {
		return nil, problem("the library's %s lies outside the file", what)
	}
	buf := make([]byte, n)
	if _, err := l.r.ReadAt(buf, int64(off)); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, &FormatError{Problem: "cannot read the library's " + what, Err: err}
	}
	return buf, nil
}

// readHeader reads the file header and the program headers and returns the
// dynamic segment.
func (l *Library) readHeader() (dyn segment, err error) {
	if l.Size < 64 {
		return dyn, problem("not a shared library: only %d bytes", l.Size)
	}
	h, err := l.read(0, 64, "header")
	if err != nil {
		return dyn, err
	}
	if kind := foreign(h); kind != "" {
		return dyn, problem("not an ELF shared library but %s", kind)
	}
	if h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB) {
		return dyn, problem("the library is not a 64-bit little-endian one")
	}
	le := binary.LittleEndian
	if t := elf.Type(le.Uint16(h[16:])); t != elf.ET_DYN {
		return dyn, problem("the file is not a shared library (its type is %v)", t)
	}
	l.Machine = elf.Machine(le.Uint16(h[18:]))
	off, entry, n := le.Uint64(h[32:]), le.Uint16(h[54:]), le.Uint16(h[56:])
	if entry != segmentSize || n == 0 || n > maxSegments {
		return dyn, problem("the library has %d program headers of %d bytes", n, entry)
	}
	p, err := l.read(off, uint64(n)*segmentSize, "program headers")
	if err != nil {
		return dyn, err
	}
	l.segments = table{int64(off), p}
	found := false
	for ; len(p) > 0; p = p[segmentSize:] {
		s := segment{offset: le.Uint64(p[8:]), addr: le.Uint64(p[16:]), size: le.Uint64(p[32:])}
		switch elf.ProgType(le.Uint32(p)) {
		case elf.PT_LOAD:
			if s.offset > uint64(l.Size) || s.size > uint64(l.Size)-s.offset || s.addr+s.size < s.addr {
				return dyn, problem("a segment of the library lies outside the file; it is perhaps cut short")
			}
			l.loads = append(l.loads, s)
		case elf.PT_DYNAMIC:
			if found {
				return dyn, problem("the library has two dynamic segments")
			}
			dyn, found = s, true
		}
	}
	if !found {
		return dyn, problem("the library has no dynamic segment")
	}
	return dyn, nil
}

// foreign says what a file is that does not begin as ELF does; empty for ELF.
func foreign(h []byte) string {
	switch {
	case bytes.HasPrefix(h, []byte(elf.ELFMAG)):
		return ""
	case bytes.HasPrefix(h, []byte{0xcf, 0xfa, 0xed, 0xfe}), bytes.HasPrefix(h, []byte{0xca, 0xfe, 0xba, 0xbe}):
		return "a library for macOS"
	case bytes.HasPrefix(h, []byte("MZ")):
		return "a library for Windows"
	case bytes.HasPrefix(h, []byte("PK\x03\x04")):
		return "a zip archive"
	}
	return "a file of an unknown kind"
}

// offset returns where in the file n bytes at an address lie.
func (l *Library) offset(addr, n uint64, what string) (uint64, error) {
	for _, s := range l.loads {
		if addr >= s.addr && addr-s.addr <= s.size && n <= s.size-(addr-s.addr) {
			return s.offset + (addr - s.addr), nil
		}
	}
	return 0, problem("the library's %s at address %#x is in no segment", what, addr)
}

// load reads n bytes at an address.
func (l *Library) load(addr, n uint64, what string) (table, error) {
	off, err := l.offset(addr, n, what)
	if err != nil {
		return table{}, err
	}
	data, err := l.read(off, n, what)
	return table{int64(off), data}, err
}

// rest returns how many bytes follow an address in its segment.
func (l *Library) rest(addr uint64) uint64 {
	for _, s := range l.loads {
		if addr >= s.addr && addr-s.addr <= s.size {
			return s.size - (addr - s.addr)
		}
	}
	return 0
}

func (l *Library) readDynamic(s segment) error {
	if s.size > maxDynamic*dynSize {
		return problem("the library's dynamic segment has %d bytes", s.size)
	}
	// The linker reads it at its address; the offset must say the same place.
	t, err := l.load(s.addr, s.size/dynSize*dynSize, "dynamic segment")
	if err != nil {
		return err
	}
	if uint64(t.offset) != s.offset {
		return problem("the library's dynamic segment is said to be in two places")
	}
	l.dynamic = t
	for at := 0; at+dynSize <= len(t.data); at += dynSize {
		row := dynRow{
			elf.DynTag(binary.LittleEndian.Uint64(t.data[at:])), binary.LittleEndian.Uint64(t.data[at+8:]), at,
		}
		if row.tag == elf.DT_NULL {
			return nil
		}
		l.rows = append(l.rows, row)
	}
	return problem("the library's dynamic segment has no end")
}

// value returns the value of the last row with a tag, as the linker does.
func (l *Library) value(tag elf.DynTag) (uint64, bool) {
	for i := len(l.rows) - 1; i >= 0; i-- {
		if l.rows[i].tag == tag {
			return l.rows[i].val, true
		}
	}
	return 0, false
}

func (l *Library) readStrings() error {
	addr, ok1 := l.value(elf.DT_STRTAB)
	size, ok2 := l.value(elf.DT_STRSZ)
	if !ok1 || !ok2 {
		return problem("the library has no table of names")
	}
	t, err := l.load(addr, size, "table of names")
	if err != nil {
		return err
	}
	l.strings = t
	for i, c := range t.data {
		if c == 0 {
			l.nuls = append(l.nuls, i)
		}
	}
	for _, row := range l.rows {
		switch row.tag {
		case elf.DT_NEEDED, elf.DT_SONAME, elf.DT_RUNPATH, elf.DT_RPATH:
			s, err := l.name(row.val)
			if err != nil {
				return err
			}
			l.users[int(row.val)] = true
			switch row.tag {
			case elf.DT_NEEDED:
				l.Needed = append(l.Needed, s)
			case elf.DT_RUNPATH, elf.DT_RPATH:
				l.RunPath = s
			}
		}
	}
	return nil
}

// maxName is the longest name that is taken for one: those of templates get
// long, but not this long.
const maxName = 64 << 10

// name returns the string at a position of the table of names.
func (l *Library) name(at uint64) (string, error) {
	if at >= uint64(len(l.strings.data)) {
		return "", problem("a name of the library lies outside the table of names")
	}
	end := sort.SearchInts(l.nuls, int(at))
	if end == len(l.nuls) {
		return "", problem("the library's table of names has no end")
	}
	s := l.strings.data[at:l.nuls[end]]
	if len(s) > maxName {
		return "", problem("a name of the library has %d bytes", len(s))
	}
	if l.named += len(s) + nameCost; l.named > maxNames {
		return "", problem("the names in the library's tables are too long together")
	}
	return string(s), nil
}

// disjoint refuses tables that overlap, since patching one would change the
// other.
func (l *Library) disjoint() error {
	all := []table{l.segments, l.dynamic, l.strings, l.symbols, l.versions, l.needs}
	sort.Slice(all, func(i, j int) bool { return all[i].offset < all[j].offset })
	var end int64
	for _, t := range all {
		if len(t.data) == 0 {
			continue
		}
		if t.offset < end {
			return problem("tables of the library overlap")
		}
		end = t.offset + int64(len(t.data))
	}
	return nil
}
