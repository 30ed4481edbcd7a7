package pt2

import (
	"debug/elf"
	"encoding/binary"
)

// Symbol is a row of a library's dynamic symbol table.
type Symbol struct {
	// Name is the name as linked, mangled where it is C++.
	Name string
	// Version and Library are the version that is asked for and the library that
	// should have it ("GLIBC_2.14", "libc.so.6"); both empty without one.
	Version, Library string
	// Weak says that loading succeeds without it.
	Weak bool
	// Unique says that it is one for the whole process (STB_GNU_UNIQUE), which
	// keeps a library loaded for ever.
	Unique bool
	// Addr and Size are those of a defined symbol.
	Addr, Size uint64

	row int
	str uint32
}

// readNeeds reads the chain of needed versions.
func (l *Library) readNeeds() error {
	addr, ok := l.value(elf.DT_VERNEED)
	if !ok {
		return nil
	}
	// The chain has no size of its own: it ends where it says so. Read what the
	// entries span.
	span, err := l.load(addr, min(l.rest(addr), 1<<20), "needed versions")
	if err != nil {
		return err
	}
	data, at, end := span.data, 0, 0
	le := binary.LittleEndian
	for range maxVersions {
		if at+verneedSize > len(data) {
			return problem("the library's needed versions end early")
		}
		n := need{at: at, auxCount: int(le.Uint16(data[at+2:])), names: map[uint16]string{}}
		file, aux := le.Uint32(data[at+4:]), le.Uint32(data[at+8:])
		n.next = le.Uint32(data[at+12:])
		if n.file, err = l.name(uint64(file)); err != nil {
			return err
		}
		l.users[int(file)] = true
		n.aux = at + int(aux)
		stop, err := l.readNames16(data, &n)
		if err != nil {
			return err
		}
		l.needList = append(l.needList, n)
		end = max(end, at+verneedSize, stop)
		if n.next == 0 {
			l.needs = table{span.offset, data[:end:end]}
			return nil
		}
		if n.next < verneedSize {
			return problem("the library's needed versions run in a circle")
		}
		at += int(n.next)
	}
	return problem("the library needs too many versions")
}

// readNames16 reads the names of one entry of the chain and returns where they
// end.
func (l *Library) readNames16(data []byte, n *need) (end int, err error) {
	le := binary.LittleEndian
	pos := n.aux
	for range n.auxCount {
		if pos+vernauxSize > len(data) {
			return 0, problem("the library's needed versions end early")
		}
		index, str, next := le.Uint16(data[pos+6:]), le.Uint32(data[pos+8:]), le.Uint32(data[pos+12:])
		if n.names[index&0x7fff], err = l.name(uint64(str)); err != nil {
			return 0, err
		}
		l.users[int(str)] = true
		end = max(end, pos+vernauxSize)
		if next == 0 {
			break
		}
		if next < vernauxSize {
			return 0, problem("the library's needed versions run in a circle")
		}
		pos += int(next)
	}
	return end, nil
}

// readSymbolTable reads the symbols and their versions. The table has no length
// of its own: it reaches as far as a hash table or a relocation points.
func (l *Library) readSymbolTable() error {
	addr, ok := l.value(elf.DT_SYMTAB)
	if !ok {
		return problem("the library has no table of symbols")
	}
	if size, ok := l.value(elf.DT_SYMENT); ok && size != symSize {
		return problem("the library's symbols have %d bytes", size)
	}
	count, err := l.countSymbols()
	if err != nil {
		return err
	}
	if count > maxSymbols {
		return problem("the library has %d symbols, more than the %d allowed", count, maxSymbols)
	}
	if l.symbols, err = l.load(addr, count*symSize, "table of symbols"); err != nil {
		return err
	}
	if addr, ok := l.value(elf.DT_VERSYM); ok {
		if l.versions, err = l.load(addr, count*2, "table of versions"); err != nil {
			return err
		}
	}
	return nil
}

func (l *Library) countSymbols() (uint64, error) {
	count := uint64(1)
	if addr, ok := l.value(elf.DT_HASH); ok {
		t, err := l.load(addr, 8, "hash table")
		if err != nil {
			return 0, err
		}
		count = max(count, uint64(binary.LittleEndian.Uint32(t.data[4:])))
	}
	if addr, ok := l.value(elf.DT_GNU_HASH); ok {
		n, err := l.countHashed(addr)
		if err != nil {
			return 0, err
		}
		count = max(count, n)
	}
	for _, rel := range [][2]elf.DynTag{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}} {
		addr, ok1 := l.value(rel[0])
		size, ok2 := l.value(rel[1])
		if !ok1 || !ok2 {
			continue
		}
		t, err := l.load(addr, size, "relocations")
		if err != nil {
			return 0, err
		}
		for d := t.data; len(d) >= relaSize; d = d[relaSize:] {
			count = max(count, binary.LittleEndian.Uint64(d[8:])>>32+1)
		}
	}
	return count, nil
}

// countHashed returns the number of symbols that a GNU hash table covers: the
// last chain runs to the end of the table.
func (l *Library) countHashed(addr uint64) (uint64, error) {
	le := binary.LittleEndian
	h, err := l.load(addr, 16, "hash table")
	if err != nil {
		return 0, err
	}
	buckets, first, bloom := le.Uint32(h.data), le.Uint32(h.data[4:]), le.Uint32(h.data[8:])
	at := addr + 16 + uint64(bloom)*8
	b, err := l.load(at, uint64(buckets)*4, "hash table")
	if err != nil {
		return 0, err
	}
	last := uint32(0)
	for d := b.data; len(d) >= 4; d = d[4:] {
		last = max(last, le.Uint32(d))
	}
	if last == 0 {
		return uint64(first), nil
	}
	if last < first {
		return 0, problem("the library's hash table is damaged")
	}
	at += uint64(buckets)*4 + uint64(last-first)*4
	chain, err := l.load(at, min(l.rest(at), 4*maxSymbols), "hash table")
	if err != nil {
		return 0, err
	}
	for d := chain.data; len(d) >= 4; d = d[4:] {
		if le.Uint32(d)&1 == 1 {
			return uint64(last) + 1, nil
		}
		last++
	}
	return 0, problem("the library's hash table has no end")
}

// readNames makes Undefined and Defined of the tables.
func (l *Library) readNames() error {
	le := binary.LittleEndian
	versions := map[uint16][2]string{}
	for _, n := range l.needList {
		for i, name := range n.names {
			versions[i] = [2]string{name, n.file}
		}
	}
	for row := 1; (row+1)*symSize <= len(l.symbols.data); row++ {
		d := l.symbols.data[row*symSize:]
		s := Symbol{row: row, str: le.Uint32(d), Addr: le.Uint64(d[8:]), Size: le.Uint64(d[16:])}
		bind := elf.SymBind(d[4] >> 4)
		s.Weak, s.Unique = bind == elf.STB_WEAK, bind == stbUnique
		var err error
		if s.Name, err = l.name(uint64(s.str)); err != nil {
			return err
		}
		if elf.SectionIndex(le.Uint16(d[6:])) != elf.SHN_UNDEF {
			l.users[int(s.str)] = true
			if bind != elf.STB_LOCAL {
				l.Defined = append(l.Defined, s)
			}
			continue
		}
		if len(l.versions.data) > 0 {
			v := versions[le.Uint16(l.versions.data[2*row:])&0x7fff]
			s.Version, s.Library = v[0], v[1]
		}
		if s.Name != "" {
			l.Undefined = append(l.Undefined, s)
		}
	}
	return nil
}

// stbUnique is STB_GNU_UNIQUE, which debug/elf has no name for.
const stbUnique elf.SymBind = 10

// Symbol returns the defined symbol of a name.
func (l *Library) Symbol(name string) (Symbol, bool) {
	for _, s := range l.Defined {
		if s.Name == name {
			return s, true
		}
	}
	return Symbol{}, false
}

// version returns the version number of a symbol's row; 1 is none.
func (l *Library) version(row int) uint16 {
	if len(l.versions.data) == 0 {
		return 1
	}
	return binary.LittleEndian.Uint16(l.versions.data[2*row:]) & 0x7fff
}
