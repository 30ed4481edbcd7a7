package pt2

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NewPrivate makes a private copy of a library, patched so that this process can
// host it (see [Library.HostEdits]). The copy lies in memory that the kernel
// seals against change (memfd_create), or where the kernel has none in a file of
// dir (empty: the system's temporary folder) that is removed at once.
func NewPrivate(ctx context.Context, src Source, dir string) (*Private, error) {
	n := copies.Add(1)
	f, sealed, err := memoryFile(fmt.Sprintf("loris-%d-%s", n, safeName(src.Name)))
	if err != nil {
		if f, err = removedFile(dir); err != nil {
			return nil, err
		}
	}
	lib, err := fill(ctx, f, src)
	if err == nil && sealed {
		err = seal(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Private{lib, f, uniquePath(f.Fd(), n)}, nil
}

// memoryFile makes a file in memory that may be executed. Kernels before 6.3
// don't know MFD_EXEC, and newer ones ask for it.
func memoryFile(name string) (*os.File, bool, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, false, fmt.Errorf("pt2: memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), true, nil
}

func removedFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "loris-*.so")
	if err != nil {
		return nil, fmt.Errorf("pt2: private copy: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("pt2: private copy: %w", err)
	}
	return f, nil
}

func seal(f *os.File) error {
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, all); err != nil {
		return fmt.Errorf("pt2: seal the private copy: %w", err)
	}
	return nil
}
