package native

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

func TestStoredCodeRuns(t *testing.T) {
	for _, isa := range Available() {
		k := softmax()
		c, err := Compile(k, isa)
		if err != nil {
			t.Fatal(err)
		}
		data, err := c.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(data)
		if err != nil {
			t.Fatal(err)
		}
		compareRun(t, k, again, looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), k, 5, 77, again.SpillBytes(), looptest.Moderate), 8)
	}
}

func TestDamagedCodeIsRefused(t *testing.T) {
	if len(Available()) == 0 {
		t.Skip("there is no native code here")
	}
	c, err := Compile(addition(), Available()[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, len(stamp), len(stamp) + 32, len(data) - 1} {
		bad := append([]byte{}, data...)
		bad[at] ^= 1
		if _, err := Load(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
	if _, err := Load(data[:10]); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut short: %v", err)
	}
}

func TestUnsupportedAndMalformed(t *testing.T) {
	if len(Available()) == 0 {
		t.Skip("there is no native code here")
	}
	k := addition()
	k.Args[2].Cols = loop.Fixed
	if _, err := Compile(k, AVX2); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a store that does not move: %v", err)
	}
	k = addition()
	k.Passes[0].Body = k.Passes[0].Body[1:]
	if _, err := Compile(k, AVX2); !errors.Is(err, loop.ErrKernel) {
		t.Errorf("a value that is not there: %v", err)
	}
}

// TestStreamedStores has rows that are aligned for stores past the cache and
// rows that are not.
func TestStreamedStores(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range looptest.Stored {
			b := looptest.New(loop.None)
			x := b.Load(b.Arg(d, loop.Unit, false))
			out := b.Arg(d, loop.Unit, true)
			b.Args[out].Stream = true
			b.Store(out, b.Op(aten.Maximum, x, x))
			k := &b.Kernel
			c, err := Compile(k, isa)
			if err != nil {
				t.Fatal(err)
			}
			for _, gap := range []int{0, 1} {
				g := looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), k, 4, 256, c.SpillBytes(), looptest.Elements)
				size := d.Size()
				for side := range g.Frame {
					own := looptest.Aligned(8 * 260 * 8)
					g.Frame[side].Ptr[out], g.Frame[side].Row[out] = own, size*(256+gap)
					g.Data[side][out] = unsafe.Slice((*byte)(own), size*1040)
				}
				compareRun(t, k, c, g, 0)
			}
		}
	}
}
