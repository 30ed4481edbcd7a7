package pt2

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"

	"strings"
	"testing"
)

// sharedNames is a library whose needed versions all point at one chain of names,
// each as long as a name may be.
func sharedNames(entries, names, length int) []byte {
	b := tiny{undefined: []string{strings.Repeat("n", length), "malloc"},
		versions: []tinyNeed{{"libc.so.6", "GLIBC_2", []string{"malloc"}}}}.build()
	// The chain is built anew at the end of the file, which its only segment maps.
	at := uint64((len(b) + 15) &^ 15)
	b = append(b, make([]byte, int(at)-len(b))...)
	le := binary.LittleEndian
	chain := entries * verneedSize
	for i := range entries {
		e := make([]byte, verneedSize)
		le.PutUint16(e, 1)
		le.PutUint16(e[2:], uint16(names))
		le.PutUint32(e[4:], 1) // the long name
		le.PutUint32(e[8:], uint32(chain-i*verneedSize))
		if i < entries-1 {
			le.PutUint32(e[12:], verneedSize)
		}
		b = append(b, e...)
	}
	for i := range names {
		a := make([]byte, vernauxSize)
		le.PutUint16(a[6:], uint16(i&0x7fff))
		le.PutUint32(a[8:], 1)
		if i < names-1 {
			le.PutUint32(a[12:], vernauxSize)
		}
		b = append(b, a...)
	}
	size := uint64(len(b))
	le.PutUint64(b[64+32:], size)
	le.PutUint64(b[64+40:], size)
	dyn := le.Uint64(b[64+segmentSize+8:])
	for ; le.Uint64(b[dyn:]) != 0; dyn += dynSize {
		if le.Uint64(b[dyn:]) == 0x6ffffffe { // DT_VERNEED
			le.PutUint64(b[dyn+8:], at)
		}
	}
	return b
}

// The work of inspecting is bounded by the size of what is inspected: each of these
// would take hours, or more memory than there is.
func TestInspectIsBounded(t *testing.T) {
	source := func(text string) []file {
		files := modern()
		files[1].data, files[1].packed = text, false
		return files
	}
	thin := make([]byte, 24<<20) // deflate makes a hundredth of it
	for i := 0; i < len(thin); i += 400 {
		thin[i] = byte(i * i >> 9)
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(thin)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	sum := crc32.ChecksumIEEE(thin)
	var inflating []file
	for i := range 16 {
		inflating = append(inflating, file{name: fmt.Sprintf("m/data/aotinductor/model/%d.json", i), data: small.String(), header: func(h *zip.FileHeader) {
			h.Method, h.CRC32, h.UncompressedSize64 = zip.Deflate, sum, uint64(len(thin))
		}})
	}
	long := "AOTI_TORCH_ERROR_CODE_CHECK(" + strings.Repeat("k,", maxLine/2-20)
	deep := strings.Repeat("a/", 2000)
	var folders []file
	for i := range 100 {
		folders = append(folders, file{name: deep + fmt.Sprint(i)})
	}
	for _, tt := range []struct {
		name  string
		files []file
		want  string // in the error; empty if it is no error
	}{
		{"names that share their bytes", append(modern()[1:], file{name: "m/data/aotinductor/model/x.wrapper.so", data: string(sharedNames(4000, 50000, 60000))}), "names"},
		{"members that inflate", append(modern(), inflating...), "inflates"},
		{"constants in long lines", source("constants_info_[0].name = \"k\";\n" + strings.Repeat(long+"\n", 40)), ""},
		{"deep folders", append(modern(), folders...), "folders"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := openBytes(archiveOf(t, tt.files))
			if err == nil {
				_, err = p.Inspect(Host{Target: HostTarget()})
			}
			var fe *FormatError
			if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &fe) || !strings.Contains(fe.Problem, tt.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What a package says of itself is printed by programs of its reader.
func TestReportsAreSafeToPrint(t *testing.T) {
	const evil = "\x1b[2J\u009b31m\u202e"
	files := modern()
	files[2].data = `{"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "\u001b[2J\u009b31m\u202e", "AOTI_PLATFORM": "\u001b[2J\u009b31m\u202e"}`
	files[1].data = strings.ReplaceAll(files[1].data, "original_fqn = \"", "original_fqn = \""+evil)
	files[1].data = strings.ReplaceAll(files[1].data, "outputs_info_[0].name = \"", "outputs_info_[0].name = \""+evil)
	files = append(files, file{name: "m/data/aotinductor/model/" + evil + ".json", data: "{}"})
	p := mustOpen(t, files)
	r, err := p.Inspect(Host{Target: HostTarget()})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := errors.Join(r.WriteText(&b), r.Models[0].WriteConstants(&b)); err != nil {
		t.Fatal(err)
	}
	texts := []string{b.String(), p.models[0].CheckTarget(HostTarget()).Error(), (&InputError{Name: evil}).Error()}
	bad := append(modern(), file{name: "m/" + evil, data: "x", header: func(h *zip.FileHeader) { h.CRC32++ }})
	if q, err := openBytes(archiveOf(t, bad)); err != nil {
		t.Fatal(err)
	} else if _, err := q.Inspect(Host{}); err == nil {
		t.Fatal("a damaged member")
	} else {
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		if strings.ContainsAny(text, "\x1b\u009b\u202e") || !strings.Contains(text, `\u001b[2J\u009b31m\u202e`) {
			t.Errorf("%q", text)
		}
	}
}

// A call spec of many lines takes memory in proportion to its length.
func TestLongCallSpec(t *testing.T) {
	line := `R"(` + strings.Repeat("x", 40) + `)"` + "\n"
	src := []byte("in_spec_ =\n" + strings.Repeat(line, 20_000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := ParseSource(src)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(20*len(src)) || len(s.InSpec) != 20_000*40 {
		t.Errorf("%d bytes for a source of %d; a spec of %d", got, len(src), len(s.InSpec))
	}
}
