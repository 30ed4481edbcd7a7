package ir

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Hash is a 128-bit hash: two xxHash64 sums with different seeds.
type Hash struct{ Lo, Hi uint64 }

const (
	seedLo = 0x6c6f7269732d6c6f // "loris-lo"
	seedHi = 0x6c6f7269732d6869 // "loris-hi"
)

// HashBytes returns the hash of b.
func HashBytes(b []byte) Hash {
	var lo, hi xxhash.Digest
	if len(b) <= 1024 {
		return Hash{sumSeed(b, seedLo), sumSeed(b, seedHi)}
	}
	lo.ResetWithSeed(seedLo)
	hi.ResetWithSeed(seedHi)
	lo.Write(b)
	hi.Write(b)
	return Hash{lo.Sum64(), hi.Sum64()}
}

// sumSeed is one seeded pass; the digest stays on the stack.
func sumSeed(b []byte, seed uint64) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(b)
	return d.Sum64()
}

// Append appends the 16 bytes of h, low half first, little endian.
func (h Hash) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, h.Lo)
	return binary.LittleEndian.AppendUint64(b, h.Hi)
}

// String returns 32 hexadecimal digits.
func (h Hash) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h.Hi)
	binary.BigEndian.PutUint64(b[8:], h.Lo)
	return hex.EncodeToString(b[:])
}

// MarshalText returns what String does, for JSON and logs.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ParseHash reads what String wrote.
func ParseHash(s string) (Hash, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return Hash{}, fmt.Errorf("ir: %q is not a 128-bit hash in hexadecimal", s)
	}
	return Hash{Hi: binary.BigEndian.Uint64(b[:8]), Lo: binary.BigEndian.Uint64(b[8:])}, nil
}
