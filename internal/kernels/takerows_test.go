package kernels

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/guarded"
	"github.com/loris-ml/loris/internal/strided"
)

// TestTakeRows holds rows of all short lengths and some longer ones, by the processor's loop and without, against
// rows by themselves, in memory that ends at a page which can't be touched; rows of an index out of range panic.
func TestTakeRows(t *testing.T) {
	native := rowLoop
	defer func() { rowLoop = native }()
	for _, rowLoop = range []func(dst, src *byte, index *int64, size, bytes, n int) int{native, nil} {
		checkRows[uint8](t)
		checkRows[uint16](t)
		checkRows[uint32](t)
		checkRows[uint64](t)
		checkRows[strided.Bits128](t)
	}
}

func checkRows[T strided.Bits](t *testing.T) {
	t.Helper()
	each := int(unsafe.Sizeof(*new(T)))
	rng := rand.New(rand.NewPCG(2, 71))
	for inner := 2; inner*each <= vectorRowBytes+80; inner += 1 + inner/40 {
		const size = 5
		index := make([]int64, 1+rng.IntN(9))
		for i := range index {
			index[i] = rng.Int64N(size)
		}
		row := inner * each
		src, dst := guarded.Slice[byte](size*row), guarded.Slice[byte](len(index)*row)
		for i := range src {
			src[i] = uint8(rng.Uint32())
		}
		var want []byte
		for _, ix := range index {
			want = append(want, src[int(ix)*row:][:row]...)
		}
		take := func() { takeRows(elementsOf[T](dst), elementsOf[T](src), index, size, inner) }
		if take(); !bytes.Equal(dst, want) {
			t.Fatalf("%d elements of %d bytes by %v: %v, want %v", inner, each, index, dst, want)
		}
		bad := rng.IntN(len(index))
		index[bad] = []int64{-1, size, math.MinInt64, math.MaxInt64}[rng.IntN(4)]
		if !recovers(index[bad], size, take) {
			t.Fatalf("%d elements of %d bytes: no panic of %v", inner, each, index)
		}
	}
	if !recovers(0, 0, func() { takeRows(make([]T, 3), nil, slices.Clone([]int64{0}), 0, 3) }) {
		t.Fatal("no panic of a row of none")
	}
}

// elementsOf returns bytes as elements.
func elementsOf[T strided.Bits](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}
