package pt2

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// archiveMembers lists the members of a zip archive. Everything that its
// directory says is checked here: names, duplicates, sizes, and that no two
// members share bytes. f is the file behind r, if there is one.
func archiveMembers(r io.ReaderAt, size int64, f *os.File, lim Limits) ([]member, error) {
	noting := &notingReader{ReaderAt: r}
	z, err := zip.NewReader(noting, size)
	if err != nil && err != zip.ErrInsecurePath { // names are checked below, each with its own message
		if failed := noting.first.Load(); failed != nil {
			return nil, fmt.Errorf("pt2: read the archive: %w", *failed)
		}
		return nil, &FormatError{Problem: "the archive is damaged or cut short", Err: err}
	}
	if len(z.File) > lim.Members {
		return nil, problem("the archive has %d members, more than the %d allowed", len(z.File), lim.Members)
	}
	lim.Inflated = lim.inflated(size)
	a := &archive{r: r, size: size, file: f, lim: lim, seen: map[string]bool{}}
	for _, zf := range z.File {
		if err := a.add(zf); err != nil {
			return nil, err
		}
	}
	if err := a.checkTree(); err != nil {
		return nil, err
	}
	return a.members, a.checkOverlap()
}

// notingReader notes the first error of reading: archive/zip says of some that the format is wrong.
type notingReader struct {
	io.ReaderAt
	first atomic.Pointer[error]
}

func (r *notingReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		r.first.CompareAndSwap(nil, &err)
	}
	return n, err
}

// archive collects the members while they are checked.
type archive struct {
	r        io.ReaderAt
	size     int64
	file     *os.File
	lim      Limits
	members  []member
	seen     map[string]bool
	spans    []span
	inflated int64
}

// span is the bytes of a member inside the archive, its header included.
type span struct {
	name       string
	start, end int64
}

func (a *archive) add(f *zip.File) error {
	name, err := cleanName(f.Name)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &FormatError{Member: name, Problem: fmt.Sprintf(format, args...)}
	}
	if strings.HasSuffix(f.Name, "/") {
		if f.UncompressedSize64 != 0 {
			return refuse("a folder with contents")
		}
		return nil
	}
	if a.seen[name] {
		return refuse("the archive has it twice")
	}
	a.seen[name] = true
	switch {
	case f.Flags&1 != 0:
		return refuse("encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return refuse("compressed by method %d, which is not supported", f.Method)
	case f.Mode()&os.ModeType != 0:
		return refuse("not a plain file")
	case f.CompressedSize64 > uint64(a.size):
		return refuse("%d bytes in an archive of %d", f.CompressedSize64, a.size)
	case f.UncompressedSize64 > 1<<62:
		return refuse("a size of %d bytes", f.UncompressedSize64)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64:
		return refuse("two different sizes, %d and %d bytes", f.CompressedSize64, f.UncompressedSize64)
	}
	m := member{name: name, size: int64(f.UncompressedSize64), open: f.Open, crc: f.CRC32, checked: true}
	if f.Method == zip.Deflate {
		if err := a.checkInflation(&m, int64(f.CompressedSize64)); err != nil {
			return err
		}
		if m.size <= keepInflated {
			m.kept = &kept{}
		}
	}
	start, err := f.DataOffset()
	if err != nil {
		return &FormatError{Member: name, Problem: "the archive's directory points at something else", Err: err}
	}
	end := start + int64(f.CompressedSize64)
	if start < localHeader || end > a.size {
		return refuse("it lies outside the archive; it is perhaps cut short")
	}
	a.spans = append(a.spans, span{name, start - localHeader - int64(len(f.Name)), end})
	if f.Method == zip.Store {
		m.place = func() (*Section, error) {
			return &Section{ReaderAt: io.NewSectionReader(a.r, start, m.size), Size: m.size, File: a.file, Offset: start}, nil
		}
	}
	a.members = append(a.members, m)
	return nil
}

// localHeader is the least that precedes the bytes of a member, besides its name.
const localHeader = 30

func (a *archive) checkInflation(m *member, packed int64) error {
	if m.size > ratioExempt && m.size/max(packed, 1) > a.lim.Ratio {
		return &FormatError{
			Member:  m.name,
			Problem: fmt.Sprintf("%d bytes inflate to %d, more than %d times as much", packed, m.size, a.lim.Ratio),
		}
	}
	if m.size > a.lim.Inflated-a.inflated {
		return &FormatError{
			Member:  m.name,
			Problem: fmt.Sprintf("with it the archive inflates to more than the %d bytes allowed", a.lim.Inflated),
		}
	}
	a.inflated += m.size
	return nil
}

// checkTree refuses a member that another takes for a folder.
func (a *archive) checkTree() error {
	for _, m := range a.members {
		for i, c := range m.name {
			if c == '/' && a.seen[m.name[:i]] {
				return &FormatError{Member: m.name, Problem: fmt.Sprintf("it lies inside %s, which is a file", m.name[:i])}
			}
		}
	}
	return nil
}

// checkOverlap refuses members that share bytes: such archives are small and
// inflate without end.
func (a *archive) checkOverlap() error {
	slices.SortFunc(a.spans, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	for i := 1; i < len(a.spans); i++ {
		if a.spans[i].start < a.spans[i-1].end {
			return &FormatError{
				Member:  a.spans[i].name,
				Problem: fmt.Sprintf("it shares bytes of the archive with %s", a.spans[i-1].name),
			}
		}
	}
	return nil
}
