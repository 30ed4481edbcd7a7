//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ownerOf returns the user that owns a file.
func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// openFlags open an entry: a link is an error, and a FIFO does not wait for its writer.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// maxLinks bounds the symbolic links of one path, as systems do.
const maxLinks = 40

// trustDir checks that nobody but this user and root decides what the directory dir
// contains: they own it and every directory above it, also along symbolic links, nobody
// else may write to it, and where others may write above it they may not replace what is
// there (the sticky bit, as /tmp has). The error wraps fs.ErrPermission.
func (d *Disk) trustDir() error {
	abs, err := filepath.Abs(d.dir)
	if err != nil {
		return err
	}
	at, rest := "/", strings.Split(abs, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return err
		}
		if err := d.trustOwner(next, info); err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(next)
			if err != nil {
				return err
			}
			if links++; links > maxLinks {
				return &fs.PathError{Op: "open", Path: d.dir, Err: syscall.ELOOP}
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
			continue
		case info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
			return untrusted(next, "everybody may write to it (mode %v)", info.Mode())
		}
		at = next
	}
	info, err := os.Stat(at)
	if err == nil && info.Mode()&0o022 != 0 {
		return untrusted(at, "others may write to it (mode %v)", info.Mode().Perm())
	}
	return err
}

// trustOwner checks that a file belongs to this user or root.
func (d *Disk) trustOwner(name string, info fs.FileInfo) error {
	uid, ok := d.ownerOf(info)
	if ok && uid != 0 && uid != os.Geteuid() {
		return untrusted(name, "it belongs to user %d, and this process runs as %d", uid, os.Geteuid())
	}
	return nil
}

// trustEntry checks that an opened entry is a plain file that only this user and root
// could write.
func (d *Disk) trustEntry(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (mode %v)", f.Name(), info.Mode())
	}
	if err := d.trustOwner(f.Name(), info); err != nil {
		return err
	}
	if info.Mode()&0o022 != 0 {
		return untrusted(f.Name(), "others may write to it (mode %v)", info.Mode().Perm())
	}
	return nil
}

func untrusted(name, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s; it holds machine code", name, fs.ErrPermission, fmt.Sprintf(format, args...))
}
