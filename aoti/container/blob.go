package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// BlobAlign is the alignment of the constants in a blob, in bytes.
const BlobAlign = 64

// BlobSize returns the size of a blob of the constants: those that folding does
// not compute, in order, each at the next multiple of BlobAlign.
func (c *Container) BlobSize() int64 {
	var n int64
	for _, k := range c.info {
		if !k.FromFolded {
			n += padded(k.Bytes)
		}
	}
	return n
}

func padded(n int64) int64 { return (n + BlobAlign - 1) &^ (BlobAlign - 1) }

// UpdateFromBlob is a full Update from the bytes of all constants in
// AOTInductor's layout (BlobSize). The padding of the last may be missing; any
// other size is an error wrapping ErrBlob, and nothing has changed.
func (c *Container) UpdateFromBlob(ctx context.Context, r io.ReaderAt, size int64, which Which, opts ...UpdateOption) error {
	if err := ir.CheckContext("container.UpdateFromBlob", ctx); err != nil {
		return err
	}
	o := options(opts)
	o.shared = false
	return c.updateBlob(ctx, size, which, o, func(off, n int64) ([]byte, error) {
		b := make([]byte, n)
		if k, err := r.ReadAt(b, off); int64(k) < n {
			return nil, fmt.Errorf("read the blob at %d: %w", off, noEOF(err))
		}
		return b, nil
	})
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// UpdateFromBytes is UpdateFromBlob from memory. With UserManaged the set uses
// that memory where the model can, without a copy.
func (c *Container) UpdateFromBytes(ctx context.Context, blob []byte, which Which, opts ...UpdateOption) error {
	if err := ir.CheckContext("container.UpdateFromBytes", ctx); err != nil {
		return err
	}
	return c.updateBlob(ctx, int64(len(blob)), which, options(opts), func(off, n int64) ([]byte, error) {
		return blob[off : off+n : off+n], nil
	})
}

// UpdateFromFile is UpdateFromBlob from a file.
func (c *Container) UpdateFromFile(ctx context.Context, path string, which Which, opts ...UpdateOption) error {
	if err := ir.CheckContext("container.UpdateFromFile", ctx); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := c.UpdateFromBlob(ctx, f, st.Size(), which, opts...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *Container) updateBlob(ctx context.Context, size int64, which Which, o updateOptions, read func(off, n int64) ([]byte, error)) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	o.partial = false
	offsets, has := make([]int64, len(c.info)), make([]bool, len(c.info))
	var end, bare int64 // with the padding of the last, and without
	for i, k := range c.info {
		if k.FromFolded {
			continue
		}
		offsets[i], has[i] = end, true
		if k.Bytes > 0 {
			bare = end + k.Bytes
			end += padded(k.Bytes)
		}
	}
	if size != end && size != bare {
		return fmt.Errorf("%w: it has %d bytes, the constants take %d", ErrBlob, size, end)
	}
	return c.replace(ctx, which, o, has, func(i int) (backend.Buffer, error) {
		raw, err := read(min(offsets[i], size), c.info[i].Bytes)
		if err != nil {
			return nil, err
		}
		return c.packRaw(ctx, i, raw, !o.shared)
	})
}

// packRaw packs a constant as it lies in a blob.
func (c *Container) packRaw(ctx context.Context, i int, raw []byte, copy bool) (backend.Buffer, error) {
	if m, ok := c.first.(backend.BlobModel); ok {
		return m.PackBlob(ctx, i, raw, copy)
	}
	s := c.info[i].Shape
	if len(raw) < s.Bytes() {
		return nil, fmt.Errorf("%w: %v has %d bytes, the model keeps %d", ir.ErrShape, s, s.Bytes(), len(raw))
	}
	value, err := hostmem.Wrap(s, ir.Device{}, raw[:s.Bytes()], func() {})
	if err != nil {
		return nil, err
	}
	defer value.Release()
	return c.first.PackConstant(ctx, i, value, copy)
}
