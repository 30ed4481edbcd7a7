package pt2

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTinyLibrary(t *testing.T) {
	l := library(t, tinyModel().build())
	if got := len(l.Undefined); got != 5 {
		t.Errorf("%d undefined symbols: %v", got, l.Undefined)
	}
	for _, s := range l.Undefined {
		want := map[string]string{"GOMP_parallel": "libgomp.so.1", "malloc": "libc.so.6"}[s.Name]
		if s.Library != want {
			t.Errorf("%s is asked of %q, want %q", s.Name, s.Library, want)
		}
	}
	if g := l.Generation(); g.Version != "2.15" || len(g.Functions) != 2 || !g.Has("AOTInductorModelContainerRun") {
		t.Errorf("generation %v", g)
	}
	after := library(t, patched(t, tinyModel().build()))
	if !slices.Equal(after.Needed, []string{"libc.so.6", "libc.so.6", "libc.so.6"}) {
		t.Errorf("the copy needs %v", after.Needed)
	}
	var names []string
	for _, s := range after.Undefined {
		names = append(names, s.Name+"@"+s.Version)
	}
	want := []string{"lori_torch_clone@", "Loris_expf8_u10@", "LOMP_parallel@", "malloc@GLIBC_2.2.5", "_ZN2at4_ops3add4callE@"}
	if !slices.Equal(names, want) {
		t.Errorf("the copy asks for %v, want %v", names, want)
	}
	for _, s := range after.Defined {
		if s.Unique {
			t.Errorf("%s is still unique", s.Name)
		}
	}
}

// Without a name for the C library the replaced ones are hidden, and without
// other versions the whole chain is.
func TestHostEditsWithoutLibc(t *testing.T) {
	o := tinyModel()
	o.needed, o.versions = o.needed[:2], o.versions[:1]
	after := library(t, patched(t, o.build()))
	if len(after.Needed) != 0 {
		t.Errorf("the copy needs %v", after.Needed)
	}
	if _, ok := after.value(elf.DT_VERNEED); ok {
		t.Error("the copy asks for versions")
	}
}

func TestWeights(t *testing.T) {
	bounds := []string{"_binary_constants_bin_start", "_binary_constants_bin_end"}
	appended := tiny{defined: bounds, weights: append(le(uint64(108)), "magic123"...)}
	n := len(appended.build())
	pad := (weightsAlign - n%weightsAlign) % weightsAlign
	appended.tail = append(append(make([]byte, pad), bytes.Repeat([]byte{7}, 100)...), "magic123"...)
	good := appended.build()
	broken := appended
	broken.tail = slices.Clone(appended.tail)
	broken.tail[len(broken.tail)-1]++
	for _, tc := range []struct {
		name string
		lib  []byte
		want Weights
		err  string
	}{
		{"inside", tiny{defined: bounds, weights: make([]byte, 100)}.build(), Weights{WeightsInside, 176, 100}, ""},
		{"none", tiny{defined: bounds, weights: make([]byte, 1)}.build(), Weights{Kind: WeightsNone}, ""},
		{"outside", tiny{defined: bounds, weights: le(uint64(5000))}.build(), Weights{Kind: WeightsOutside, Size: 5000}, ""},
		{"not shown", tiny{}.build(), Weights{}, ""},
		{"appended", good, Weights{WeightsAppended, int64(n + pad), 100}, ""},
		{"cut short", good[:len(good)-50], Weights{}, "damaged or cut short"},
		{"magic number", broken.build(), Weights{}, "damaged or cut short"},
		{"longer than the file", tiny{defined: bounds, weights: append(le(uint64(1)<<40), "magic123"...)}.build(), Weights{}, "cut short"},
		{"the wrong way", tiny{defined: []string{bounds[1], bounds[0]}, weights: make([]byte, 64)}.build(), Weights{}, "end before they start"},
	} {
		l, err := ReadLibrary(bytes.NewReader(tc.lib), int64(len(tc.lib)))
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v", tc.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case l.Weights != tc.want:
			t.Errorf("%s: %+v, want %+v", tc.name, l.Weights, tc.want)
		}
	}
}

// hostile changes one thing in a good library.
func TestHostileLibrary(t *testing.T) {
	good := tinyModel().build()
	dynamic := int(binary.LittleEndian.Uint64(good[64+segmentSize+8:]))
	row := func(tag elf.DynTag) int {
		for at := dynamic; ; at += dynSize {
			if elf.DynTag(binary.LittleEndian.Uint64(good[at:])) == tag {
				return at + 8
			}
		}
	}
	set := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
	}
	value := func(tag elf.DynTag) uint64 { return binary.LittleEndian.Uint64(good[row(tag):]) }
	for _, tc := range []struct {
		name, want string
		change     func([]byte)
	}{
		{"32 bits", "64-bit little-endian", func(b []byte) { b[elf.EI_CLASS] = 1 }},
		{"an executable", "not a shared library", func(b []byte) { b[16] = 2 }},
		{"no segments", "0 program headers", func(b []byte) { b[56] = 0 }},
		{"many segments", "program headers", func(b []byte) { b[57] = 0xff }},
		{"headers outside", "program headers lies outside", set(32, 1<<60)},
		{"segment outside", "outside the file", set(64+32, 1<<62)},
		{"segment wraps", "outside the file", func(b []byte) { set(64+16, 1<<63)(b); set(64+32, 1<<63)(b) }},
		{"dynamic twice", "two dynamic segments", func(b []byte) { b[64] = 2 }},
		{"dynamic elsewhere", "in no segment", set(64+segmentSize+16, 1<<40)},
		{"dynamic in two places", "two places", set(64+segmentSize+8, 64)},
		{"dynamic without end", "has no end", set(64+segmentSize+32, 32)},
		{"names outside", "in no segment", set(row(elf.DT_STRTAB), 1<<50)},
		{"names too long", "in no segment", set(row(elf.DT_STRSZ), 1<<50)},
		{"names overlap", "overlap", set(row(elf.DT_STRTAB), value(elf.DT_SYMTAB))},
		{"needed name outside", "outside the table of names", set(row(elf.DT_NEEDED), 1<<30)},
		{"symbols outside", "in no segment", set(row(elf.DT_SYMTAB), uint64(len(good))-8)},
		{"a million symbols", "symbols, more than", func(b []byte) { binary.LittleEndian.PutUint32(b[value(elf.DT_HASH)+4:], 1<<31) }},
		{"a symbol's name", "outside the table of names", func(b []byte) {
			binary.LittleEndian.PutUint32(b[value(elf.DT_SYMTAB)+symSize:], 1<<31)
		}},
		{"versions end early", "end early", func(b []byte) {
			binary.LittleEndian.PutUint32(b[value(elf.DT_VERNEED)+12:], 1<<30)
		}},
		{"versions in a circle", "circle", func(b []byte) { b[value(elf.DT_VERNEED)+12] = 1 }},
	} {
		b := slices.Clone(good)
		tc.change(b)
		_, err := ReadLibrary(bytes.NewReader(b), int64(len(b)))
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestClass(t *testing.T) {
	for _, tc := range []struct {
		s    Symbol
		want Class
	}{
		{Symbol{Name: "aoti_torch_empty_strided"}, ClassHost},
		{Symbol{Name: "aoti_record_function_start"}, ClassHost},
		{Symbol{Name: "Sleef_tanhd4_u10"}, ClassVectorMath},
		{Symbol{Name: "__kmpc_fork_call"}, ClassOpenMP},
		{Symbol{Name: "whatever", Library: "libgomp.so.1", Version: "GOMP_9"}, ClassOpenMP},
		{Symbol{Name: "memcpy", Library: "libc.so.6", Version: "GLIBC_2.14"}, ClassSystem},
		{Symbol{Name: "_ZNOSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv"}, ClassSystem},
		{Symbol{Name: "_ZN3c105ErrorD1Ev"}, ClassLibtorch},
		{Symbol{Name: "_ZNK2at10TensorBase8data_ptrEv"}, ClassLibtorch},
		{Symbol{Name: "_ZTIN3c105ErrorE"}, ClassLibtorch},
		{Symbol{Name: "cuLaunchKernel"}, ClassDevice},
		{Symbol{Name: "__gmon_start__", Weak: true}, ClassOptional},
		{Symbol{Name: "my_custom_op"}, ClassOther},
	} {
		if got := tc.s.Class(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.s.Name, got, tc.want)
		}
	}
}

func FuzzReadLibrary(f *testing.F) {
	f.Add(tinyModel().build())
	f.Add(tiny{}.build())
	f.Add(tiny{defined: []string{"_binary_constants_bin_start", "_binary_constants_bin_end"}, weights: le(uint64(16), uint64(1))}.build())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ReadLibrary(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if fe := (*FormatError)(nil); !errors.As(err, &fe) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		edits, err := l.HostEdits()
		if err != nil {
			return
		}
		out, end := slices.Clone(b), int64(0)
		for _, e := range edits {
			if e.Offset < end || e.Offset+int64(len(e.Data)) > int64(len(b)) {
				t.Fatalf("edit at %d of %d bytes", e.Offset, len(e.Data))
			}
			end = e.Offset + int64(len(e.Data))
			copy(out[e.Offset:], e.Data)
		}
		// What a patch makes can be read again, and leaves nothing to patch.
		again, err := ReadLibrary(bytes.NewReader(out), int64(len(out)))
		if err != nil {
			t.Fatalf("the copy can't be read: %v", err)
		}
		for _, s := range again.Undefined {
			if renamed(s.Name, HostRenames()) != s.Name {
				t.Fatalf("%s keeps its name", s.Name)
			}
		}
	})
}
