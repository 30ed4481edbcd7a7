package aoti

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/internal/pt2"
)

// mapSection maps a section of a file. Maps begin at whole pages, so this one may
// begin before the section.
func mapSection(s *pt2.Section) (*mapping, error) {
	if s.File == nil || s.Size == 0 {
		return nil, errors.ErrUnsupported
	}
	page := int64(os.Getpagesize())
	before := s.Offset % page
	data, err := unix.Mmap(int(s.File.Fd()), s.Offset-before, int(s.Size+before), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return newMapping(data[before:], func() error { return unix.Munmap(data) }), nil
}

// newMemory returns memory of this process outside the Go heap: a size that the system
// does not have is an error, where the heap would end the process. It begins at a page,
// so that what is aligned in a file is in memory.
func newMemory(size int64) (*mapping, error) {
	if size == 0 {
		return newMapping(nil, func() error { return nil }), nil
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // a kernel without them refuses
	return newMapping(data, func() error { return unix.Munmap(data) }), nil
}
