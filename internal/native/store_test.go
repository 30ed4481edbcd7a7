package native

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/loop"
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
		compareRun(t, k, again, newGrid(rand.New(rand.NewPCG(1, 1)), k, 5, 77, again.SpillBytes(), moderate), 8)
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
