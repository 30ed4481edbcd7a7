package elfwrite

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	headers     = 7 // program headers
	headerBytes = 64 + 56*headers
)

// finish gives the segments their addresses and writes all.
func (l *linker) finish() (*Library, error) {
	d := l.dynamic()
	up := func(n int64) int64 { return (n + page - 1) &^ (page - 1) }
	l.bases[code] = up(int64(len(l.segs[readOnly])))
	l.bases[addresses] = up(l.bases[code] + int64(len(l.segs[code])))
	dynamicAt := l.grow(addresses, 8, nil)
	l.segs[addresses] = append(l.segs[addresses], d.rows...)
	end := l.bases[addresses] + int64(len(l.segs[addresses]))
	l.bases[weights] = up(end)
	if err := l.apply(); err != nil {
		return nil, err
	}
	if err := l.symbols(d); err != nil {
		return nil, err
	}
	if err := l.loaderRelocations(d); err != nil {
		return nil, err
	}
	copy(l.segs[readOnly], l.header(dynamicAt, len(d.rows)))
	head := make([]byte, l.bases[weights])
	for s, b := range l.segs {
		copy(head[l.bases[s]:], b)
	}
	return &Library{head}, nil
}

// tables is where the loader's tables lie in the read-only segment.
type tables struct {
	symbolsAt, relocationsAt int64
	names                    []uint32 // of the imports and the exports
	index                    map[string]int
	rows                     []byte // of the dynamic segment
}

// dynamic makes room for the loader's tables and writes the rows that say where they are.
func (l *linker) dynamic() *tables {
	t := &tables{index: map[string]int{}}
	strs := []byte{0}
	name := func(s string) uint32 {
		at := len(strs)
		strs = append(append(strs, s...), 0)
		return uint32(at)
	}
	row := func(tag elf.DynTag, v int64) {
		t.rows = le.AppendUint64(le.AppendUint64(t.rows, uint64(tag)), uint64(v))
	}
	for _, n := range l.in.Needed {
		row(elf.DT_NEEDED, int64(name(n)))
	}
	for i, s := range append(append([]string(nil), l.imports...), l.exports...) {
		t.names = append(t.names, name(s))
		t.index[s] = i + 1
	}
	n := len(t.names) + 1
	t.symbolsAt = l.grow(readOnly, 8, make([]byte, symSize*n))
	hash := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 1), uint32(n)), uint32(n-1)) // one bucket, one chain
	for i := range n {
		hash = le.AppendUint32(hash, uint32(max(i-1, 0)))
	}
	hashAt := l.grow(readOnly, 8, hash)
	stringsAt := l.grow(readOnly, 1, strs)
	t.relocationsAt = l.grow(readOnly, 8, make([]byte, relaSize*len(l.slots)))
	row(elf.DT_HASH, hashAt)
	row(elf.DT_STRTAB, stringsAt)
	row(elf.DT_SYMTAB, t.symbolsAt)
	row(elf.DT_STRSZ, int64(len(strs)))
	row(elf.DT_SYMENT, symSize)
	row(elf.DT_RELA, t.relocationsAt)
	row(elf.DT_RELASZ, int64(relaSize*len(l.slots)))
	row(elf.DT_RELAENT, relaSize)
	row(elf.DT_NULL, 0)
	return t
}

// symbols writes the table of symbols.
func (l *linker) symbols(t *tables) error {
	for s, i := range t.index {
		e := l.segs[readOnly][t.symbolsAt+int64(symSize*i):]
		le.PutUint32(e, t.names[i-1])
		p, here := l.places[s]
		switch {
		case !here && i > len(l.imports):
			return fmt.Errorf("elfwrite: there is no symbol %s", s)
		case here:
			e[4] = elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)
			if p.seg != code {
				e[4] = elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT)
			}
			le.PutUint16(e[6:], 1) // any section
			le.PutUint64(e[8:], uint64(l.address(p)))
		case l.weak[s]:
			e[4] = elf.ST_INFO(elf.STB_WEAK, elf.STT_NOTYPE)
		default:
			e[4] = elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE)
		}
	}
	return nil
}

// loaderRelocations writes what the loader fills in.
func (l *linker) loaderRelocations(t *tables) error {
	for i, s := range l.slots {
		e := l.segs[readOnly][t.relocationsAt+int64(relaSize*i):]
		le.PutUint64(e, uint64(l.bases[addresses]+s.off))
		info := uint64(s.kind)
		switch s.kind {
		case elf.R_X86_64_RELATIVE:
			p, ok := l.places[s.symbol]
			if !ok {
				return fmt.Errorf("elfwrite: there is no symbol %s", s.symbol)
			}
			le.PutUint64(e[16:], uint64(l.address(p)))
		case elf.R_X86_64_GLOB_DAT:
			info |= uint64(t.index[s.symbol]) << 32
		}
		le.PutUint64(e[8:], info)
	}
	return nil
}

// header returns the file's header and the program headers.
func (l *linker) header(dynamicAt int64, dynamicBytes int) []byte {
	load := func(s segment, flags elf.ProgFlag, n int64) elf.Prog64 {
		at := uint64(l.bases[s])
		return elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Off: at, Vaddr: at, Paddr: at, Filesz: uint64(n), Memsz: uint64(n), Align: page}
	}
	dyn := uint64(l.bases[addresses] + dynamicAt)
	phdr := []elf.Prog64{
		load(readOnly, elf.PF_R, int64(len(l.segs[readOnly]))),
		load(code, elf.PF_R|elf.PF_X, int64(len(l.segs[code]))),
		load(addresses, elf.PF_R|elf.PF_W, int64(len(l.segs[addresses]))),
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Off: dyn, Vaddr: dyn, Paddr: dyn, Filesz: uint64(dynamicBytes), Memsz: uint64(dynamicBytes), Align: 8},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
		{Type: uint32(elf.PT_TLS), Flags: uint32(elf.PF_R), Off: dyn, Vaddr: dyn, Paddr: dyn, Memsz: l.tls, Align: 16},
	}
	if l.in.WeightBytes > 0 {
		phdr = append(phdr[:3:3], append([]elf.Prog64{load(weights, elf.PF_R, l.in.WeightBytes)}, phdr[3:]...)...)
	}
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(phdr)), Shentsize: 64,
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	_ = binary.Write(&b, le, h) // to memory
	_ = binary.Write(&b, le, phdr)
	return b.Bytes()
}
