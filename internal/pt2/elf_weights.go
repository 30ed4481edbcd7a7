package pt2

import "encoding/binary"

// WeightsKind says where the constants of a library are.
type WeightsKind uint8

const (
	// WeightsUnknown is a library that does not show them.
	WeightsUnknown WeightsKind = iota
	// WeightsNone is a library without constants.
	WeightsNone
	// WeightsInside are in a section of the library, mapped with it.
	WeightsInside
	// WeightsAppended follow the library in the same file; it maps the end of its
	// own file when they are loaded.
	WeightsAppended
	// WeightsOutside are in a file beside the library (".blob").
	WeightsOutside
)

var weightsKinds = [...]string{"unknown", "none", "in the library", "appended to the library", "outside the library"}

// String returns the kind in words.
func (k WeightsKind) String() string { return weightsKinds[min(int(k), len(weightsKinds)-1)] }

// Weights says where the constants of a library lie.
type Weights struct {
	// Kind says how they are kept.
	Kind WeightsKind
	// Offset and Size are the stretch of the library's file that holds them
	// (WeightsInside and WeightsAppended); for WeightsOutside, Size is that of the
	// file beside it.
	Offset, Size int64
}

// weightsAlign is what the offset of appended weights is a multiple of.
const weightsAlign = 16384

// findWeights reads what the symbols around the constants enclose: the constants
// themselves, or eight bytes (their size; kept outside), or sixteen (their size
// with the magic number that ends them, and the magic number; appended).
func (l *Library) findWeights() error {
	start, ok1 := l.Symbol("_binary_constants_bin_start")
	end, ok2 := l.Symbol("_binary_constants_bin_end")
	if !ok1 || !ok2 {
		return nil
	}
	if end.Addr < start.Addr {
		return problem("the library's constants end before they start")
	}
	size := end.Addr - start.Addr
	if size <= 1 { // an empty section is made one byte long
		l.Weights.Kind = WeightsNone
		return nil
	}
	off, err := l.offset(start.Addr, size, "constants")
	if err != nil {
		return err
	}
	l.Weights = Weights{WeightsInside, int64(off), int64(size)}
	if size != 8 && size != 16 {
		return nil
	}
	b, err := l.read(off, size, "constants")
	if err != nil {
		return err
	}
	total := binary.LittleEndian.Uint64(b)
	if size == 8 {
		// Constants inside are padded to 64 bytes on CPUs; eight bytes are a size.
		if total <= 1<<50 {
			l.Weights = Weights{Kind: WeightsOutside, Size: int64(total)}
		}
		return nil
	}
	if total < 8 || total > uint64(l.Size) {
		return problem("the library says that %d bytes of weights end its file of %d bytes; it is perhaps cut short", total, l.Size)
	}
	at := uint64(l.Size) - total
	magic, err := l.read(uint64(l.Size)-8, 8, "weights")
	if err != nil {
		return err
	}
	if at%weightsAlign != 0 || string(magic) != string(b[8:]) {
		return problem("the weights at the end of the library are damaged or cut short")
	}
	l.Weights = Weights{WeightsAppended, int64(at), int64(total - 8)}
	return nil
}
