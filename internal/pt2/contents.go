package pt2

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Contents returns the bytes of a section, verified, in memory that no other process
// can change. Bytes that are in the file as they are get copied to the memory that
// alloc returns, on all processors; compressed ones are in memory already. What is
// verified is the copy, so a file that changes meanwhile is either refused or was
// read before. Damage is a *FormatError.
func (s *Section) Contents(ctx context.Context, alloc func(size int64) ([]byte, error)) ([]byte, error) {
	if s.inflated != nil {
		return s.inflated, nil
	}
	data, err := alloc(s.Size)
	if err != nil {
		return nil, fmt.Errorf("pt2: memory for the %d bytes of %s: %w", s.Size, s.member, err)
	}
	sum, err := checksum(ctx, data[:s.Size], s)
	switch {
	case err == nil && s.checked && sum != s.crc:
		return nil, s.damaged(sum)
	case err != nil && ctx.Err() == nil:
		return nil, &FormatError{Path: s.path, Member: s.member, Problem: "cannot be read", Err: err}
	}
	return data[:s.Size], err
}

// damaged returns the error of a section whose bytes have the checksum sum.
func (s *Section) damaged(sum uint32) error {
	return &FormatError{Path: s.path, Member: s.member, Problem: fmt.Sprintf("damaged: its checksum is %08x, not %08x", sum, s.crc)}
}

const (
	// sumChunk is what one processor takes at a time of a long checksum.
	sumChunk = 4 << 20
	// sumPiece is what is read before it is summed: it stays in the cache.
	sumPiece = 256 << 10
)

// checksum returns the IEEE CRC-32 of data, on all processors. A from that is not
// nil fills data first; its error is returned.
func checksum(ctx context.Context, data []byte, from io.ReaderAt) (uint32, error) {
	chunks := (len(data) + sumChunk - 1) / sumChunk
	sums := make([]uint32, chunks)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(chunks, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= chunks {
					return nil
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				begin := i * sumChunk
				sum, err := checksumChunk(data[begin:min(begin+sumChunk, len(data))], int64(begin), from)
				if err != nil {
					return err
				}
				sums[i] = sum
			}
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	var sum uint32
	for i, s := range sums {
		sum = joinChecksums(sum, s, min(sumChunk, len(data)-i*sumChunk))
	}
	return sum, nil
}

// checksumChunk is checksum of the bytes that begin at off, on this processor.
func checksumChunk(data []byte, off int64, from io.ReaderAt) (uint32, error) {
	var sum uint32
	for len(data) > 0 {
		piece := data[:min(sumPiece, len(data))]
		if from != nil {
			if n, err := from.ReadAt(piece, off); n < len(piece) {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return 0, fmt.Errorf("at %d: %w", off+int64(n), err)
			}
		}
		sum = crc32.Update(sum, crc32.IEEETable, piece)
		data, off = data[len(piece):], off+int64(len(piece))
	}
	return sum, nil
}

// joinChecksums returns the checksum of two stretches, the second of n bytes, from
// theirs. A checksum is the remainder of a polynomial over bits, whose highest power
// is the lowest bit; the first stretch counts times x to the 8n.
func joinChecksums(first, second uint32, n int) uint32 {
	const one, xTo8 = 1 << 31, 1 << 23
	power, base := uint32(one), uint32(xTo8)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			power = mulMod(power, base)
		}
		base = mulMod(base, base)
	}
	return mulMod(first, power) ^ second
}

// mulMod multiplies two polynomials modulo that of the checksum.
func mulMod(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}
