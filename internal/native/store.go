package native

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrDamaged says that stored code is not what MarshalBinary of this version
// wrote.
var ErrDamaged = errors.New("the stored code is damaged or of another version")

// stamp begins stored code. It changes with the layout of loop.Frame and with
// whatever else code relies on.
const stamp = "loris native 4\n"

// headerLen is a stamp, a checksum, the level and the spill size.
const headerLen = len(stamp) + sha256.Size + 1 + 8

// MarshalBinary returns the code as bytes, which Load takes on a processor with
// the same level. Code is position independent and has no addresses in it.
func (c *Code) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, headerLen+c.Size())
	out = append(out, stamp...)
	body := binary.LittleEndian.AppendUint64([]byte{byte(c.isa)}, uint64(c.spill))
	body = c.fn.AppendTo(body)
	sum := sha256.Sum256(body)
	return append(append(out, sum[:]...), body...), nil
}

// Load returns the code that MarshalBinary made data from. The error wraps
// ErrDamaged, or ErrUnsupported if this processor lacks the level. What is loaded
// runs: data must come from where nobody else can write.
func Load(data []byte) (*Code, error) {
	if len(data) <= headerLen || !bytes.HasPrefix(data, []byte(stamp)) {
		return nil, fmt.Errorf("%w: no header", ErrDamaged)
	}
	sum, body := data[len(stamp):len(stamp)+sha256.Size], data[len(stamp)+sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], sum) {
		return nil, fmt.Errorf("%w: wrong checksum", ErrDamaged)
	}
	isa := ISA(body[0])
	if !slices.Contains(Available(), isa) {
		return nil, fmt.Errorf("%w: the processor lacks %v", ErrUnsupported, isa)
	}
	c := &Code{spill: int(binary.LittleEndian.Uint64(body[1:])), isa: isa}
	if err := c.install(body[9:]); err != nil {
		return nil, err
	}
	return c, nil
}
