//go:build !unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
)

// ownerOf knows no owners.
func ownerOf(fs.FileInfo) (uid int, ok bool) { return 0, false }

const openFlags = os.O_RDONLY

// trustDir checks nothing: modes and owners are those of Unix. Who may write to the
// directory is for its user to say.
func (d *Disk) trustDir() error { return nil }

// trustEntry checks that an opened entry is a plain file.
func (d *Disk) trustEntry(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file (mode %v)", f.Name(), info.Mode())
	}
	return err
}
