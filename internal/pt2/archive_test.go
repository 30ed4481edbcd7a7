package pt2

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// file is a member of a test archive.
type file struct {
	name string
	data string
	// packed stores it compressed.
	packed bool
	// header changes its header, which then is written as it is.
	header func(*zip.FileHeader)
}

func archiveOf(t testing.TB, files []file) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Store}
		if f.packed {
			h.Method = zip.Deflate
		}
		var dst io.Writer
		var err error
		if f.header != nil {
			h.CRC32 = crc32.ChecksumIEEE([]byte(f.data))
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(f.data)), uint64(len(f.data))
			f.header(h)
			dst, err = w.CreateRaw(h)
		} else {
			dst, err = w.CreateHeader(h)
		}
		if err == nil {
			_, err = io.WriteString(dst, f.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const goodMetadata = `{"AOTI_DEVICE_KEY": "cpu", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64",
	"AOTI_CPU_ISA": "AVX512 AVX512_VNNI", "AOTI_COMPUTE_CAPABILITY": "", "mine": "kept", "number": 3}`

// modern is a package as PyTorch 2.15 makes it.
func modern() []file {
	lib := string(tinyModel().build())
	return []file{
		{name: "m/data/aotinductor/model/x.wrapper.so", data: lib},
		{name: "m/data/aotinductor/model/x.wrapper.cpp", data: sampleSource, packed: true},
		{name: "m/data/aotinductor/model/x.wrapper_metadata.json", data: goodMetadata},
		{name: "m/data/aotinductor/model/y.kernel.cpp", data: "int x;"},
		{name: "m/archive_format", data: "pt2"},
		{name: "m/archive_version", data: "0"},
		{name: "m/byteorder", data: "little"},
		{name: "m/.data/version", data: "6"},
	}
}

func openBytes(b []byte) (*Package, error) {
	return OpenReader(bytes.NewReader(b), int64(len(b)), "t.pt2")
}

func mustOpen(t *testing.T, files []file) *Package {
	t.Helper()
	p, err := openBytes(archiveOf(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenModern(t *testing.T) {
	p := mustOpen(t, modern())
	if p.Root != "m" || p.Version != "0" || p.Kind != KindArchive || len(p.Notes) != 0 {
		t.Errorf("package: %+v", p)
	}
	m, err := p.Model("")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "model" || m.LibraryFile != "x.wrapper.so" || m.SourceFile != "x.wrapper.cpp" {
		t.Errorf("model: %q %q %q", m.Name, m.LibraryFile, m.SourceFile)
	}
	if got := m.Metadata; got.Device() != "cpu" || got["mine"] != "kept" || got["number"] != "3" ||
		!slices.Equal(got.ISA(), []string{"AVX512", "AVX512_VNNI"}) {
		t.Errorf("metadata: %v", got)
	}
	if src, err := m.Source(); err != nil || string(src) != sampleSource {
		t.Errorf("source: %d bytes, %v", len(src), err)
	}
	if lib, err := m.Library(); err != nil || lib.Generation().Version != "2.15" {
		t.Errorf("library: %v", err)
	}
	if err := p.Verify(); err != nil {
		t.Error(err)
	}
	if _, err := p.Model("other"); err == nil || !strings.Contains(err.Error(), "its models are model") {
		t.Errorf("another model: %v", err)
	}
}

// PyTorch 2.6 has no root folder and another name for the version.
func TestOpenOld(t *testing.T) {
	p := mustOpen(t, []file{
		{name: "data/aotinductor/model/x.so", data: string(tinyModel().build()), packed: true},
		{name: "data/aotinductor/model/x.cpp", data: sampleSource},
		{name: "data/aotinductor/model/x_metadata.json", data: `{"AOTI_DEVICE_KEY": "cpu"}`},
		{name: "data/aotinductor/model/x.json", data: `{"nodes": [{"name": "buf0", "node": {"target": "aten::foo", "inputs": []}}]}`},
		{name: "version", data: "1"}, {name: "archive_format", data: "pt2"},
	})
	m, err := p.Model("model")
	if err != nil {
		t.Fatal(err)
	}
	if p.Root != "" || p.Version != "1" || len(p.Notes) != 0 {
		t.Errorf("root %q, version %q, notes %v", p.Root, p.Version, p.Notes)
	}
	if len(m.Externs) != 1 || m.Externs[0].Target != "aten::foo" || m.Externs[0].Name != "buf0" {
		t.Errorf("extern ops: %v", m.Externs)
	}
	if _, err := m.Library(); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	priv, err := m.Private(context.Background(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer priv.Close()
	got, err := os.ReadFile(priv.Path())
	if err != nil || !bytes.Equal(got, patched(t, tinyModel().build())) {
		t.Errorf("the copy of an inflated library differs, %v", err)
	}
}

func TestSeveralModels(t *testing.T) {
	lib := string(tinyModel().build())
	p := mustOpen(t, []file{
		{name: "r/data/aotinductor/b/x.so", data: lib}, {name: "r/data/aotinductor/a/x.so", data: lib},
		{name: "r/data/aotinductor/model/x.so", data: lib},
	})
	var names []string
	for _, m := range p.Models() {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "model"}) {
		t.Errorf("models %v", names)
	}
	if m, err := p.Model(""); err != nil || m.Name != "model" {
		t.Errorf("the default is %v, %v", m, err)
	}
}

func TestRefusedPackages(t *testing.T) {
	lib := string(tinyModel().build())
	model := func(name, data string) file { return file{name: "data/aotinductor/model/" + name, data: data} }
	for _, tc := range []struct {
		name, want string
		files      []file
	}{
		{"an exported program", "torch.export.save", []file{{name: "r/models/model.json", data: "{}"}, {name: "r/archive_format", data: "pt2"}}},
		{"an old exported program", "torch.export.save", []file{{name: "serialized_exported_program.json", data: "{}"}}},
		{"TorchScript", "TorchScript", []file{{name: "r/data.pkl", data: "x"}, {name: "r/constants.pkl", data: "x"}}},
		{"a checkpoint", "torch.save", []file{{name: "r/data.pkl", data: "x"}}},
		{"nothing", "no compiled models", []file{{name: "x", data: "x"}}},
		{"another format", `"zip"`, []file{model("x.so", lib), {name: "archive_format", data: "zip"}}},
		{"big endian", `"big"`, []file{model("x.so", lib), {name: "byteorder", data: "big"}}},
		{"two packages", "2 packages", []file{{name: "a/archive_format", data: "pt2"}, {name: "b/archive_format", data: "pt2"}}},
		{"source only", "package_cpp_only", []file{model("x.cpp", "int x;")}},
		{"no library", "no shared library", []file{model("x_metadata.json", "{}")}},
		{"two libraries", "2 libraries", []file{model("x.so", lib), model("y.so", lib)}},
		{"metadata is a list", "not the JSON", []file{model("x.so", lib), model("x_metadata.json", "[1]")}},
		{"metadata is cut", "not the JSON", []file{model("x.so", lib), model("x_metadata.json", `{"a": `)}},
		{"metadata twice", "more than one JSON", []file{model("x.so", lib), model("x_metadata.json", `{} {}`)}},
		{"deep metadata", "not the JSON", []file{model("x.so", lib), model("x_metadata.json", `{"a":`+strings.Repeat("[", 200000))}},
		{"huge metadata", "more than the", []file{model("x.so", lib), model("x_metadata.json", strings.Repeat(" ", maxMetadata+1))}},
		{"nodes without ops", "names no op", []file{model("x.so", lib), model("x.json", `{"nodes": [{}]}`)}},
		{"weights elsewhere", "not there", []file{model("x.so", lib), model("weights_config.json", `{"w": ["weight_0", [2], [1], 0]}`)}},
		{"odd weights", "is not [file", []file{model("x.so", lib), model("weights_config.json", `{"w": ["weight_0", [2]]}`)}},
	} {
		_, err := openBytes(archiveOf(t, tc.files))
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), tc.want) || fe.Path != "t.pt2" {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// Whatever the archive's directory says, it is an error that names the member,
// and nothing is written.
func TestHostileArchives(t *testing.T) {
	raw := func(change func(*zip.FileHeader)) []file {
		return append(modern(), file{name: "m/extra", data: "some bytes", header: change})
	}
	zeros := strings.Repeat("\x00", 8<<20)
	for _, tc := range []struct {
		name, want string
		files      []file
		lim        Limits
	}{
		{"absolute path", "absolute", append(modern(), file{name: "/etc/passwd"}), Limits{}},
		{"a drive", "absolute", append(modern(), file{name: `C:\x`}), Limits{}},
		{"dots", `".."`, append(modern(), file{name: "m/../../x"}), Limits{}},
		{"dots and backslashes", `".."`, append(modern(), file{name: `m\..\..\x`}), Limits{}},
		{"a zero byte", "zero byte", append(modern(), file{name: "m/a\x00b"}), Limits{}},
		{"a long name", "4096", append(modern(), file{name: strings.Repeat("a", 5000)}), Limits{}},
		{"twice", "twice", append(modern(), file{name: "m/byteorder", data: "big"}), Limits{}},
		{"twice by other spelling", "twice", append(modern(), file{name: "m//byteorder", data: "big"}), Limits{}},
		{"a file and a folder", "which is a file", append(modern(), file{name: "m/byteorder/x"}), Limits{}},
		{"a folder with contents", "a folder with contents", append(modern(), file{name: "m/d/", header: func(h *zip.FileHeader) {
			h.UncompressedSize64 = 5
		}}), Limits{}},
		{"a link", "not a plain file", raw(func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) }), Limits{}},
		{"encrypted", "encrypted", raw(func(h *zip.FileHeader) { h.Flags |= 1 }), Limits{}},
		{"another method", "method 12", raw(func(h *zip.FileHeader) { h.Method = 12 }), Limits{}},
		{"two sizes", "two different sizes", raw(func(h *zip.FileHeader) { h.UncompressedSize64 = 3 }), Limits{}},
		{"a huge size", "bytes in an archive of", raw(func(h *zip.FileHeader) {
			h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40
		}), Limits{}},
		{"a bomb", "times as much", append(modern(), file{name: "m/zeros", data: zeros, packed: true}), Limits{}},
		{"many bombs", "inflates to more than", append(modern(), file{name: "m/zeros", data: zeros, packed: true}), Limits{Ratio: 1e6, Inflated: 1 << 20}},
		{"many members", "more than the 3 allowed", modern(), Limits{Members: 3}},
		{"long text", "more than the 8 allowed", modern(), Limits{Text: 8}},
	} {
		b := archiveOf(t, tc.files)
		_, err := tc.lim.OpenReader(bytes.NewReader(b), int64(len(b)), "t.pt2")
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// What only reading shows is an error when it is read, and when all is verified.
func TestDamagedMembers(t *testing.T) {
	with := func(change func(*zip.FileHeader)) []file {
		files := modern()
		files[0].header = change
		return files
	}
	inflated := modern()
	inflated[1].packed = false
	inflated[1].data = "\x4b\x04\x00" // deflated "a"
	inflated[1].header = func(h *zip.FileHeader) {
		h.Method, h.UncompressedSize64, h.CRC32 = zip.Deflate, 500, crc32.ChecksumIEEE([]byte("a"))
	}
	for _, tc := range []struct {
		name  string
		files []file
		read  func(*Model) error
	}{
		{"wrong checksum", with(func(h *zip.FileHeader) { h.CRC32++ }), func(m *Model) error {
			if runtime.GOOS != "linux" {
				return &FormatError{}
			}
			_, err := m.Private(context.Background(), "", false)
			return err
		}},
		{"lying size", inflated, func(m *Model) error { _, err := m.Source(); return err }},
	} {
		p := mustOpen(t, tc.files)
		m, err := p.Model("")
		if err != nil {
			t.Fatal(err)
		}
		var fe *FormatError
		if err := tc.read(m); !errors.As(err, &fe) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err := p.Verify(); !errors.As(err, &fe) || fe.Member == "" {
			t.Errorf("%s, verified: %v", tc.name, err)
		}
		if _, err := p.Inspect(Host{}); !errors.As(err, &fe) {
			t.Errorf("%s, inspected: %v", tc.name, err)
		}
	}
}

// Members that share bytes make small archives that never end.
func TestOverlap(t *testing.T) {
	b := archiveOf(t, []file{{name: "a", data: "0123456789"}, {name: "b", data: "0123456789"}})
	central := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[central+42:], 0) // the second's header is the first's
	_, err := openBytes(b)
	if err == nil || !strings.Contains(err.Error(), "shares bytes") {
		t.Errorf("got %v", err)
	}
}

func TestCutArchive(t *testing.T) {
	b := archiveOf(t, modern())
	for n := 0; n < len(b); n += 7 {
		var fe *FormatError
		if _, err := openBytes(b[:n]); !errors.As(err, &fe) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	files := modern()
	files[5].data = "7"
	p := mustOpen(t, files)
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], `"7"`) {
		t.Errorf("notes: %v", p.Notes)
	}
}

// unpack writes the files of an archive into a folder.
func unpack(t *testing.T, files []file) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(path), filepath.Base(path), f.data)
	}
	return dir
}

func TestOpenFolders(t *testing.T) {
	dir := unpack(t, modern())
	inner := filepath.Join(dir, "m", "data", "aotinductor", "model")
	for _, path := range []string{dir, filepath.Join(dir, "m"), inner, filepath.Join(inner, "x.wrapper.so")} {
		p, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		m, err := p.Model("")
		if err != nil {
			t.Fatal(err)
		}
		if m.LibraryFile != "x.wrapper.so" || m.SourceFile != "x.wrapper.cpp" || m.Metadata.Device() != "cpu" {
			t.Errorf("%s: library %q, source %q, device %q", path, m.LibraryFile, m.SourceFile, m.Metadata.Device())
		}
		if s, err := m.Spec(); err != nil || len(s.Inputs) == 0 {
			t.Errorf("%s: spec %v, %v", path, s, err)
		}
		if s, err := m.Open(m.LibraryFile); err != nil || s.File == nil {
			t.Errorf("%s: the library has no file, %v", path, err)
		} else {
			s.Close()
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Links may not lead out of a folder.
func TestFolderLinks(t *testing.T) {
	dir := unpack(t, modern())
	outside := write(t, t.TempDir(), "secret", "x")
	inner := filepath.Join(dir, "m", "data", "aotinductor", "model")
	if err := os.Symlink(outside, filepath.Join(inner, "x.wrapper.json")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	_, err := Open(dir)
	if err == nil || !strings.Contains(err.Error(), "links may not lead outside") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(inner, "x.wrapper.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x.wrapper.so", filepath.Join(inner, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("a link inside the folder: %v", err)
	}
}

func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.pt2")
	if err := os.WriteFile(archive, archiveOf(t, modern()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := p.Model("")
	s, err := m.Open(m.LibraryFile)
	if err != nil || s.File == nil {
		t.Fatalf("stored members have no place in the file: %v", err)
	}
	b := make([]byte, s.Size)
	if _, err := s.File.ReadAt(b, s.Offset); err != nil || !bytes.Equal(b, tinyModel().build()) {
		t.Errorf("the file has something else at %d, %v", s.Offset, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	text := write(t, dir, "text", "hello")
	if _, err := Open(text); err == nil || !strings.Contains(err.Error(), "neither a zip archive") {
		t.Errorf("a text: %v", err)
	}
}

// Weights that lie in files of their own, each an archive by torch.save.
func TestStoredWeights(t *testing.T) {
	storage := archiveOf(t, []file{
		{name: "archive/data.pkl", data: "pickle"}, {name: "archive/byteorder", data: "little"}, {name: "archive/data/0", data: "abcdefgh"},
	})
	files := append(modern(),
		file{name: "m/data/weights/weight_0", data: string(storage)},
		file{name: "m/data/aotinductor/model/weights_config.json", data: `{"fc.weight": ["weight_0", [2], [1], 0]}`})
	dir := t.TempDir()
	path := filepath.Join(dir, "a.pt2")
	if err := os.WriteFile(path, archiveOf(t, files), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, _ := p.Model("")
	w := m.Weights["fc.weight"]
	s, err := m.WeightFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	heap := func(n int64) ([]byte, error) { return make([]byte, n), nil }
	data, err := s.Contents(context.Background(), heap)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Storage(context.Background(), w.File, data, true)
	if err != nil || string(got) != "abcdefgh" || !slices.Equal(w.Shape, []int64{2}) {
		t.Errorf("weight %+v: %q, %v", w, got, err)
	}
	inFile := make([]byte, s.Size)
	if _, err := s.File.ReadAt(inFile, s.Offset); err != nil || string(inFile) != string(storage) {
		t.Errorf("in the file: %q, %v", inFile, err)
	}
	if _, err := m.WeightFile("none"); err == nil {
		t.Error("a weight that is not there")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(archiveOf(f, modern()))
	f.Add(archiveOf(f, []file{{name: "models/model.json", data: "{}"}}))
	f.Add(tinyModel().build())
	lim := Limits{Text: 1 << 20, Inflated: 4 << 20, Memory: 4 << 20, Members: 100}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := lim.OpenReader(bytes.NewReader(b), int64(len(b)), "fuzz")
		var fe *FormatError
		if err != nil {
			if !errors.As(err, &fe) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if r, err := p.Inspect(Host{Target: HostTarget()}); err == nil {
			if err := r.WriteText(io.Discard); err != nil {
				t.Fatal(err)
			}
		} else if !errors.As(err, &fe) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
