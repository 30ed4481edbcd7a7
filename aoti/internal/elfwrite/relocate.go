package elfwrite

import (
	"debug/elf"
	"fmt"
)

// relocate goes through the relocations of the object.
func (l *linker) relocate(f *elf.File, syms []elf.Symbol) error {
	for _, s := range f.Sections {
		from, ok := l.sections[int(s.Info)]
		if s.Type != elf.SHT_RELA || !ok {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("elfwrite: section %s: %w", s.Name, err)
		}
		for ; len(data) >= relaSize; data = data[relaSize:] {
			info := le.Uint64(data[8:])
			if info>>32 == 0 || info>>32 > uint64(len(syms)) {
				return fmt.Errorf("elfwrite: a relocation in %s names no symbol", s.Name)
			}
			at := place{from.seg, from.off + int64(le.Uint64(data))}
			if err := l.relocation(at, elf.R_X86_64(info&0xffffffff), &syms[info>>32-1], int64(le.Uint64(data[16:]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// relocation notes what is to be written at a place.
func (l *linker) relocation(at place, kind elf.R_X86_64, sym *elf.Symbol, add int64) error {
	name := sym.Name
	if p, ok := l.sections[int(sym.Section)]; ok && elf.ST_BIND(sym.Info) == elf.STB_LOCAL {
		name = fmt.Sprintf(".%d+%d", sym.Section, sym.Value) // local names are not unique: each source has its .LC0
		l.places[name] = place{p.seg, p.off + int64(sym.Value)}
	}
	_, here := l.places[name]
	x := fix{at: at, symbol: name, slot: -1, add: add}
	switch kind {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		if !here {
			x.symbol = l.stub(name)
		}
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX:
		if here {
			x.slot = l.slot(name, elf.R_X86_64_RELATIVE)
		} else {
			l.imported(name)
			x.slot = l.slot(name, elf.R_X86_64_GLOB_DAT)
		}
	case elf.R_X86_64_TLSLD:
		x.slot = l.slot("", elf.R_X86_64_DTPMOD64)
	case elf.R_X86_64_DTPOFF32: // the object's one section is all thread-local storage of the library
		le.PutUint32(l.segs[at.seg][at.off:], uint32(int64(sym.Value)+add))
		return nil
	default:
		return fmt.Errorf("elfwrite: a relocation of kind %v", kind)
	}
	l.fixes = append(l.fixes, x)
	return nil
}

// stub returns the symbol of an instruction that jumps to a function of another library.
func (l *linker) stub(name string) string {
	s := "stub of " + name
	if _, ok := l.places[s]; !ok {
		l.imported(name)
		off := l.grow(code, 8, []byte{0xff, 0x25, 0, 0, 0, 0}) // jmp *slot(%rip)
		l.places[s] = place{code, off}
		l.fixes = append(l.fixes, fix{at: place{code, off + 2}, slot: l.slot(name, elf.R_X86_64_GLOB_DAT), add: -4})
	}
	return s
}

// address returns the address of a place, relative to where the library is loaded.
func (l *linker) address(p place) int64 { return l.bases[p.seg] + p.off }

// apply writes the differences.
func (l *linker) apply() error {
	for _, x := range l.fixes {
		to := l.bases[addresses] + x.slot
		if x.slot < 0 {
			p, ok := l.places[x.symbol]
			if !ok {
				return fmt.Errorf("elfwrite: there is no symbol %s", x.symbol)
			}
			to = l.address(p)
		}
		d := to + x.add - l.address(x.at)
		if d != int64(int32(d)) {
			return fmt.Errorf("elfwrite: %s is too far away: the library has more than 2 GiB before its weights", x.symbol)
		}
		le.PutUint32(l.segs[x.at.seg][x.at.off:], uint32(d))
	}
	return nil
}
