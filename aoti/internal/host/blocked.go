//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// errBlocked says that packed bytes are in a form that is not understood.
var errBlocked = errors.New("weights packed for oneDNN in an unknown form")

// blocked is oneDNN's description of an array in memory: strided over blocks,
// which are dense inside.
type blocked struct {
	dtype   int32
	dims    []int
	padded  []int // dims rounded up to whole blocks
	offset  int
	strides []int // of the blocks
	blocks  []block
	groups  int  // of the convolution that the weights are for
	older   bool // made by the oneDNN of PyTorch 2.6
}

// block is one level of blocking: size elements of dimension dim; the last level
// is the innermost.
type block struct{ size, dim int }

// The layout of the serialised description: a version, the rank, and arrays for
// twelve dimensions. Older ones have no version; the numbers of the dtypes and of
// the blocked format are oneDNN's. What follows the description is the groups.
const (
	maxBlockedDims = 12
	blockedBytes   = 768
	olderBytes     = 664 // of PyTorch 2.6
	formatBlocked  = 2

	extraAt     = 640 // flags of what comes with the elements
	sumsSigned  = 1
	sumsShifted = 8
)

var blockedDTypes = map[int32]ir.DType{1: ir.F16, 2: ir.BF16, 3: ir.F32, 4: ir.I32, 5: ir.I8, 6: ir.U8, 7: ir.F64}

// parseBlocked reads a description. Whatever it says is checked against itself; it
// returns an error wrapping errBlocked for what it does not know.
func parseBlocked(b []byte) (*blocked, error) {
	older := len(b) == olderBytes+4
	if len(b) != blockedBytes+4 && !older {
		return nil, fmt.Errorf("%w: a description of %d bytes", errBlocked, len(b))
	}
	word := func(at int) int { return int(int64(binary.LittleEndian.Uint64(b[at:]))) }
	half := func(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }
	rank := half(4)
	if rank == 0 {
		rank = half(0)
	}
	if rank < 1 || rank > maxBlockedDims || half(312) != formatBlocked {
		return nil, fmt.Errorf("%w: rank %d, format %d", errBlocked, rank, half(312))
	}
	d := &blocked{offset: word(304), groups: half(len(b) - 4), older: older}
	t, ok := blockedDTypes[int32(half(104))]
	if !ok {
		return nil, fmt.Errorf("%w: dtype %d", errBlocked, half(104))
	}
	d.dtype = scalartype.Code(t)
	for i := range rank {
		d.dims = append(d.dims, word(8+8*i))
		d.padded = append(d.padded, word(112+8*i))
		d.strides = append(d.strides, word(320+8*i))
		if word(208+8*i) != 0 {
			return nil, fmt.Errorf("%w: padding in front", errBlocked)
		}
	}
	n := word(416)
	if n < 0 || n > maxBlockedDims {
		return nil, fmt.Errorf("%w: %d levels of blocks", errBlocked, n)
	}
	for i := range n {
		d.blocks = append(d.blocks, block{word(424 + 8*i), word(520 + 8*i)})
	}
	// Sums that correct products with signed or shifted inputs may lie behind weights
	// of 8 bits; other products than oneDNN's need none. Anything else that comes with
	// the elements changes what they stand for.
	if flags := word(extraAt); flags != 0 && (t != ir.I8 || flags&^(sumsSigned|sumsShifted) != 0) {
		return nil, fmt.Errorf("%w: elements of %v with extras %#x", errBlocked, t, flags)
	}
	return d, d.check()
}

// readable reports weights of 8 bits, packed as a description says, that no layer
// could read.
func readable(description []byte, d ir.DType) error {
	if description == nil || d != ir.I8 {
		return nil
	}
	if _, err := parseBlocked(description); err != nil {
		return fmt.Errorf("%w; compile the model without freezing, or on another processor", err)
	}
	return nil
}

// check reports a description that contradicts itself.
func (d *blocked) check() error {
	inner := make([]int, len(d.dims))
	for i := range inner {
		inner[i] = 1
	}
	for _, b := range d.blocks {
		if b.size < 1 || b.size > 1<<12 || b.dim < 0 || b.dim >= len(d.dims) {
			return fmt.Errorf("%w: a block of %d in dimension %d", errBlocked, b.size, b.dim)
		}
		inner[b.dim] *= b.size
	}
	for i, n := range d.dims {
		if n < 0 || d.padded[i] < n || inner[i] > 1<<12 || d.padded[i]%inner[i] != 0 || d.strides[i] < 0 || d.padded[i] > 1<<40 {
			return fmt.Errorf("%w: size %d, padded %d, in dimension %d", errBlocked, n, d.padded[i], i)
		}
	}
	return nil
}

// extent returns how many elements the blocks reach over.
func (d *blocked) extent() int {
	n := 1
	inner := 1
	whole := append([]int(nil), d.padded...)
	for _, b := range d.blocks {
		inner *= b.size
		whole[b.dim] /= b.size
	}
	for i, w := range whole {
		if w == 0 {
			return 0
		}
		n += (w - 1) * d.strides[i]
	}
	return d.offset + n - 1 + inner
}

// at returns where an element lies. It changes pos.
func (d *blocked) at(pos []int) int {
	off, step := d.offset, 1
	for i := len(d.blocks) - 1; i >= 0; i-- {
		b := d.blocks[i]
		off += pos[b.dim] % b.size * step
		pos[b.dim] /= b.size
		step *= b.size
	}
	for i, p := range pos {
		off += p * d.strides[i]
	}
	return off
}

// unpackBlocked copies the elements of packed bytes to dst, element pos of d's
// dimensions to the sum of pos·strides.
func unpackBlocked[T any](d *blocked, dst, src []T, strides []int) error {
	if d.extent() > len(src) {
		return fmt.Errorf("%w: it reaches over %d elements of %d", errBlocked, d.extent(), len(src))
	}
	pos, scratch := make([]int, len(d.dims)), make([]int, len(d.dims))
	for _, n := range d.dims {
		if n == 0 {
			return nil
		}
	}
	for {
		to := 0
		for i, p := range pos {
			to += p * strides[i]
		}
		copy(scratch, pos)
		dst[to] = src[d.at(scratch)]
		i := len(pos) - 1
		for ; i >= 0; i-- {
			if pos[i]++; pos[i] < d.dims[i] {
				break
			}
			pos[i] = 0
		}
		if i < 0 {
			return nil
		}
	}
}

// blockedOf returns the description of a packed tensor and its memory.
func blockedOf[T any](t *tensor) (*blocked, []T, error) {
	o := t.opaque
	head := unsafe.Pointer(o)
	b := unsafe.Slice((*byte)(unsafe.Add(head, unsafe.Sizeof(*o))), int(o.size))
	d, err := parseBlocked(b)
	if err != nil {
		return nil, nil, err
	}
	if d.dtype != int32(t.dtype) {
		return nil, nil, fmt.Errorf("%w: dtype %d in a tensor of %d", errBlocked, d.dtype, t.dtype)
	}
	var one T
	n := int(t.storage.nbytes) / int(unsafe.Sizeof(one))
	return d, unsafe.Slice((*T)(t.storage.data), n), nil
}
