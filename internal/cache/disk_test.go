package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

func openTestDisk(t *testing.T, dir string, o DiskOptions) *Disk {
	t.Helper()
	d, err := OpenDisk(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustPut(t *testing.T, d *Disk, key DiskKey, payload []byte) {
	t.Helper()
	if err := d.Put(key, payload); err != nil {
		t.Fatal(err)
	}
}

func mustGet(t *testing.T, d *Disk, key DiskKey, want []byte) {
	t.Helper()
	got, ok, err := d.Get(key)
	if err != nil || !ok || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, %v, %v; want %d bytes", len(got), ok, err, len(want))
	}
}

func mustMiss(t *testing.T, d *Disk, key DiskKey) {
	t.Helper()
	if got, ok, err := d.Get(key); err != nil || ok || got != nil {
		t.Fatalf("got %d bytes, %v, %v; want a miss", len(got), ok, err)
	}
}

func mustStat(t *testing.T, d *Disk) DiskStats {
	t.Helper()
	s, err := d.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testKey(i int) DiskKey { return NewDiskKey([]byte("test"), []byte{byte(i)}) }

func TestDiskKey(t *testing.T) {
	b := func(parts ...string) DiskKey {
		var bs [][]byte
		for _, p := range parts {
			bs = append(bs, []byte(p))
		}
		return NewDiskKey(bs...)
	}
	keys := []DiskKey{b(), b(""), b("", ""), b("ab"), b("a", "b"), b("", "ab"), b("ab", "")}
	for i, k := range keys {
		if slices.Index(keys, k) != i {
			t.Errorf("key %d repeats", i)
		}
		if got, err := ParseDiskKey(k.String()); err != nil || got != k {
			t.Errorf("%v parses as %v, %v", k, got, err)
		}
	}
	if first, second := b("a", "b"), b("a", "b"); first != second {
		t.Error("the key depends on more than the parts")
	}
	for _, s := range []string{"", "ab", keys[0].String() + "00", "x" + keys[0].String()[1:]} {
		if _, err := ParseDiskKey(s); err == nil {
			t.Errorf("%q was parsed", s)
		}
	}
}

func TestDiskPutGet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b") // made by OpenDisk
	d := openTestDisk(t, dir, DiskOptions{})
	if d.Dir() != dir {
		t.Errorf("dir %s", d.Dir())
	}
	payloads := [][]byte{{}, {0}, []byte("hello"), bytes.Repeat([]byte("0123456789"), 1<<20)}
	mustMiss(t, d, testKey(0))
	for i, p := range payloads {
		mustPut(t, d, testKey(i), p)
	}
	for range 2 {
		for i, p := range payloads {
			mustGet(t, d, testKey(i), p)
		}
		d = openTestDisk(t, dir, DiskOptions{}) // it all survives
	}
	mustPut(t, d, testKey(1), []byte("new"))
	mustGet(t, d, testKey(1), []byte("new"))
	if err := d.Remove(testKey(1)); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(testKey(1)); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
	mustMiss(t, d, testKey(1))
	want := DiskStats{Entries: 3, Bytes: 3*diskHeaderLen + 5 + 10<<20, MaxBytes: DefaultDiskBytes,
		Hits: 1, Misses: 1, Puts: 1}
	if got := mustStat(t, d); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// edit changes the bytes of an entry's file.
func edit(t *testing.T, d *Disk, key DiskKey, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(d.path(key))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.path(key), f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

var damages = []struct {
	name   string
	reason string
	edit   func([]byte) []byte
}{
	{"empty", "shorter than its header", func(b []byte) []byte { return nil }},
	{"half a header", "shorter than its header", func(b []byte) []byte { return b[:diskHeaderLen/2] }},
	{"truncated", "wrong length", func(b []byte) []byte { return b[:len(b)-1] }},
	{"header only", "wrong length", func(b []byte) []byte { return b[:diskHeaderLen] }},
	{"longer", "wrong length", func(b []byte) []byte { return append(b, 0) }},
	{"huge length", "wrong length", func(b []byte) []byte {
		binary.LittleEndian.PutUint64(b[16:], 1<<62)
		return b
	}},
	{"magic", "wrong magic", func(b []byte) []byte { b[0]++; return b }},
	{"version", "wrong version", func(b []byte) []byte { b[8]++; return b }},
	{"reserved", "wrong reserved field", func(b []byte) []byte { b[12]++; return b }},
	{"another key's file", "wrong key", func(b []byte) []byte { b[24]++; return b }},
	{"checksum", "wrong checksum", func(b []byte) []byte { b[diskSumAt] ^= 1; return b }},
	{"first byte", "wrong checksum", func(b []byte) []byte { b[diskHeaderLen] ^= 1; return b }},
	{"last byte", "wrong checksum", func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b }},
	{"zeros", "wrong magic", func(b []byte) []byte { return make([]byte, len(b)) }},
}

func TestDiskDamage(t *testing.T) {
	for _, tt := range damages {
		t.Run(tt.name, func(t *testing.T) {
			d := openTestDisk(t, t.TempDir(), DiskOptions{})
			mustPut(t, d, testKey(0), []byte("sound"))
			mustPut(t, d, testKey(1), []byte("payload"))
			edit(t, d, testKey(1), tt.edit)
			mustMiss(t, d, testKey(1))
			if s := mustStat(t, d); s.Damaged != 1 || s.Misses != 1 || s.Entries != 1 {
				t.Errorf("stats %+v", s)
			}
			mustGet(t, d, testKey(0), []byte("sound"))
			mustPut(t, d, testKey(1), []byte("payload")) // rebuilt
			mustGet(t, d, testKey(1), []byte("payload"))
		})
	}
}

func TestDiskVerify(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	reasons := map[DiskKey]string{}
	for i, tt := range damages {
		mustPut(t, d, testKey(i), []byte("payload"))
		edit(t, d, testKey(i), tt.edit)
		reasons[testKey(i)] = tt.reason
	}
	sound := testKey(len(damages))
	mustPut(t, d, sound, []byte("sound"))
	before, _ := d.List()

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Verify(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	report, err := d.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Checked != len(before) || report.Bytes != totalSize(before) || len(report.Damaged) != len(damages) {
		t.Errorf("report %+v", report)
	}
	for _, e := range report.Damaged {
		if e.Reason != reasons[e.Key] {
			t.Errorf("%v, want %q", e, reasons[e.Key])
		}
	}
	after, err := d.List()
	if err != nil || len(after) != 1 || after[0].Key != sound {
		t.Fatalf("left %v, %v", after, err)
	}
	if !after[0].Used.Equal(before[0].Used) {
		t.Error("Verify counts as use")
	}
	if s := mustStat(t, d); s.Damaged != uint64(len(damages)) || s.Misses != 0 {
		t.Errorf("stats %+v", s)
	}
}

// The file can change, and the context end, while an entry is read.
func TestDiskReadInterrupted(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	tests := []struct {
		name      string
		interrupt func(f *os.File, cancel func()) error
		check     func(error) bool
	}{
		{"truncated",
			func(f *os.File, _ func()) error { return os.Truncate(f.Name(), diskHeaderLen+1) },
			func(err error) bool {
				var damage *DamageError
				want := fmt.Sprintf("cache: disk entry %v is damaged: truncated", testKey(1))
				return errors.As(err, &damage) && err.Error() == want
			}},
		{"cancelled",
			func(_ *os.File, cancel func()) error { cancel(); return nil },
			func(err error) bool { return errors.Is(err, context.Canceled) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mustPut(t, d, testKey(1), []byte("payload"))
			f, err := os.Open(d.path(testKey(1)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err = readEntry(ctx, f, testKey(1), func(int64) io.Writer {
				if err := tt.interrupt(f, cancel); err != nil {
					t.Error(err)
				}
				return io.Discard
			})
			if !tt.check(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDiskReadError(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	if err := os.Mkdir(d.path(testKey(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := d.Get(testKey(1)); err == nil || ok {
		t.Errorf("got %v, %v for a directory", ok, err)
	}
	if err := d.Put(testKey(1), nil); err == nil {
		t.Error("a directory was replaced")
	}
	if s := mustStat(t, d); s.Entries != 0 || s.Damaged != 0 || s.Temps != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDiskLeastRecentlyUsedLeaves(t *testing.T) {
	const size = diskHeaderLen + 36
	d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 3 * size})
	payload := make([]byte, size-diskHeaderLen)
	for i := range 3 {
		mustPut(t, d, testKey(i), payload)
	}
	mustGet(t, d, testKey(0), payload)
	mustPut(t, d, testKey(3), payload) // 1 is the oldest now
	mustMiss(t, d, testKey(1))
	entries, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	var order []DiskKey
	for _, e := range entries {
		order = append(order, e.Key)
		if e.Size != size {
			t.Errorf("size %d", e.Size)
		}
	}
	if want := []DiskKey{testKey(3), testKey(0), testKey(2)}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}

	mustPut(t, d, testKey(4), make([]byte, 2*size)) // makes two leave
	if s := mustStat(t, d); s.Evictions != 4 || s.Entries != 1 || s.Bytes > s.MaxBytes {
		t.Errorf("stats %+v", s)
	}
	if err := d.Put(testKey(5), make([]byte, 3*size)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if s := mustStat(t, d); s.Entries != 1 || s.Temps != 0 {
		t.Errorf("a refused entry changed the cache: %+v", s)
	}

	// A smaller bound holds from the next opening on; no bound is none.
	d = openTestDisk(t, d.Dir(), DiskOptions{MaxBytes: size})
	if s := mustStat(t, d); s.Entries != 0 {
		t.Errorf("stats %+v", s)
	}
	d = openTestDisk(t, d.Dir(), DiskOptions{MaxBytes: -1})
	for i := range 10 {
		mustPut(t, d, testKey(i), payload)
	}
	if s := mustStat(t, d); s.Entries != 10 {
		t.Errorf("stats %+v", s)
	}
}

func TestDiskKeepsWhatWasJustPut(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 200})
	mustPut(t, d, testKey(0), make([]byte, 100))
	future := time.Now().Add(time.Hour) // by another machine's clock
	if err := os.Chtimes(d.path(testKey(0)), future, future); err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, testKey(1), make([]byte, 100))
	mustGet(t, d, testKey(1), make([]byte, 100))
	mustMiss(t, d, testKey(0))
}

func TestDiskLeavesOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	upper := fmt.Sprintf("%X%s", testKey(0), diskSuffix)
	others := []string{"README", "x.entry", "abcd", upper, ".tmpfile"}
	old := time.Now().Add(-24 * time.Hour)
	for _, name := range others {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d := openTestDisk(t, dir, DiskOptions{MaxBytes: 100})
	mustPut(t, d, testKey(0), nil)
	mustPut(t, d, testKey(1), nil)
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if s := mustStat(t, d); s.Entries != 0 || s.Bytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDiskTemporaryFiles(t *testing.T) {
	clean := map[string]func(*testing.T, *Disk) *Disk{
		"open": func(t *testing.T, d *Disk) *Disk { return openTestDisk(t, d.Dir(), DiskOptions{}) },
		"put":  func(t *testing.T, d *Disk) *Disk { mustPut(t, d, testKey(7), nil); return d },
		"clear": func(t *testing.T, d *Disk) *Disk {
			if err := d.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
			return d
		},
	}
	for name, clean := range clean {
		t.Run(name, func(t *testing.T) {
			d := openTestDisk(t, t.TempDir(), DiskOptions{})
			for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "young": time.Minute} {
				p := filepath.Join(d.tempDir(), diskTempStart+name)
				if err := os.MkdirAll(d.tempDir(), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
					t.Fatal(err)
				}
				at := time.Now().Add(-age)
				if err := os.Chtimes(p, at, at); err != nil {
					t.Fatal(err)
				}
			}
			if s := mustStat(t, d); s.Temps != 2 {
				t.Fatalf("stats %+v", s)
			}
			d = clean(t, d)
			if s := mustStat(t, d); s.Temps != 1 {
				t.Errorf("stats %+v", s)
			}
			if _, err := os.Stat(filepath.Join(d.tempDir(), diskTempStart+"young")); err != nil {
				t.Errorf("a file in use was removed: %v", err)
			}
		})
	}
}

func TestDiskDirectoryRemoved(t *testing.T) {
	d := openTestDisk(t, filepath.Join(t.TempDir(), "cache"), DiskOptions{})
	mustPut(t, d, testKey(0), nil)
	if err := os.RemoveAll(d.Dir()); err != nil {
		t.Fatal(err)
	}
	mustMiss(t, d, testKey(0))
	if s := mustStat(t, d); s.Entries != 0 {
		t.Errorf("stats %+v", s)
	}
	mustPut(t, d, testKey(0), []byte("again"))
	mustGet(t, d, testKey(0), []byte("again"))
}

func TestOpenDiskErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDisk(file, DiskOptions{}); err == nil {
		t.Error("a file was opened as a directory")
	}
}

func TestDiskClearContext(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	mustPut(t, d, testKey(0), nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Clear(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustGet(t, d, testKey(0), nil)
}

// A reader that finds damage must not remove the entry that another process has
// put in its place.
func TestDiskDropSparesAReplacement(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	mustPut(t, d, testKey(0), []byte("old"))
	f, err := os.Open(d.path(testKey(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mustPut(t, d, testKey(0), []byte("new"))
	if err := d.drop(f); err != nil {
		t.Fatal(err)
	}
	mustGet(t, d, testKey(0), []byte("new"))
	if err := d.Remove(testKey(0)); err != nil {
		t.Fatal(err)
	}
	if err := d.drop(f); err != nil {
		t.Errorf("already removed: %v", err)
	}
}

func TestDiskConcurrentUse(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 2000})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { exercise(t, d, g, 50) })
	}
	wg.Wait()
	if s := mustStat(t, d); s.Bytes > s.MaxBytes || s.Damaged != 0 || s.Temps != 0 {
		t.Errorf("stats %+v", s)
	}
}

// exercise puts and gets entries whose payloads follow from their keys.
func exercise(t *testing.T, d *Disk, seed, rounds int) {
	payload := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100+10*i) }
	for n := range rounds {
		i := (n*7 + seed*3) % 20
		got, ok, err := d.Get(testKey(i))
		if err != nil {
			t.Error(err)
		}
		if ok && !bytes.Equal(got, payload(i)) {
			t.Errorf("entry %d has %d wrong bytes", i, len(got))
		}
		if !ok {
			if err := d.Put(testKey(i), payload(i)); err != nil {
				t.Error(err)
			}
		}
	}
}
