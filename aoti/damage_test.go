package aoti_test

// Files that are damaged before they are loaded, or changed afterwards.

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// member is a file of an archive.
type member struct {
	name string
	data []byte
}

// members reads the archive of a fixture.
func members(t testing.TB, name string) []member {
	t.Helper()
	z, err := zip.OpenReader(path(name))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var list []member
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, member{f.Name, data})
	}
	return list
}

// storeAll writes an archive of members that are not compressed, as PyTorch does, and
// returns its path and where the bytes of each member lie.
func storeAll(t testing.TB, list []member) (string, map[string]int64) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	at := map[string]int64{}
	for _, m := range list {
		h := &zip.FileHeader{Name: m.name, CRC32: crc32.ChecksumIEEE(m.data)}
		h.CompressedSize64, h.UncompressedSize64 = uint64(len(m.data)), uint64(len(m.data))
		f, err := w.CreateRaw(h)
		if err == nil {
			err = w.Flush()
		}
		at[m.name] = int64(b.Len())
		if err == nil {
			_, err = f.Write(m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "model.pt2")
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return to, at
}

// unpackAll writes the members to a folder, without the folder around them.
func unpackAll(t testing.TB, list []member) string {
	t.Helper()
	dir := t.TempDir()
	for _, m := range list {
		_, rest, _ := strings.Cut(m.name, "/")
		to := filepath.Join(dir, filepath.FromSlash(rest))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, m.data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// weighty tells the members that hold weights apart from the library.
func weighty(name string) bool {
	return strings.Contains(name, "/data/weights/") || strings.HasSuffix(name, ".blob")
}

// flip changes one bit of a file.
func flip(t testing.TB, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

// One changed bit in a file of weights is an error of Load that names the file,
// wherever in it the bit is; only who asks for it loads unchecked.
func TestDamagedWeightsAreRefused(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"weights_disk", "weights_blob"} {
		load(t, name) // or skip
		list := members(t, name)
		for _, m := range list {
			if !weighty(m.name) {
				continue
			}
			for _, part := range []int{0, len(m.data) / 2, len(m.data) - 1} {
				file, at := storeAll(t, list)
				flip(t, file, at[m.name]+int64(part))
				r, err := aoti.Load(ctx, file)
				var fe *aoti.FormatError
				if err == nil {
					r.Close()
					t.Fatalf("%s: loaded with a changed bit at %d", m.name, part)
				}
				if _, rest, _ := strings.Cut(m.name, "/"); !errors.As(err, &fe) || fe.Member != rest || fe.Path != file {
					t.Errorf("%s: a changed bit at %d: %v", m.name, part, err)
				}
			}
		}
	}
	file, at := storeAll(t, members(t, "weights_blob"))
	for name, place := range at {
		if weighty(name) {
			flip(t, file, place+3)
		}
	}
	r, err := aoti.Load(ctx, file, aoti.WithoutVerify())
	if err != nil {
		t.Fatalf("without verification: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A file that torch.save wrote has a checksum of its own, which counts where there is
// no archive around it.
func TestDamagedStorageInAFolder(t *testing.T) {
	load(t, "weights_disk") // or skip
	list := members(t, "weights_disk")
	dir := unpackAll(t, list)
	r, err := aoti.Load(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	right(t, r, open(t, "weights_disk"))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range list {
		if !weighty(m.name) {
			continue
		}
		z, err := zip.NewReader(bytes.NewReader(m.data), int64(len(m.data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			if !strings.Contains(f.Name, "/data/") {
				continue
			}
			at, err := f.DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(m.name, "/")
			file := filepath.Join(dir, filepath.FromSlash(rest))
			flip(t, file, at+1)
			r, err := aoti.Load(context.Background(), dir)
			var fe *aoti.FormatError
			if err == nil {
				r.Close()
			}
			if !errors.As(err, &fe) || fe.Member != rest {
				t.Errorf("%s: %v", m.name, err)
			}
			flip(t, file, at+1)
		}
	}
}

// What happens to a file after it was loaded changes nothing: neither other bytes in
// the same file, as cp writes them, nor a shorter file.
func TestFileChangesWhileLoaded(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"mlp", "weights_disk", "weights_blob", "weights_mmap"} {
		load(t, name) // or skip
		f := open(t, name)
		file, _ := storeAll(t, members(t, name))
		fromReader := func() (*aoti.Runner, error) {
			r, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			info, err := r.Stat()
			if err != nil {
				return nil, err
			}
			return aoti.LoadFrom(ctx, r, info.Size())
		}
		for i, open := range []func() (*aoti.Runner, error){
			func() (*aoti.Runner, error) { return aoti.Load(ctx, file) },
			fromReader,
		} {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				was, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				r, err := open()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				right(t, r, f)
				if err := os.WriteFile(file, make([]byte, len(was)), 0o600); err != nil {
					t.Fatal(err)
				}
				right(t, r, f)
				if err := os.Truncate(file, 10); err != nil {
					t.Fatal(err)
				}
				right(t, r, f)
				if err := r.Update(ctx, nil, aoti.Inactive, aoti.Partial()); err != nil {
					t.Error(err)
				}
				if err := r.Swap(ctx); err != nil {
					t.Error(err)
				}
				right(t, r, f)
				if err := os.WriteFile(file, was, 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// What a package says of its weights may be anything: it is an error that names the
// weight, before memory is asked for.
func TestPlacesOfWeightsThatLie(t *testing.T) {
	load(t, "weights_disk") // or skip
	list := members(t, "weights_disk")
	edit := func(suffix string, change func(string) string) string {
		changed := slices.Clone(list)
		for i, m := range changed {
			if strings.HasSuffix(m.name, suffix) {
				changed[i].data = []byte(change(string(m.data)))
			}
		}
		file, _ := storeAll(t, changed)
		return file
	}
	row := func(row string) string {
		return edit("weights_config.json", func(s string) string {
			return regexp.MustCompile(`"0\.bias": *\[[^\[]*\[[^\]]*\][^\]]*\][^\]]*\]`).ReplaceAllString(s, `"0.bias": `+row)
		})
	}
	for name, tc := range map[string]struct{ file, want string }{
		"a scalar outside":           {row(`["weight_1", [], [], 999999]`), `weight "0.bias"`},
		"nothing outside":            {row(`["weight_1", [0], [1], 1000000000]`), `weight "0.bias"`},
		"an offset that overflows":   {row(`["weight_1", [2], [1], 9223372036854775807]`), `weight "0.bias"`},
		"a negative offset":          {row(`["weight_1", [2], [1], -4]`), `weight "0.bias"`},
		"sizes that overflow":        {row(`["weight_1", [4611686018427387904, 4], [0, 0], 0]`), `weight "0.bias"`},
		"a negative size":            {row(`["weight_1", [-1], [1], 0]`), `weight "0.bias"`},
		"strides that overflow":      {row(`["weight_1", [3, 3], [4611686018427387904, 4611686018427387904], 0]`), `weight "0.bias"`},
		"an expanded one of 87 GB":   {row(`["weight_1", [384, 384, 384, 384], [0, 0, 0, 0], 0]`), "more than"},
		"an expanded one of a shape": {row(`["weight_1", [384, 3], [0, 0], 0]`), `"0.bias"`},
		"another shape":              {row(`["weight_1", [2], [1], 0]`), `"0.bias"`},
		"no strides in the source": {edit("wrapper.cpp", func(s string) string {
			return regexp.MustCompile(`constants_info_\[\d+\]\.stride = .*\n`).ReplaceAllString(s, "")
		}), "weight"},
		"too few strides in the source": {edit("wrapper.cpp", func(s string) string {
			return regexp.MustCompile(`(constants_info_\[0\]\.stride = ).*\n`).ReplaceAllString(s, "${1}{1L};\n")
		}), "weight"},
	} {
		r, err := aoti.Load(context.Background(), tc.file)
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A library without source runs, and says that it can't tell what its inputs are.
func TestExampleShapesOfABareLibrary(t *testing.T) {
	load(t, "mlp") // or skip
	r, err := aoti.Load(context.Background(), extract(t, "mlp", ".so"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if shapes, err := r.ExampleShapes(nil); err == nil || !strings.Contains(err.Error(), r.InputNames()[0]) {
		t.Errorf("%v, %v", shapes, err)
	}
	right(t, r, open(t, "mlp"))
}

// A file of more weights than memory is refused before anything is allocated: it may be
// one line of a sparse file.
func TestWeightsBeyondMemory(t *testing.T) {
	load(t, "weights_blob") // or skip
	dir := unpackAll(t, members(t, "weights_blob"))
	blobs, err := filepath.Glob(filepath.Join(dir, "data/aotinductor/model/*.blob"))
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	const size = 1 << 43
	if err := os.Truncate(blobs[0], size); err != nil {
		t.Skip("no sparse files of 8 TiB here: ", err)
	}
	held := memlimit.Held()
	r, err := aoti.Load(context.Background(), dir)
	var oom *ir.OutOfMemory
	if err == nil {
		r.Close()
	}
	if !errors.As(err, &oom) || oom.Wanted != size || !strings.Contains(err.Error(), ".blob") {
		t.Errorf("%v", err)
	}
	if now := memlimit.Held(); now != held {
		t.Errorf("%d bytes are held, %d before", now, held)
	}
}
