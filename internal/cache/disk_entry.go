package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// DiskKey names an entry of a Disk.
type DiskKey [sha256.Size]byte

// NewDiskKey returns the sha256 of the parts and their lengths, so that moving
// bytes from one part to the next gives another key. The parts should name all
// that the artefact depends on: program, versions, features of the machine.
func NewDiskKey(parts ...[]byte) DiskKey {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	return DiskKey(h.Sum(nil))
}

// String returns the key as 64 hexadecimal digits.
func (k DiskKey) String() string { return hex.EncodeToString(k[:]) }

// ParseDiskKey is the inverse of String.
func ParseDiskKey(s string) (DiskKey, error) {
	var k DiskKey
	if len(s) != 2*len(k) {
		return k, fmt.Errorf("cache: disk key %q has %d characters, want %d", s, len(s), 2*len(k))
	}
	if _, err := hex.Decode(k[:], []byte(s)); err != nil {
		return k, fmt.Errorf("cache: disk key %q: %w", s, err)
	}
	return k, nil
}

// An entry is a file named by its key. It starts with a header, all numbers
// little-endian:
//
//	 0  8  magic
//	 8  4  version of this format
//	12  4  zero
//	16  8  length of the payload, which is the rest of the file
//	24 32  key
//	56  8  xxhash64 of the 56 bytes above and the payload
const (
	diskMagic     = "LORISDSK"
	diskVersion   = 1
	diskHeaderLen = 64
	diskSumAt     = 56
	diskSuffix    = ".entry"
	diskTempStart = ".tmp-"
	diskTemps     = "tmp"
)

// DamageError says what is wrong with an entry on disk.
type DamageError struct {
	Key    DiskKey
	Reason string
}

// Error names the entry and the damage.
func (e *DamageError) Error() string {
	return fmt.Sprintf("cache: disk entry %v is damaged: %s", e.Key, e.Reason)
}

// fileName returns the name of the key's file.
func (k DiskKey) fileName() string { return k.String() + diskSuffix }

// keyOfFile returns the key whose fileName is name.
func keyOfFile(name string) (DiskKey, bool) {
	digits, ok := strings.CutSuffix(name, diskSuffix)
	if !ok {
		return DiskKey{}, false
	}
	k, err := ParseDiskKey(digits)
	return k, err == nil && k.fileName() == name // not upper-case digits
}

// diskHeader returns the header of an entry without its checksum.
func diskHeader(key DiskKey, length uint64) [diskHeaderLen]byte {
	var h [diskHeaderLen]byte
	copy(h[:], diskMagic)
	binary.LittleEndian.PutUint32(h[8:], diskVersion)
	binary.LittleEndian.PutUint64(h[16:], length)
	copy(h[24:], key[:])
	return h
}

// writeEntry writes header and payload.
func writeEntry(w io.Writer, key DiskKey, payload []byte) error {
	h := diskHeader(key, uint64(len(payload)))
	sum := xxhash.New()
	sum.Write(h[:diskSumAt])
	sum.Write(payload)
	binary.LittleEndian.PutUint64(h[diskSumAt:], sum.Sum64())
	if _, err := w.Write(h[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readEntry reads the entry in f and writes its payload to the writer that sink
// returns for its length. The error is a *DamageError unless reading or writing
// itself failed or ctx ended. What was written is good only without an error.
func readEntry(ctx context.Context, f *os.File, key DiskKey, sink func(length int64) io.Writer) error {
	damage := func(reason string) error { return &DamageError{Key: key, Reason: reason} }
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The length comes from the file, which bounds what a damaged header can
	// make us allocate.
	length := info.Size() - diskHeaderLen
	if length < 0 {
		return damage("shorter than its header")
	}
	var h [diskHeaderLen]byte
	if _, err := io.ReadFull(f, h[:]); err != nil {
		return truncated(damage, err)
	}
	want := diskHeader(key, uint64(length))
	for _, field := range []struct {
		name     string
		from, to int
	}{{"magic", 0, 8}, {"version", 8, 12}, {"reserved field", 12, 16}, {"length", 16, 24}, {"key", 24, diskSumAt}} {
		if !bytes.Equal(h[field.from:field.to], want[field.from:field.to]) {
			return damage("wrong " + field.name)
		}
	}
	sum := xxhash.New()
	sum.Write(h[:diskSumAt])
	w := io.MultiWriter(sum, sink(length))
	for left := length; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(w, f, min(left, 4<<20))
		if err != nil {
			return truncated(damage, err)
		}
		left -= n
	}
	if sum.Sum64() != binary.LittleEndian.Uint64(h[diskSumAt:]) {
		return damage("wrong checksum")
	}
	return nil
}

// truncated turns the early end of a file into damage.
func truncated(damage func(string) error, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damage("truncated")
	}
	return err
}
