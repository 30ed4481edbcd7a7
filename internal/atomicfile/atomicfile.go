// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Write makes a file at path of what write writes, in the place of the one that
// may be there. The file is written under another name in the same directory,
// synced to disk and renamed, so that no reader, nor a machine that stops
// meanwhile, sees a part of it; after an error the old file is as it was and
// nothing is left behind. Its mode is that of a file made by os.Create.
//
// Errors are write's own and those of the file system, as they are.
func Write(path string, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	temp := filepath.Join(dir, "."+filepath.Base(path)+"."+rand.Text()[:12]+".tmp")
	// Not os.CreateTemp, whose files are their owner's alone.
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = write(f)
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
