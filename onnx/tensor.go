package onnx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
	"github.com/loris-ml/loris/onnx/internal/pb"
	"golang.org/x/sync/errgroup"
)

// contents are the elements of a tensor in a file, in the dtype that holds them.
type contents struct {
	elem elemType
	dims []int
	data []byte
}

// externals reads the files beside a model that hold elements.
type externals struct {
	root *os.Root // the model's folder; nil where a model is not from a file
}

// numel returns the number of elements of a shape, and false where it does not fit an int.
func numel(dims []int64) (int, bool) {
	n := uint64(1)
	zero := false
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt/16 {
			return 0, false
		}
		n = lo
	}
	if zero {
		n = 0
	}
	return int(n), true
}

// read returns the elements of a tensor.
func (x *externals) read(t *pb.Tensor) (*contents, error) {
	if t == nil { // an attribute that says that it is a tensor
		return nil, errors.New("there is no tensor")
	}
	e := elemType(t.DType)
	switch {
	case !e.known():
		return nil, fmt.Errorf("%v is unknown", e)
	case !e.held():
		return nil, fmt.Errorf("%v elements are not supported: Loris computes with numbers only", e)
	}
	n, ok := numel(t.Dims)
	if !ok {
		return nil, fmt.Errorf("the dimensions %v are no shape", t.Dims)
	}
	if _, err := ir.NewShape(e.dtype(), ints(t.Dims)); err != nil {
		return nil, err
	}
	c := &contents{elem: e, dims: ints(t.Dims)}
	raw, packed := t.Raw, t.HasRaw
	if t.Location == pb.External {
		var err error
		if raw, err = x.file(t, (n*e.info().bits+7)/8); err != nil {
			return nil, err
		}
		packed = true
	}
	var err error
	if packed {
		c.data, err = fromRaw(e, raw, n)
	} else {
		c.data, err = fromFields(e, t, n)
	}
	return c, err
}

// file reads the elements of a tensor that are in a file of their own.
func (x *externals) file(t *pb.Tensor, want int) ([]byte, error) {
	f, offset, err := x.open(t, want)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := memlimit.Check(int64(want), 0); err != nil { // a file with holes has any size
		return nil, err
	}
	b := make([]byte, want)
	return b, readAt(f, b, offset)
}

// open opens the file that has a tensor's elements, want bytes from the offset on.
func (x *externals) open(t *pb.Tensor, want int) (f *os.File, offset int64, err error) {
	var name string
	length := int64(-1)
	for _, e := range t.External {
		switch e.Key {
		case "location":
			name = e.Value
		case "offset":
			offset, err = strconv.ParseInt(e.Value, 10, 64)
		case "length":
			length, err = strconv.ParseInt(e.Value, 10, 64)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s %q of external data is no number", e.Key, e.Value)
		}
	}
	switch {
	case x.root == nil:
		return nil, 0, fmt.Errorf("the elements are in file %q, and this model was not read from a folder", name)
	case !filepath.IsLocal(name):
		return nil, 0, fmt.Errorf("the elements are in file %q, which is outside of the model's folder", name)
	case length >= 0 && length != int64(want) || offset < 0:
		return nil, 0, fmt.Errorf("%d bytes at %d of file %q do not fill the tensor, which needs %d", length, offset, name, want)
	}
	if f, err = x.root.Open(name); err != nil { // a Root follows no link out of the folder
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size()-int64(want) < offset) {
		err = fmt.Errorf("file %q has %d bytes, the tensor needs %d from %d on", name, info.Size(), want, offset)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, offset, nil
}

// upload reads a tensor in a file of its own, whose elements are stored as Loris has them, to where it
// stays.
func (x *externals) upload(ctx context.Context, m loris.Maker, t *pb.Tensor, shape ir.Shape) (*loris.Tensor, error) {
	f, offset, err := x.open(t, shape.Bytes())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return importer.Read(ctx, m, shape, func(data []byte) error { return readAt(f, data, offset) })
}

// readPiece is what one processor reads at a time of a large tensor.
const readPiece = 4 << 20

// readAt fills b, on all processors: that the system clears and copies memory takes longer than all
// else. A file that became shorter meanwhile is an error.
func readAt(f *os.File, b []byte, offset int64) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for len(b) > readPiece {
		piece, at := b[:readPiece], offset
		g.Go(func() error { return readPieceAt(f, piece, at) })
		b, offset = b[readPiece:], offset+readPiece
	}
	return errors.Join(readPieceAt(f, b, offset), g.Wait())
}

func readPieceAt(f *os.File, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// fromRaw returns n elements of little-endian bytes in the dtype that holds them.
func fromRaw(e elemType, raw []byte, n int) ([]byte, error) {
	width := e.info().bits
	if want := (n*width + 7) / 8; len(raw) != want {
		return nil, fmt.Errorf("%d bytes do not fill the %d %v elements, which need %d", len(raw), n, e, want)
	}
	if e.asStored() {
		if e == tBool {
			return normalizeBools(raw), nil
		}
		return raw, nil
	}
	out := make([]byte, 0, n*e.dtype().Size())
	for i := range n {
		out = e.appendCode(out, code(raw, i, width))
	}
	return out, nil
}

// normalizeBools makes every true a 1, which is what Loris computes with.
func normalizeBools(raw []byte) []byte {
	out := make([]byte, len(raw))
	for i, v := range raw {
		if v != 0 {
			out[i] = 1
		}
	}
	return out
}

// code returns the bits of element i; elements of fewer than 8 bits are packed from the lowest.
func code(raw []byte, i, width int) uint64 {
	switch width {
	case 8:
		return uint64(raw[i])
	case 16:
		return uint64(binary.LittleEndian.Uint16(raw[2*i:]))
	case 32:
		return uint64(binary.LittleEndian.Uint32(raw[4*i:]))
	case 64:
		return binary.LittleEndian.Uint64(raw[8*i:])
	}
	per := 8 / width
	return uint64(raw[i/per]>>(i%per*width)) & (1<<width - 1)
}

// appendCode appends an element of the type by its bits to elements of the dtype that holds it.
func (e elemType) appendCode(b []byte, v uint64) []byte {
	d := e.dtype()
	if f, small := smallFloat(e, uint8(v)); small {
		return elements.AppendFloat(b, d, f)
	}
	info := e.info()
	if info.narrow {
		n := int64(v)
		if info.signed && v>>(info.bits-1)&1 == 1 {
			n -= 1 << info.bits
		}
		return elements.AppendInt(b, d, n)
	}
	switch d.Size() {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, v)
}

// smallFloat is the number that a byte stands for in the small floating types that Loris has no
// dtype for.
func smallFloat(e elemType, v uint8) (float64, bool) {
	switch e {
	case tE4M3FNUZ, tE5M2FNUZ:
		if v == 0x80 {
			return math.NaN(), true
		}
		mantissa := 3
		if e == tE5M2FNUZ {
			mantissa = 2
		}
		return miniFloat(v, 8, mantissa, 1<<(6-mantissa)), true
	case tE2M1:
		return miniFloat(v, 4, 1, 1), true
	case tE8M0:
		if v == 0xff {
			return math.NaN(), true
		}
		return math.Ldexp(1, int(v)-127), true
	}
	return 0, false
}

// miniFloat decodes a float of width bits with the given mantissa bits and exponent bias, all of
// whose codes are finite.
func miniFloat(v uint8, width, mantissa, bias int) float64 {
	sign := 1.0
	if v>>(width-1)&1 == 1 {
		sign = -1
	}
	m := int(v & (1<<mantissa - 1))
	exp := int(v>>mantissa) & (1<<(width-1-mantissa) - 1)
	if exp == 0 {
		return sign * math.Ldexp(float64(m), 1-bias-mantissa)
	}
	return sign * math.Ldexp(float64(m+1<<mantissa), exp-bias-mantissa)
}

// fromFields returns n elements that stand in the typed fields of a tensor.
func fromFields(e elemType, t *pb.Tensor, n int) ([]byte, error) {
	d := e.dtype()
	count := func(have int) error {
		if have != n {
			return fmt.Errorf("%d elements are stored, the shape %v has %d", have, t.Dims, n)
		}
		return nil
	}
	out := make([]byte, 0, max(4*len(t.Floats), d.Size()*len(t.Int32s)))
	switch e {
	case tFloat:
		for _, v := range t.Floats {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out, count(len(t.Floats))
	case tDouble:
		return elements.EncodeFloats(d, t.Doubles), count(len(t.Doubles))
	case tInt64:
		return elements.EncodeInts(d, t.Int64s), count(len(t.Int64s))
	case tUint32, tUint64:
		return elements.EncodeInts(d, t.Uint64s), count(len(t.Uint64s))
	case tComplex:
		for _, v := range t.Floats {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out, count(len(t.Floats) / 2)
	case tComplex2:
		return elements.EncodeFloats(ir.F64, t.Doubles), count(len(t.Doubles) / 2)
	case tFloat16, tBFloat16, tE4M3FN, tE5M2, tE4M3FNUZ, tE5M2FNUZ, tE8M0:
		for _, v := range t.Int32s {
			out = e.appendCode(out, uint64(v))
		}
		return out, count(len(t.Int32s))
	case tInt4, tUint4, tInt2, tUint2, tE2M1:
		return fromPackedFields(e, t, n)
	}
	if e == tBool {
		for _, v := range t.Int32s {
			out = append(out, byte(min(v&0xff, 1)))
		}
		return out, count(len(t.Int32s))
	}
	return elements.EncodeInts(d, t.Int32s), count(len(t.Int32s))
}

// fromPackedFields is fromFields for elements of less than a byte: each number holds one byte.
func fromPackedFields(e elemType, t *pb.Tensor, n int) ([]byte, error) {
	raw := make([]byte, len(t.Int32s))
	for i, v := range t.Int32s {
		raw[i] = byte(v)
	}
	return fromRaw(e, raw, n)
}

func ints(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}
