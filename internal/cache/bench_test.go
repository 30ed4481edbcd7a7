package cache

import (
	"context"
	"fmt"
	"testing"
)

// fill returns a cache of n computations and their keys.
func fill(b *testing.B, n int) (*Computations[int], []Key) {
	c := NewComputations(Options[int]{})
	b.Cleanup(c.Close)
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Lo: uint64(i) * 0x9e3779b97f4a7c15, Hi: uint64(i) + 1}
		r, _, err := c.GetOrBuild(b.Context(), keys[i], func(context.Context) (int, int64, error) { return i, 1, nil })
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
	return c, keys
}

// BenchmarkRistrettoGet is what BenchmarkComputationsGet can't be faster than.
func BenchmarkRistrettoGet(b *testing.B) {
	c, keys := fill(b, 64)
	texts := make([]string, len(keys))
	for i, key := range keys {
		var raw [keyBytes]byte
		key.put(&raw)
		texts[i] = string(raw[:])
	}
	i := 0
	for b.Loop() {
		if _, ok := c.store.cache.Get(texts[i&63]); !ok {
			b.Fatal("miss")
		}
		i++
	}
}

func BenchmarkComputationsGet(b *testing.B) {
	c, keys := fill(b, 64)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r, ok := c.Get(keys[i&63])
		if !ok {
			b.Fatal("miss")
		}
		r.Release()
		i++
	}
}

func BenchmarkComputationsGetParallel(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			c, keys := fill(b, n)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := 0
				for pb.Next() {
					r, ok := c.Get(keys[i%n])
					if !ok {
						b.Error("miss")
						return
					}
					r.Release()
					i++
				}
			})
		})
	}
}

func BenchmarkComputationsBuild(b *testing.B) {
	c := NewComputations(Options[int]{MaxCost: 1 << 10})
	b.Cleanup(c.Close)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		r, _, err := c.GetOrBuild(b.Context(), Key{Lo: i, Hi: 1}, func(context.Context) (int, int64, error) { return 0, 1, nil })
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
		i++
	}
}

func BenchmarkDataGet(b *testing.B) {
	d := NewData[int, int](DataOptions[int]{})
	b.Cleanup(d.Close)
	d.Put(0, Key{1, 2}, 7, 8).Release()
	b.ReportAllocs()
	for b.Loop() {
		r, ok := d.Get(0, Key{1, 2}, func(v int) bool { return v == 7 })
		if !ok {
			b.Fatal("miss")
		}
		r.Release()
	}
}

func BenchmarkDataPut(b *testing.B) {
	d := NewData[int, int](DataOptions[int]{MaxCost: 1 << 10})
	b.Cleanup(d.Close)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		d.Put(0, Key{i, 1}, 7, 8).Release()
		i++
	}
}

func BenchmarkDataGetScalar(b *testing.B) {
	d := NewData[int, int](DataOptions[int]{})
	b.Cleanup(d.Close)
	s := Scalar{DType: 6, Bits: 42}
	for range 2 {
		d.PutScalar(0, s, 7).Release()
	}
	b.ReportAllocs()
	for b.Loop() {
		r, ok := d.GetScalar(0, s)
		if !ok {
			b.Fatal("miss")
		}
		r.Release()
	}
}
