package filelock

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// RemoveStale removes a temporary file whose process died: one that nobody has locked and
// that was not written for age, which covers the moments before its writer locks it and after
// the writer closes it. A file that is gone is no error.
func RemoveStale(name string, age time.Duration) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) <= age {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return ignoreGone(err)
	}
	free, err := Try(f)
	if closeErr := f.Close(); err != nil || closeErr != nil || !free {
		return errors.Join(err, closeErr)
	}
	return ignoreGone(os.Remove(name))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
