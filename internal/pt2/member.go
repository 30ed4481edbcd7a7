package pt2

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
)

// member is a file of a package.
type member struct {
	name string // relative to the package's root, with slashes
	size int64
	// open reads it from its beginning; the reader of an archive fails at the end
	// if size or checksum are wrong.
	open func() (io.ReadCloser, error)
	// place gives the bytes where they lie; nil for compressed members.
	place func() (*Section, error)
	// crc is the checksum that reading in place must verify, if checked
	// ([Section.Contents]).
	crc     uint32
	checked bool

	// kept holds a small compressed member that was read already: loading reads a
	// library twice, for its tables and for its copy. Nil for other members.
	kept *kept
}

type kept struct {
	mu   sync.Mutex
	data []byte
}

// keepInflated is the size up to which a compressed member is kept once read.
const keepInflated = 4 << 20

// Section is a file of a package that can be read at any place.
type Section struct {
	io.ReaderAt
	// Size is the number of bytes.
	Size int64
	// File is the file that holds the bytes from Offset on, so that they can be
	// mapped; nil where they are in memory.
	File   *os.File
	Offset int64

	path, member string // for errors
	crc          uint32 // of all bytes, if checked
	checked      bool
	inflated     []byte // of a compressed member: all bytes, verified
	close        func() error
}

// Close gives the section up. The file that holds it may be the package's own,
// so it must not be closed in another way.
func (s *Section) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// section returns a member's bytes for reading at any place; compressed ones are
// inflated into memory, up to limit bytes.
func (m *member) section(limit int64) (*Section, error) {
	if m.place == nil {
		data, err := m.inflate(limit)
		if err != nil {
			return nil, err
		}
		return &Section{ReaderAt: bytes.NewReader(data), Size: int64(len(data)), member: m.name, inflated: data}, nil
	}
	s, err := m.place()
	if err == nil {
		s.member, s.crc, s.checked = m.name, m.crc, m.checked
	}
	return s, err
}

// inflate reads a compressed member, unless it is kept.
func (m *member) inflate(limit int64) ([]byte, error) {
	if m.kept == nil {
		return m.read(limit)
	}
	m.kept.mu.Lock()
	defer m.kept.mu.Unlock()
	if m.kept.data != nil {
		return m.kept.data, nil
	}
	data, err := m.read(limit)
	m.kept.data = data
	return data, err
}

// read returns a member whole, if it has at most limit bytes.
func (m *member) read(limit int64) ([]byte, error) {
	if m.size > limit {
		return nil, &FormatError{Member: m.name, Problem: fmt.Sprintf("%d bytes, more than the %d allowed", m.size, limit)}
	}
	r, err := m.open()
	if err != nil {
		return nil, &FormatError{Member: m.name, Problem: "cannot be opened", Err: err}
	}
	defer r.Close()
	// One byte more than announced tells a member that is longer.
	data, err := io.ReadAll(io.LimitReader(r, m.size+1))
	if err == nil && int64(len(data)) != m.size {
		err = fmt.Errorf("%d bytes where %d were announced", len(data), m.size)
	}
	if err != nil {
		return nil, &FormatError{Member: m.name, Problem: "cannot be read", Err: err}
	}
	return data, nil
}

// verify reads a member whole and checks what its archive says of it.
func (m *member) verify() error {
	r, err := m.open()
	var n int64
	if err == nil {
		n, err = io.Copy(io.Discard, r)
		r.Close()
	}
	if err == nil && n != m.size {
		err = fmt.Errorf("%d bytes where %d were announced", n, m.size)
	}
	if err != nil {
		return &FormatError{Member: m.name, Problem: "damaged", Err: err}
	}
	return nil
}

// maxDepth is how many folders a member may lie in; real ones lie in four.
const maxDepth = 64

// cleanName checks the name of a member and returns it with slashes. Nothing is
// ever written under such a name; those that would lead out of a folder show
// that the archive is made to mislead.
func cleanName(name string) (string, error) {
	clean := strings.ReplaceAll(name, `\`, "/")
	bad := ""
	switch {
	case clean == "":
		bad = "an empty name"
	case len(clean) > 4096:
		bad = "a name of more than 4096 bytes"
	case strings.ContainsRune(clean, 0):
		bad = "a name with a zero byte"
	case path.IsAbs(clean), len(clean) > 1 && clean[1] == ':':
		bad = "an absolute path"
	case strings.Count(clean, "/") > maxDepth:
		bad = fmt.Sprintf("a path of more than %d folders", maxDepth)
	}
	for part := range strings.SplitSeq(clean, "/") {
		if part == ".." {
			bad = `a path with ".."`
		}
	}
	if bad != "" {
		return "", &FormatError{Member: printable(name), Problem: bad + " is not allowed"}
	}
	return path.Clean(clean), nil
}

// printable shortens and quotes what would spoil a message.
func printable(name string) string {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	quoted := fmt.Sprintf("%q", name)
	return quoted[1 : len(quoted)-1]
}
