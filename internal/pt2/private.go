package pt2

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// Private is a copy of a library that only this process sees: a file in memory
// or one that is already removed, so nothing is left behind however the process
// ends.
type Private struct {
	// Library describes the file that was copied, before it was changed.
	Library *Library

	file *os.File
	path string
}

// Path returns a path by which the copy can be opened while it is not closed. No
// two copies of the process ever have the same, because dlopen takes a path that
// it has seen for the library that it has loaded.
func (p *Private) Path() string { return p.path }

// File returns the descriptor that keeps the copy.
func (p *Private) File() *os.File { return p.file }

// Close gives the copy up. A library loaded from it stays loaded, but can't open
// its own file any more, as those do that load appended weights.
func (p *Private) Close() error { return p.file.Close() }

// Source is the bytes of a library.
type Source struct {
	// R gives the bytes in order and Size says how many there are.
	R    io.Reader
	Size int64
	// CRC is the IEEE CRC-32 that the bytes must have if Checked is set.
	CRC     uint32
	Checked bool
	// Name appears in the name of the copy.
	Name string
	// Unchanged makes the copy without the host's edits, for a process that holds
	// a real libtorch.
	Unchanged bool
	// Renames come before the host's own; see [Library.HostEdits].
	Renames []Rename
}

// copyBytes is what goes through the buffer at a time; it stays in the cache.
const copyBytes = 256 << 10

// fill copies a source into an empty file, checks it, and patches it there: what
// is checked is what is loaded, whatever happens to the source meanwhile.
func fill(ctx context.Context, f *os.File, src Source) (*Library, error) {
	if src.Size < 0 {
		return nil, problem("the library has a negative size")
	}
	buf := make([]byte, min(copyBytes, src.Size+1))
	var crc uint32
	var done int64
	for done < src.Size {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		b := buf[:min(int64(len(buf)), src.Size-done)]
		if _, err := io.ReadFull(src.R, b); err != nil {
			return nil, &FormatError{Problem: fmt.Sprintf("the library ends after fewer than its %d bytes", src.Size), Err: err}
		}
		if src.Checked {
			crc = crc32.Update(crc, crc32.IEEETable, b)
		}
		if _, err := f.Write(b); err != nil {
			return nil, fmt.Errorf("pt2: copy the library: %w", err)
		}
		done += int64(len(b))
	}
	if src.Checked && crc != src.CRC {
		return nil, problem("the library's checksum is %08x, not %08x", crc, src.CRC)
	}
	lib, err := ReadLibrary(f, src.Size)
	if err != nil || src.Unchanged {
		return lib, err
	}
	edits, err := lib.HostEdits(src.Renames...)
	if err != nil {
		return nil, err
	}
	if err := Apply(f, edits); err != nil {
		return nil, fmt.Errorf("pt2: patch the library: %w", err)
	}
	return lib, nil
}

// copies counts the private copies of the process.
var copies atomic.Uint64

// uniquePath spells the path of a descriptor in a way that no other number does:
// each bit of n is a "/." or a second slash, which file systems ignore and the
// linker's comparison of names doesn't.
func uniquePath(fd uintptr, n uint64) string {
	var b strings.Builder
	b.WriteString("/proc/self")
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			b.WriteString("/.")
		} else {
			b.WriteString("/")
		}
	}
	fmt.Fprintf(&b, "/fd/%d", fd)
	return b.String()
}

// safeName keeps what a name of a memory file may hold.
func safeName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 100)]
}
