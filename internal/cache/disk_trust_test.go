//go:build unix

package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stranger is a user who is neither root nor the one that runs the tests.
const stranger = 4711

// strangers says that the named files belong to the stranger, and all others to whom
// they belong.
func strangers(names ...string) func(fs.FileInfo) (int, bool) {
	return func(info fs.FileInfo) (int, bool) {
		for _, n := range names {
			if info.Name() == n {
				return stranger, true
			}
		}
		return ownerOf(info)
	}
}

// Machine code in the directory will run: only those may have made it who may do
// anything anyway.
func TestDiskTrustsDirectories(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   func(t *testing.T, top string) string // returns the directory of the cache
		others []string
		refuse string // the name in the error; empty if it opens
	}{
		{"own", func(t *testing.T, top string) string { return filepath.Join(top, "a", "b") }, nil, ""},
		{"another user's", func(t *testing.T, top string) string { return mkdir(t, 0o755, top, "alien") }, []string{"alien"}, "alien"},
		{"below another user's", func(t *testing.T, top string) string { return mkdir(t, 0o755, top, "alien", "b", "c") }, []string{"alien"}, "alien"},
		{"everybody writes", func(t *testing.T, top string) string { return mkdir(t, 0o777, top, "open") }, nil, "open"},
		{"a group writes", func(t *testing.T, top string) string { return mkdir(t, 0o770, top, "open") }, nil, "open"},
		{"everybody writes, sticky", func(t *testing.T, top string) string { return mkdir(t, 0o777|fs.ModeSticky, top, "open") }, nil, "open"},
		{"below where everybody writes", func(t *testing.T, top string) string {
			mkdir(t, 0o777, top, "open")
			return filepath.Join(top, "open", "b")
		}, nil, "open"},
		{"below where everybody adds", func(t *testing.T, top string) string {
			mkdir(t, 0o777|fs.ModeSticky, top, "sticky")
			return filepath.Join(top, "sticky", "b")
		}, nil, ""},
		{"a link of another user", func(t *testing.T, top string) string {
			mkdir(t, 0o700, top, "real", "b")
			return filepath.Join(symlink(t, "real", filepath.Join(top, "alien")), "b")
		}, []string{"alien"}, "alien"},
		{"a link to another user's", func(t *testing.T, top string) string {
			mkdir(t, 0o700, top, "alien", "b")
			return symlink(t, filepath.Join(top, "alien", "b"), filepath.Join(top, "link"))
		}, []string{"alien"}, "alien"},
		{"an own link", func(t *testing.T, top string) string {
			mkdir(t, 0o700, top, "real", "b")
			return symlink(t, "x/../real/./b", filepath.Join(top, mkdirBase(t, top, "x"), "..", "link"))
		}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.make(t, t.TempDir())
			d, err := openDisk(dir, DiskOptions{}, strangers(tt.others...))
			switch {
			case tt.refuse == "" && err != nil:
				t.Error(err)
			case tt.refuse == "":
				mustPut(t, d, testKey(0), []byte("x"))
				mustGet(t, d, testKey(0), []byte("x"))
			case !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/"+tt.refuse+": "):
				t.Errorf("opened: %v", err)
			}
		})
	}
}

func mkdir(t *testing.T, mode fs.FileMode, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return dir
}

func mkdirBase(t *testing.T, top, name string) string {
	t.Helper()
	return filepath.Base(mkdir(t, 0o700, top, name))
}

func symlink(t *testing.T, to, name string) string {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// A chain of links that does not end is an error.
func TestDiskLinkLoop(t *testing.T) {
	top := t.TempDir()
	symlink(t, "b", filepath.Join(top, "a"))
	symlink(t, "a", filepath.Join(top, "b"))
	if _, err := OpenDisk(filepath.Join(top, "a"), DiskOptions{}); err == nil {
		t.Error("opened")
	}
}

// An entry that others wrote or may write, a link and a FIFO are not read, at once, and
// a new one takes their place.
func TestDiskTrustsEntries(t *testing.T) {
	key := testKey(1)
	for _, tt := range []struct {
		name  string
		place func(t *testing.T, d *Disk, path string)
	}{
		{"another user's", func(t *testing.T, d *Disk, path string) { d.ownerOf = strangers(key.fileName()) }},
		{"others may write", func(t *testing.T, d *Disk, path string) {
			if err := os.Chmod(path, 0o622); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link", func(t *testing.T, d *Disk, path string) {
			other := filepath.Join(t.TempDir(), "entry")
			if err := os.Rename(path, other); err != nil {
				t.Fatal(err)
			}
			symlink(t, other, path)
		}},
		{"a FIFO", func(t *testing.T, d *Disk, path string) {
			if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openTestDisk(t, t.TempDir(), DiskOptions{})
			mustPut(t, d, key, []byte("payload"))
			tt.place(t, d, d.path(key))
			done := make(chan error, 1)
			go func() {
				_, ok, err := d.Get(key)
				if ok {
					err = nil
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), key.String()) {
					t.Errorf("read: %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
			if report, err := d.Verify(t.Context()); tt.name != "a link" && tt.name != "a FIFO" && (err == nil || report.Checked != 1) {
				t.Errorf("verified: %+v, %v", report, err)
			}
			d.ownerOf = ownerOf
			mustPut(t, d, key, []byte("new"))
			mustGet(t, d, key, []byte("new"))
		})
	}
}
