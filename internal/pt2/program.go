package pt2

import (
	"context"
	"io"
)

// OpenArchive opens an archive, or a folder extracted from one, that need not hold compiled
// models, such as torch.export.save writes.
func (l Limits) OpenArchive(file string) (*Package, error) {
	l.programs = true
	return l.Open(file)
}

// OpenArchiveReader is OpenArchive for an archive of size bytes that is read from r, such as a
// member of another one.
func (l Limits) OpenArchiveReader(r io.ReaderAt, size int64, name string) (*Package, error) {
	l.programs = true
	return l.OpenReader(r, size, name)
}

// Has reports whether the package has a file of the name.
func (p *Package) Has(name string) bool { return p.members[name] != nil }

// File opens a file for reading at any place, by its name relative to the root. A
// compressed one is inflated into memory, within the package's limits.
func (p *Package) File(name string) (*Section, error) {
	f := p.members[name]
	if f == nil {
		return nil, &FormatError{Path: p.Path, Member: printable(name), Problem: "there is no such file"}
	}
	return p.open(f)
}

// Text reads a file whole, within the limit for texts, and checks what the archive says of it.
func (p *Package) Text(ctx context.Context, name string) ([]byte, error) {
	f := p.members[name]
	if f == nil {
		return nil, &FormatError{Path: p.Path, Member: printable(name), Problem: "there is no such file"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := f.read(p.lim.Text)
	return b, locate(err, p.Path, "")
}
