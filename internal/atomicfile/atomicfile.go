// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/filelock"
)

// Write makes a file at path of what write writes, in the place of the one that
// may be there. The file is written under another name in the same directory,
// synced to disk and renamed, so that no reader, nor a machine that stops
// meanwhile, sees a part of it; after an error the old file is as it was and
// nothing is left behind. Its mode is that of a file made by os.Create. Other
// hard links of the old file keep the old contents.
//
// A symbolic link is followed and stays: the file that it leads to is made or
// replaced. What is there and is no regular file, such as a device or a FIFO, is
// written to as it is.
//
// Files that killed processes left behind in the directory go: those with the
// names of this package that are an hour old and that nobody writes.
//
// Errors are write's own and those of the file system, as they are.
func Write(path string, write func(io.Writer) error) error {
	path, info, err := follow(path)
	if err != nil {
		return err
	}
	if info != nil && !info.Mode().IsRegular() {
		return writeThrough(path, write)
	}
	dir := filepath.Dir(path)
	// What can't be cleaned up is no reason not to write.
	_ = removeStale(dir)
	temp := filepath.Join(dir, tempName(filepath.Base(path)))
	// Not os.CreateTemp, whose files are their owner's alone.
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = filelock.Try(f)
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	return syncDir(dir)
}

// maxLinks bounds the symbolic links of one path, as systems do.
const maxLinks = 40

// follow returns where a path leads along symbolic links, and what is there; nil for
// nothing.
func follow(path string) (string, fs.FileInfo, error) {
	for at, links := path, 0; links <= maxLinks; links++ {
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return at, nil, nil
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, info, err
		}
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil, err
		}
		if !filepath.IsAbs(to) {
			// Not filepath.Join, which takes ".." away before links in front of it are followed.
			to = filepath.Dir(at) + string(filepath.Separator) + to
		}
		at = to
	}
	return path, nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("more than %d symbolic links", maxLinks)}
}

// writeThrough writes to what is there.
func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// A temporary file is named ".", the name of the file, ".", tempRandom characters of base32
// and tempEnd.
const (
	tempRandom = 12
	tempEnd    = ".tmp"
	// staleAge is the age from which a file that nobody has locked was left behind: its
	// writer locks it at once, and renames it as soon as it is closed.
	staleAge = time.Hour
)

// maxName is how long the name of a file may be on most systems.
const maxName = 255

func tempName(base string) string {
	base = base[:min(len(base), maxName-len("..")-tempRandom-len(tempEnd))]
	return "." + base + "." + rand.Text()[:tempRandom] + tempEnd
}

func isTemp(name string) bool {
	rest, ok := strings.CutSuffix(name, tempEnd)
	at := len(rest) - tempRandom
	if !ok || at < len(".x.") || rest[0] != '.' || rest[at-1] != '.' {
		return false
	}
	return strings.Trim(rest[at:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// removeStale removes files that killed processes left behind in a directory.
func removeStale(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	errs := []error{err, d.Close()}
	for _, name := range names {
		if isTemp(name) {
			errs = append(errs, filelock.RemoveStale(filepath.Join(dir, name), staleAge))
		}
	}
	return errors.Join(errs...)
}

// syncDir makes a renaming in the directory survive a crash.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // where directories can't be synced
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
