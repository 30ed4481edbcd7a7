package cache

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Key is a 128-bit hash.
type Key struct{ Lo, Hi uint64 }

// String returns the key as 32 hexadecimal digits, high half first.
func (k Key) String() string { return fmt.Sprintf("%016x%016x", k.Hi, k.Lo) }

// ristretto's keys can't be structs, so a Key travels as a string of its 16
// bytes, little-endian and low half first, and splitKey takes it apart again.
const keyBytes = 16

// splitKey is ristretto's KeyToHash: the low half is the hash, the high half
// tells keys with the same hash apart. ristretto takes a high half of zero for
// "any", which is why every entry found is compared with the whole Key.
func splitKey(s string) (hash, conflict uint64) {
	b := unsafe.Slice(unsafe.StringData(s), len(s)) // read only
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
}

// put writes the string form of k to b.
func (k Key) put(b *[keyBytes]byte) {
	binary.LittleEndian.PutUint64(b[:], k.Lo)
	binary.LittleEndian.PutUint64(b[8:], k.Hi)
}

// probe is a reusable key string for look-ups, which would otherwise allocate
// one each. text shares the bytes of raw, so it is no ordinary string: it
// changes with raw and must not be kept. ristretto keeps hashes only.
type probe struct {
	raw  [keyBytes]byte
	text string
}

func newProbe() any {
	p := new(probe)
	p.text = unsafe.String(&p.raw[0], keyBytes)
	return p
}
