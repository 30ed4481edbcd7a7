//go:build unix

package atomicfile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is no regular file is written to, and stays what it is.
func TestWriteThrough(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, filepath.Join(t.TempDir(), "link")} {
		if path != fifo {
			if err := os.Symlink(fifo, path); err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan string, 1)
		go func() {
			f, err := os.Open(fifo)
			if err != nil {
				t.Error(err)
			}
			b, err := io.ReadAll(f)
			if err != nil {
				t.Error(err)
			}
			f.Close()
			got <- string(b)
		}()
		if err := Write(path, text("through", nil)); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != "through" {
			t.Errorf("%s: %q was read", path, s)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
	}
	before, err := os.Lstat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(os.DevNull, text("x", nil)); err != nil {
		t.Error(err)
	}
	if after, err := os.Lstat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Errorf("%s was %v and is %v, %v", os.DevNull, before.Mode(), after.Mode(), err)
	}
}

// A link stays, and the file that it leads to is replaced whole, beside itself.
func TestLinksAreFollowed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		links [][2]string // to, name
		file  string      // that has the text then
	}{
		{"to a file", [][2]string{{"real/file", "link"}}, "real/file"},
		{"to nothing yet", [][2]string{{"real/new", "link"}}, "real/new"},
		{"along links", [][2]string{{"real/file", "a"}, {"a", "b"}, {"b", "link"}}, "real/file"},
		{"through a linked folder", [][2]string{{"real/inner", "in"}, {"in/../file", "link"}}, "real/file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			if err := os.MkdirAll(filepath.Join(top, "real", "inner"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(top, "real", "file"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, l := range tt.links {
				if err := os.Symlink(l[0], filepath.Join(top, l[1])); err != nil {
					t.Fatal(err)
				}
			}
			link := filepath.Join(top, "link")
			if err := Write(link, text("new", nil)); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("the link is %v, %v", info.Mode(), err)
			}
			if b, err := os.ReadFile(filepath.Join(top, tt.file)); err != nil || string(b) != "new" {
				t.Errorf("%s has %q, %v", tt.file, b, err)
			}
		})
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := Write(loop, text("x", nil)); err == nil {
		t.Error("a link to itself was written to")
	}
}
