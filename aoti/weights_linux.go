package aoti

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/aoti/internal/pt2"
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
	return &mapping{data: data[before:], unmap: func() error { return unix.Munmap(data) }}, nil
}
