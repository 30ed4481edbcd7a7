package pt2

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// failingReader fails in the n-th read.
type failingReader struct {
	io.ReaderAt
	left int
}

var errRead = errors.New("the disk does not read")

func (r *failingReader) ReadAt(b []byte, off int64) (int, error) {
	if r.left--; r.left == -1 {
		return 0, errRead
	}
	return r.ReaderAt.ReadAt(b, off)
}

// An error of reading is that, and not said to be one of the archive.
func TestReadErrorsAreTold(t *testing.T) {
	b, err := os.ReadFile("../../aoti/testdata/bounds.pt2")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		r := &failingReader{bytes.NewReader(b), n}
		p, err := OpenReader(r, int64(len(b)), "package")
		if err == nil {
			if err := p.Close(); err != nil || n < 4 {
				t.Errorf("%d reads, %v", n, err)
			}
			return
		}
		if !errors.Is(err, errRead) {
			t.Errorf("read %d: %v", n, err)
		}
	}
}
