package pt2

import (
	"debug/elf"
	"encoding/binary"
)

// tiny lays out a shared library by hand: one segment that maps the file at
// address 0, and the tables of the dynamic linker in it.
type tiny struct {
	needed    []string
	undefined []string
	defined   []string // the last two are the bounds of weights, if there are any
	versions  []tinyNeed
	weights   []byte
	tail      []byte // appended after everything
	machine   elf.Machine
}

// tinyNeed is a library whose version the symbols of the given names ask for.
type tinyNeed struct {
	file, version string
	symbols       []string
}

type tinyLayout struct {
	b       []byte
	strings map[string]uint32
	strtab  []byte
}

func (l *tinyLayout) str(s string) uint32 {
	if at, ok := l.strings[s]; ok {
		return at
	}
	at := uint32(len(l.strtab))
	l.strtab = append(append(l.strtab, s...), 0)
	l.strings[s] = at
	return at
}

// put appends bytes at a multiple of 16 and returns where.
func (l *tinyLayout) put(b []byte) uint64 {
	for len(l.b)%16 != 0 {
		l.b = append(l.b, 0)
	}
	at := len(l.b)
	l.b = append(l.b, b...)
	return uint64(at)
}

func le(fields ...any) []byte {
	var b []byte
	for _, f := range fields {
		b, _ = binary.Append(b, binary.LittleEndian, f)
	}
	return b
}

func (o tiny) build() []byte {
	l := &tinyLayout{strings: map[string]uint32{}, strtab: []byte{0}, b: make([]byte, 64+2*segmentSize)}
	weights := l.put(o.weights)
	index := map[string]uint16{}
	for i, n := range o.versions {
		for _, s := range n.symbols {
			index[s] = uint16(i + 2)
		}
	}
	sym, versym := make([]byte, symSize), le(uint16(0))
	for _, s := range o.undefined {
		sym = append(sym, le(l.str(s), uint8(0x10), uint8(0), uint16(0), uint64(0), uint64(0))...)
		versym = append(versym, le(max(index[s], 1))...)
	}
	for i, s := range o.defined {
		addr := uint64(64)
		if len(o.weights) > 0 && i >= len(o.defined)-2 {
			addr = weights
			if i == len(o.defined)-1 {
				addr += uint64(len(o.weights))
			}
		}
		info := uint8(0x11)
		if s == "the_unique" {
			info = 0xa1
		}
		sym = append(sym, le(l.str(s), info, uint8(0), uint16(1), addr, uint64(8))...)
		versym = append(versym, le(uint16(1))...)
	}
	var needs []byte
	for i, n := range o.versions {
		next := uint32(verneedSize + vernauxSize)
		if i == len(o.versions)-1 {
			next = 0
		}
		needs = append(needs, le(uint16(1), uint16(1), l.str(n.file), uint32(verneedSize), next)...)
		needs = append(needs, le(uint32(0), uint16(0), uint16(i+2), l.str(n.version), uint32(0))...)
	}
	count := uint32(len(sym) / symSize)
	hash := l.put(append(le(uint32(1), count), make([]byte, 4+4*count)...))
	symAt, verAt := l.put(sym), l.put(versym)
	dyn := []any{uint64(elf.DT_HASH), hash, uint64(elf.DT_SYMTAB), symAt}
	if needs != nil {
		dyn = append(dyn, uint64(elf.DT_VERNEED), l.put(needs), uint64(elf.DT_VERNEEDNUM), uint64(len(o.versions)), uint64(elf.DT_VERSYM), verAt)
	}
	for _, n := range o.needed {
		dyn = append(dyn, uint64(elf.DT_NEEDED), uint64(l.str(n)))
	}
	dyn = append(dyn, uint64(elf.DT_STRTAB), l.put(l.strtab), uint64(elf.DT_STRSZ), uint64(len(l.strtab)), uint64(0), uint64(0))
	dynamic := le(dyn...)
	dynAt := l.put(dynamic)
	size := uint64(len(l.b))
	if o.machine == 0 {
		o.machine = elf.EM_X86_64
	}
	copy(l.b, "\x7fELF\x02\x01\x01")
	copy(l.b[16:], le(uint16(elf.ET_DYN), uint16(o.machine), uint32(1), uint64(0), uint64(64), uint64(0), uint32(0),
		uint16(64), uint16(segmentSize), uint16(2), uint16(64), uint16(0), uint16(0)))
	copy(l.b[64:], le(uint32(elf.PT_LOAD), uint32(6), uint64(0), uint64(0), uint64(0), size, size, uint64(4096)))
	copy(l.b[64+segmentSize:], le(uint32(elf.PT_DYNAMIC), uint32(6), dynAt, dynAt, dynAt,
		uint64(len(dynamic)), uint64(len(dynamic)), uint64(8)))
	return append(l.b, o.tail...)
}

// tinyModel is a library as a compiled model's would be.
func tinyModel() tiny {
	return tiny{
		needed:    []string{"libtorch_cpu.so", "libgomp.so.1", "libc.so.6"},
		undefined: []string{"aoti_torch_clone", "Sleef_expf8_u10", "GOMP_parallel", "malloc", "_ZN2at4_ops3add4callE"},
		versions: []tinyNeed{
			{"libgomp.so.1", "GOMP_1.0", []string{"GOMP_parallel"}}, {"libc.so.6", "GLIBC_2.2.5", []string{"malloc"}},
		},
		defined: []string{
			"AOTInductorModelContainerRun", "AOTInductorGetLastError", "the_unique",
			"_binary_constants_bin_start", "_binary_constants_bin_end",
		},
		weights: make([]byte, 64),
	}
}
