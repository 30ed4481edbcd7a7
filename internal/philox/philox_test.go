package philox

import (
	"fmt"
	"math"
	"testing"
)

// TestKnownAnswers are the vectors of kat_vectors in the authors' Random123
// distribution: zeros, ones, and digits of π.
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Block(c.counter, c.key); got != c.want {
			t.Errorf("Block(%08x, %08x) = %08x, want %08x", c.counter, c.key, got, c.want)
		}
	}
}

// TestElements holds the layout to values of a second implementation, written
// in Python from the package comment alone.
func TestElements(t *testing.T) {
	for _, c := range []struct {
		seed, offset uint64
		index        int64
		u32          uint32
		u64          uint64
		f32          float32
		f64          float64
		normal       float64
	}{
		{0x0, 0x0, 0, 0x6627e8d5, 0xe169c58d6627e8d5, 0.3990464210510254, 0.8805201978886142, -1.62496344087104},
		{0x0, 0x0, 1, 0xe169c58d, 0x9b00dbd8bc57ac4c, 0.8805201649665833, 0.6054818538799213, -1.2683492025469478},
		{0x2a, 0x7, 0, 0x67ee6f2c, 0xe55410cc67ee6f2c, 0.40598195791244507, 0.8958139895475427, -1.0687250842518425},
		{0x2a, 0x7, 5, 0x600f6196, 0xd301a3d5571a4cf0, 0.3752346634864807, 0.8242437740183074, -2.1032777805507665},
		{0x2a, 0x7, 1<<40 + 3, 0x7421ac47, 0xa36e5da0abee67ad, 0.45363879203796387, 0.6384027974381126, -0.6952527166272165},
		{0xdeadbeefcafebabe, 0x123456789abcdef0, 10, 0xa595dfd3, 0xe9965d93058af1f7, 0.6468181014060974, 0.9124506458224848, -2.176644129997788},
		{0x1, 0x2, -1, 0x7fad7078, 0x2055434b595fb785, 0.49874019622802734, 0.1263010081250957, 0.8349294536310857},
	} {
		name := fmt.Sprintf("(%#x, %#x, %d)", c.seed, c.offset, c.index)
		if got := Uint32(c.seed, c.offset, c.index); got != c.u32 {
			t.Errorf("Uint32%s = %#x, want %#x", name, got, c.u32)
		}
		if got := Uint64(c.seed, c.offset, c.index); got != c.u64 {
			t.Errorf("Uint64%s = %#x, want %#x", name, got, c.u64)
		}
		if got := Float32(c.seed, c.offset, c.index); got != c.f32 {
			t.Errorf("Float32%s = %v, want %v", name, got, c.f32)
		}
		if got := Float64(c.seed, c.offset, c.index); got != c.f64 {
			t.Errorf("Float64%s = %v, want %v", name, got, c.f64)
		}
		if got := NormFloat64(c.seed, c.offset, c.index); math.Abs(got-c.normal) > 1e-15*math.Abs(c.normal) {
			t.Errorf("NormFloat64%s = %v, want %v", name, got, c.normal)
		}
	}
}

func TestUniformEnds(t *testing.T) {
	if got := unit32(math.MaxUint32); got >= 1 || got != 1-0x1p-24 {
		t.Errorf("largest float32 is %v", got)
	}
	if got := unit64(math.MaxUint64); got >= 1 || got != 1-0x1p-53 {
		t.Errorf("largest float64 is %v", got)
	}
	if unit32(0xff) != 0 || unit64(0x7ff) != 0 {
		t.Error("the dropped bits count")
	}
	// The smallest and the largest u0 give finite normals.
	for _, w := range [][4]uint32{{}, {math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32}} {
		for _, z := range normals(w) {
			if math.IsNaN(z) || math.Abs(z) > 8.6 {
				t.Errorf("normals(%x) = %v", w, z)
			}
		}
	}
}

// checkRandomAccess fills ranges of several starts and lengths and compares
// every element with the one computed alone.
func checkRandomAccess[T comparable](t *testing.T, fill func([]T, uint64, uint64, int64), at func(seed, offset uint64, index int64) T) {
	t.Helper()
	const seed, offset = 0x0123456789abcdef, 3<<32 + 5
	for _, start := range []int64{0, 1, 2, 3, 4, 1<<34 - 2, math.MaxInt64 - 3, -6} {
		for n := range 12 {
			buf := make([]T, n+1)
			guard := buf[n]
			fill(buf[:n:n], seed, offset, start)
			for i := range n {
				if want := at(seed, offset, start+int64(i)); buf[i] != want {
					t.Fatalf("start %d, length %d: element %d is %v, want %v", start, n, i, buf[i], want)
				}
			}
			if buf[n] != guard {
				t.Fatalf("start %d, length %d: wrote past the end", start, n)
			}
		}
	}
	one := make([]T, 100)
	fill(one, seed, offset, 7)
	for _, split := range []int{1, 2, 3, 50, 99} {
		two := make([]T, 100)
		fill(two[split:], seed, offset, 7+int64(split))
		fill(two[:split], seed, offset, 7)
		for i := range one {
			if one[i] != two[i] {
				t.Fatalf("split at %d: element %d differs", split, i)
			}
		}
	}
}

// alone makes one element as fill makes many.
func alone[T any](fill func([]T, uint64, uint64, int64)) func(seed, offset uint64, index int64) T {
	return func(seed, offset uint64, index int64) T {
		var one [1]T
		fill(one[:], seed, offset, index)
		return one[0]
	}
}

func TestRandomAccess(t *testing.T) {
	t.Run("bits", func(t *testing.T) { checkRandomAccess(t, Bits, Uint32) })
	t.Run("uniform f32", func(t *testing.T) {
		fill := func(dst []float32, seed, offset uint64, start int64) { UniformBits(dst, seed, offset, start, 24) }
		checkRandomAccess(t, fill, Float32)
	})
	t.Run("uniform f64", func(t *testing.T) { checkRandomAccess(t, UniformF64, Float64) })
	t.Run("normal f64", func(t *testing.T) { checkRandomAccess(t, NormalF64, alone(NormalF64)) })
	t.Run("normal f32", func(t *testing.T) { checkRandomAccess(t, NormalF32, alone(NormalF32)) })
}

// TestStreamsDiffer catches a key or counter word that is dropped: changing any
// half of seed, offset or block number changes the values.
func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 1 << 32} {
		for _, offset := range []uint64{0, 1, 1 << 32} {
			for _, index := range []int64{0, 1, 2, 1 << 33} {
				name := fmt.Sprintf("(%d, %d, %d)", seed, offset, index)
				v := Uint64(seed, offset, index)
				if other, dup := seen[v]; dup {
					t.Errorf("%s and %s give the same value", name, other)
				}
				seen[v] = name
			}
		}
	}
}

func TestFloatBits(t *testing.T) {
	for _, n := range []int{1, 8, 11, 24, 32} {
		largest := 0.0
		for i := range int64(2000) {
			v := FloatBits(5, 6, i, n)
			if want := math.Floor(float64(Uint32(5, 6, i))*0x1p-32*float64(int64(1)<<n)) / float64(int64(1)<<n); v != want {
				t.Fatalf("%d bits: element %d is %v, want %v", n, i, v, want)
			}
			largest = max(largest, v)
		}
		if largest >= 1 || largest < 0.5 {
			t.Errorf("%d bits: the largest of 2000 is %v", n, largest)
		}
	}
}

func TestUint64n(t *testing.T) {
	const draws = 6000
	for _, n := range []uint64{1, 2, 3, 10, 1<<63 + 1} {
		low := 0
		for i := range int64(draws) {
			v := Uint64n(1, 2, i, n)
			if v >= n {
				t.Fatalf("element %d is %d, not below %d", i, v, n)
			}
			if v < (n+1)/2 {
				low++
			}
		}
		want := float64((n+1)/2) / float64(n) * draws
		if math.Abs(float64(low)-want) > 5*math.Sqrt(draws)/2 {
			t.Errorf("n = %d: %d of %d in the lower half, want about %v", n, low, draws, want)
		}
	}
}

// TestUniformBitsWrap makes elements around index 2⁶⁴, where indices and with them blocks begin again.
func TestUniformBitsWrap(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, start := range []int64{-1, -3, -4, -5, -129, -256, -1000} {
			for _, n := range []int{5, 128, 700, 1001} {
				got := make([]float32, n)
				UniformBits(got, 7, 9, start, 11)
				for i, v := range got {
					if want := float32(FloatBits(7, 9, start+int64(i), 11)); v != want {
						t.Fatalf("from %d on, element %d of %d is %v, want %v", start, i, n, v, want)
					}
				}
			}
		}
	})
}
