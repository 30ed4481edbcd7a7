package cache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whatever becomes of the index, entries stay, and the bound holds again after the next Put.
func TestDiskIndexDamage(t *testing.T) {
	const size = diskHeaderLen + 36
	payload := make([]byte, 36)
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
	}{
		{"removed", nil},
		{"empty", func(b []byte) []byte { return nil }},
		{"half a header", func(b []byte) []byte { return b[:30] }},
		{"another version", func(b []byte) []byte { b[8]++; return b }},
		{"a wrong header", func(b []byte) []byte { b[30]++; return b }},
		{"a wrong record", func(b []byte) []byte { b[2*recordLen+9]++; return b }},
		{"half a record", func(b []byte) []byte { return b[:len(b)-11] }},
		{"shorter", func(b []byte) []byte { return b[:2*recordLen] }},
		{"zeros behind", func(b []byte) []byte { return append(b, make([]byte, recordLen)...) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 4 * size})
			for i := range 4 {
				mustPut(t, d, testKey(i), payload)
			}
			name := filepath.Join(d.Dir(), indexName)
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if tt.change == nil {
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, tt.change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				mustGet(t, d, testKey(i), payload)
			}
			again := openTestDisk(t, d.Dir(), DiskOptions{MaxBytes: 4 * size})
			for i, d := range []*Disk{d, again} {
				mustPut(t, d, testKey(10+i), payload)
				mustGet(t, d, testKey(10+i), payload)
			}
			if tt.name == "shorter" || tt.name == "half a record" {
				return // such an index is whole, and its entries are found by the next scan
			}
			if s := mustStat(t, again); s.Bytes > s.MaxBytes {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// Entries that no index lists, of other versions or from before a crash, are found in time.
func TestDiskIndexIsMadeAnewInTime(t *testing.T) {
	const size = diskHeaderLen + 36
	d := openTestDisk(t, t.TempDir(), DiskOptions{MaxBytes: 4 * size})
	for i := range 3 {
		mustPut(t, d, testKey(i), make([]byte, 36))
		if i == 0 { // as it would be with a lost end
			if err := d.index.locked(false, func() error { d.index.drop(testKey(0)); return d.index.rewrite() }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.index.total != 2*size {
		t.Fatalf("the index has %d bytes", d.index.total)
	}
	d = openTestDisk(t, d.Dir(), DiskOptions{MaxBytes: 4 * size})
	if d.index.total != 2*size {
		t.Errorf("a young index was made anew: %d bytes", d.index.total)
	}
	for _, age := range []time.Duration{rescanAge + time.Minute, -rescanAge - time.Minute} { // or the clock jumped
		err := d.index.locked(false, func() error {
			d.index.drop(testKey(0))
			d.index.scanned = time.Now().Add(-age)
			return d.index.rewrite()
		})
		if err != nil {
			t.Fatal(err)
		}
		d = openTestDisk(t, d.Dir(), DiskOptions{MaxBytes: 4 * size})
		if d.index.total != 3*size {
			t.Errorf("the index has %d bytes", d.index.total)
		}
	}
}

// The log does not grow with the number of Puts.
func TestDiskIndexIsBounded(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	other := openTestDisk(t, d.Dir(), DiskOptions{})
	for i := range 3000 {
		e := DiskEntry{testKey(i % 5), int64(i), time.Unix(0, int64(i))}
		x := &d.index
		if i%7 == 0 {
			x = &other.index
		}
		if err := x.locked(false, func() error { x.set(e); return x.write(appendRecord(nil, recordPut, e)) }); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(d.Dir(), indexName))
	if err != nil || info.Size() > 1100*recordLen {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	for _, x := range []*index{&d.index, &other.index} {
		if err := x.locked(false, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if want := int64(2995 + 2996 + 2997 + 2998 + 2999); x.total != want || len(x.entries) != 5 || len(x.order) != 5 {
			t.Errorf("%d bytes in %d entries, want %d", x.total, len(x.entries), want)
		}
	}
}

// A process that holds the lock for long, stopped for instance, stops nobody.
func TestDiskIndexLocked(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	other := openTestDisk(t, d.Dir(), DiskOptions{})
	d.index.wait = 20 * time.Millisecond
	held, free := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- other.index.locked(false, func() error { close(held); <-free; return nil })
	}()
	<-held
	if err := d.Put(testKey(1), []byte("payload")); err == nil {
		t.Error("no word of the lock")
	}
	mustGet(t, d, testKey(1), []byte("payload"))
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
	mustPut(t, d, testKey(2), nil)
}

// A temporary file that a process still writes stays, however old it is.
func TestDiskKeepsTemporaryFilesInUse(t *testing.T) {
	d := openTestDisk(t, t.TempDir(), DiskOptions{})
	mustPut(t, d, testKey(1), nil)
	f, err := d.createTemp()
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(f.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, testKey(2), nil)
	if s := mustStat(t, d); s.Temps != 1 {
		t.Errorf("stats %+v", s)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, d, testKey(3), nil)
	if s := mustStat(t, d); s.Temps != 0 {
		t.Errorf("stats %+v", s)
	}
}

// BenchmarkDiskPut puts entries of 1 KB into directories that have others.
func BenchmarkDiskPut(b *testing.B) {
	for _, n := range []int{0, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			var entry bytes.Buffer
			for i := range n {
				key := NewDiskKey(fmt.Append(nil, i))
				entry.Reset()
				if err := errors.Join(writeEntry(&entry, key, nil), os.WriteFile(filepath.Join(dir, key.fileName()), entry.Bytes(), 0o600)); err != nil {
					b.Fatal(err)
				}
			}
			begun := time.Now()
			if _, err := OpenDisk(dir, DiskOptions{}); err != nil {
				b.Fatal(err)
			}
			first := time.Since(begun)
			begun = time.Now()
			d, err := OpenDisk(dir, DiskOptions{MaxBytes: int64(n)*diskHeaderLen + 1<<20}) // full after a thousand
			if err != nil {
				b.Fatal(err)
			}
			second := time.Since(begun)
			payload := make([]byte, 1000)
			for i := 0; b.Loop(); i++ {
				if err := d.Put(NewDiskKey([]byte("bench"), fmt.Append(nil, i)), payload); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(first.Milliseconds()), "ms-first-open")
			b.ReportMetric(float64(second.Milliseconds()), "ms-open")
		})
	}
}
