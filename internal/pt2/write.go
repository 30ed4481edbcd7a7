package pt2

import (
	"archive/zip"
	"fmt"
	"hash/crc32"
	"io"
)

// NewMember is a member of an archive that is written. Write is called twice and writes the same
// Size bytes each time: once for the checksum, which precedes them in the archive.
type NewMember struct {
	Name  string
	Size  int64
	Write func(w io.Writer) error
}

// MemberOf returns a member with the given contents.
func MemberOf(name string, data []byte) NewMember {
	return NewMember{name, int64(len(data)), func(w io.Writer) error { _, err := w.Write(data); return err }}
}

// WriteArchive writes an archive as PyTorch does: members are stored, their bytes aligned, their names
// below the root folder; an empty root, as PyTorch 2.6 has it, puts them on top.
func WriteArchive(w io.Writer, root string, members []NewMember) error {
	reserve(w, members)
	count := &counter{w: w}
	out := zip.NewWriter(count)
	for i := range members {
		m := members[i]
		if root != "" {
			m.Name = root + "/" + m.Name
		}
		if err := m.write(out, count); err != nil {
			return fmt.Errorf("pt2: write %s: %w", m.Name, err)
		}
	}
	return out.Close()
}

// reserve makes room for all members where that is memory which grows, such as a bytes.Buffer: doubled
// again and again it would be copied each time.
func reserve(w io.Writer, members []NewMember) {
	memory, ok := w.(interface{ Grow(n int) })
	if !ok {
		return
	}
	const around = 1 << 9 // headers, names and padding of a member, about
	size := int64(around)
	for i := range members {
		size += members[i].Size + around
	}
	memory.Grow(int(size))
}

func (m *NewMember) write(out *zip.Writer, count *counter) error {
	sum := crc32.NewIEEE()
	sized := &counter{w: sum}
	if err := m.Write(sized); err != nil {
		return err
	}
	if sized.n != m.Size {
		return fmt.Errorf("%d bytes, want %d", sized.n, m.Size)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	dst, err := out.CreateRaw(alignedHeader(m.Name, count.n, m.Size, sum.Sum32()))
	if err != nil {
		return err
	}
	return m.Write(dst)
}

// alignedHeader returns the header of a stored member whose local header begins at an offset. A field
// of padding, of which 4 bytes are its own header ("FB", as PyTorch calls it), brings the bytes to
// where they can be mapped.
func alignedHeader(name string, at, size int64, sum uint32) *zip.FileHeader {
	h := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: sum}
	h.CompressedSize64, h.UncompressedSize64 = uint64(size), uint64(size)
	pad := -(at + localHeader + int64(len(name)) + 4) & (memberAlign - 1)
	h.Extra = append([]byte{'F', 'B', byte(pad), 0}, make([]byte, pad)...)
	return h
}
