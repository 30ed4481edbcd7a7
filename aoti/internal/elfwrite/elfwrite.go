// Package elfwrite links shared libraries for x86-64 under Linux from one relocatable object and
// bytes: what a linker does, for the few kinds of relocation that a C compiler emits for
// position-independent code. It runs on any platform.
//
// A library has four segments: headers, symbols and read-only data; code; addresses, which the loader
// fills in; and last, on a page of its own, weights, which the caller writes behind Library.Head.
package elfwrite

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Input is what a library is made of.
type Input struct {
	// Object is relocatable. Its global symbols with the prefix Export are those of the library.
	Object []byte
	Export string
	// ReadOnly and Code are bytes behind the object's, by the symbol that the object knows them by.
	ReadOnly, Code []Blob
	// Table is the symbol of a table of addresses of Functions, which the loader finds. Optional says that
	// it may not find them: their addresses are 0 then.
	Table     string
	Functions []string
	Optional  bool
	// Needed are the libraries that the loader loads first.
	Needed []string
	// Weights is the symbol of the last segment, WeightBytes its size, and Bounds, unless empty, a
	// prefix: the library exports its ends as Bounds+"start" and Bounds+"end".
	Weights     string
	WeightBytes int64
	Bounds      string
}

// Blob is named bytes. They begin at a multiple of 64.
type Blob struct {
	Symbol string
	Data   []byte
}

// Library is a library without its weights: they follow Head, which ends at a page.
type Library struct{ Head []byte }

const (
	page      = 4096
	blobAlign = 64
	symSize   = 24
	relaSize  = 24
)

var le = binary.LittleEndian

// segment is one of the parts of the library, and weights stands for the last.
type segment uint8

const (
	readOnly segment = iota
	code
	addresses
	weights
)

// place is where a symbol lies.
type place struct {
	seg segment
	off int64
}

// slot is an address in the segment of addresses that the loader fills in.
type slot struct {
	off    int64
	kind   elf.R_X86_64
	symbol string
}

// fix is a difference of 32 bits that is known once the segments have addresses.
type fix struct {
	at     place
	symbol string
	slot   int64 // the address of this slot instead, if not negative
	add    int64
}

type linker struct {
	in       *Input
	segs     [3][]byte
	places   map[string]place
	sections map[int]place
	exports  []string
	imports  []string
	weak     map[string]bool
	slots    []slot
	slotOf   map[slot]int64
	fixes    []fix
	tls      uint64
	bases    [4]int64
}

// Link makes a library.
func Link(in *Input) (*Library, error) {
	l := &linker{in: in, places: map[string]place{}, sections: map[int]place{}, weak: map[string]bool{}, slotOf: map[slot]int64{}}
	f, err := elf.NewFile(bytes.NewReader(in.Object))
	if err != nil {
		return nil, fmt.Errorf("elfwrite: the object: %w", err)
	}
	if f.Machine != elf.EM_X86_64 || f.Type != elf.ET_REL {
		return nil, fmt.Errorf("elfwrite: the object is %v for %v", f.Type, f.Machine)
	}
	l.segs[readOnly] = make([]byte, headerBytes)
	if err := l.takeSections(f); err != nil {
		return nil, err
	}
	syms, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("elfwrite: the object: %w", err)
	}
	l.takeBlobs()
	if err := l.takeSymbols(syms); err != nil {
		return nil, err
	}
	if err := l.relocate(f, syms); err != nil {
		return nil, err
	}
	l.table()
	return l.finish()
}

// grow adds bytes to a segment at a multiple of align and returns where they begin.
func (l *linker) grow(s segment, align int, data []byte) int64 {
	b := l.segs[s]
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	l.segs[s] = append(b, data...)
	return int64(len(b))
}

// takeSections takes over what the object's sections hold.
func (l *linker) takeSections(f *elf.File) error {
	for i, s := range f.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0:
		case s.Flags&elf.SHF_TLS != 0:
			if s.Type != elf.SHT_NOBITS || l.tls != 0 {
				return fmt.Errorf("elfwrite: thread-local data in section %s", s.Name)
			}
			l.tls = s.Size
		case s.Flags&elf.SHF_WRITE != 0:
			return fmt.Errorf("elfwrite: section %s is writable", s.Name)
		default:
			data, err := s.Data()
			if err != nil {
				return fmt.Errorf("elfwrite: section %s: %w", s.Name, err)
			}
			to := readOnly
			if s.Flags&elf.SHF_EXECINSTR != 0 {
				to = code
			}
			l.sections[i] = place{to, l.grow(to, max(16, int(s.Addralign)), data)}
		}
	}
	return nil
}

func (l *linker) takeBlobs() {
	for _, b := range l.in.ReadOnly {
		l.places[b.Symbol] = place{readOnly, l.grow(readOnly, blobAlign, b.Data)}
	}
	for _, b := range l.in.Code {
		l.places[b.Symbol] = place{code, l.grow(code, blobAlign, b.Data)}
	}
	l.places[l.in.Weights] = place{weights, 0}
	l.places[l.in.Table] = place{addresses, 0}
	l.segs[addresses] = make([]byte, 8*len(l.in.Functions))
}

func (l *linker) takeSymbols(syms []elf.Symbol) error {
	for _, s := range syms {
		if p, ok := l.sections[int(s.Section)]; ok && elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			if _, twice := l.places[s.Name]; twice && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
				return fmt.Errorf("elfwrite: symbol %s is there twice", s.Name)
			}
			l.places[s.Name] = place{p.seg, p.off + int64(s.Value)}
			if elf.ST_BIND(s.Info) == elf.STB_GLOBAL && strings.HasPrefix(s.Name, l.in.Export) {
				l.exports = append(l.exports, s.Name)
			}
		} else if s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_WEAK {
			l.weak[s.Name] = true
		}
	}
	slices.Sort(l.exports)
	if l.in.Bounds != "" {
		l.places[l.in.Bounds+"start"] = place{weights, 0}
		l.places[l.in.Bounds+"end"] = place{weights, l.in.WeightBytes}
		l.exports = append(l.exports, l.in.Bounds+"end", l.in.Bounds+"start")
	}
	return nil
}

// slot returns where the address of a symbol is.
func (l *linker) slot(symbol string, kind elf.R_X86_64) int64 {
	key := slot{kind: kind, symbol: symbol}
	off, ok := l.slotOf[key]
	if !ok {
		room := 8
		if kind == elf.R_X86_64_DTPMOD64 {
			room = 16 // the module and an offset of 0
		}
		off = l.grow(addresses, 8, make([]byte, room))
		l.slotOf[key] = off
		l.slots = append(l.slots, slot{off, kind, symbol})
	}
	return off
}

// imported notes a symbol that another library has.
func (l *linker) imported(symbol string) {
	if !slices.Contains(l.imports, symbol) {
		l.imports = append(l.imports, symbol)
	}
}

// table fills the table of functions.
func (l *linker) table() {
	for i, f := range l.in.Functions {
		kind := elf.R_X86_64_RELATIVE
		if _, here := l.places[f]; !here {
			l.imported(f)
			l.weak[f] = l.weak[f] || l.in.Optional
			kind = elf.R_X86_64_GLOB_DAT
		}
		l.slots = append(l.slots, slot{int64(8 * i), kind, f})
	}
}
