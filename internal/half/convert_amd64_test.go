//go:build amd64 && !noasm

package half

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLoopsAgree compares each vector loop with the scalar conversions, for all
// narrow patterns and for float32 around every rounding.
func TestLoopsAgree(t *testing.T) {
	narrow := make([]uint16, 1<<16+5)
	for i := range narrow {
		narrow[i] = uint16(i)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var wide []float32
	for i := range 1 << 16 {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000, 0x1001, rng.Uint32() & 0xffff} {
			wide = append(wide, math.Float32frombits(uint32(i)<<16|low))
		}
	}
	wide = append(wide, 1, 2, 3)
	best := lanes
	defer func() { lanes = best }()
	for _, lanes = range []int{8, 16} {
		if lanes > best {
			break
		}
		to := make([]float32, len(narrow))
		for name, f := range map[string]struct {
			slice func([]float32, []uint16)
			one   func(uint16) float32
		}{"bf16": {BF16sToF32s, BF16ToF32}, "f16": {F16sToF32s, F16ToF32}} {
			f.slice(to, narrow)
			for i, h := range narrow {
				if got, want := math.Float32bits(to[i]), math.Float32bits(f.one(h)); got != want {
					t.Fatalf("%s %#04x with %d lanes: %#08x, want %#08x", name, h, lanes, got, want)
				}
			}
		}
		bytes := make([]uint8, 256+5)
		for i := range bytes {
			bytes[i] = uint8(i)
		}
		tiny := make([]uint8, len(wide))
		for name, f := range map[string]struct {
			widen  func([]float32, []uint8)
			value  func(uint8) float32
			narrow func([]uint8, []float32)
			code   func(float32) uint8
		}{"e4m3": {E4M3sToF32s, E4M3ToF32, F32sToE4M3s, F32ToE4M3}, "e5m2": {E5M2sToF32s, E5M2ToF32, F32sToE5M2s, F32ToE5M2}} {
			f.widen(to, bytes)
			for i, h := range bytes {
				if got, want := math.Float32bits(to[i]), math.Float32bits(f.value(h)); got != want {
					t.Fatalf("%s %#02x with %d lanes: %#08x, want %#08x", name, h, lanes, got, want)
				}
			}
			f.narrow(tiny, wide)
			for i, x := range wide {
				if got, want := tiny[i], f.code(x); got != want {
					t.Fatalf("%s of %#08x with %d lanes: %#02x, want %#02x", name, math.Float32bits(x), lanes, got, want)
				}
			}
		}
		back := make([]uint16, len(wide))
		for name, f := range map[string]struct {
			slice func([]uint16, []float32)
			one   func(float32) uint16
		}{"bf16": {F32sToBF16s, F32ToBF16}, "f16": {F32sToF16s, F32ToF16}} {
			f.slice(back, wide)
			for i, x := range wide {
				if got, want := back[i], f.one(x); got != want {
					t.Fatalf("%s of %#08x with %d lanes: %#04x, want %#04x", name, math.Float32bits(x), lanes, got, want)
				}
			}
		}
	}
}
