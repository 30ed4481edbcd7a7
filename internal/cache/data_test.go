package cache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// array is a device copy that remembers the host contents it was made from.
type array struct {
	*item
	contents string
}

func newTestData(t *testing.T, o DataOptions[array]) (*Data[string, array], *tracker) {
	k := new(tracker)
	o.Release = func(a array) { k.close(a.item) }
	d := NewData[string](o)
	t.Cleanup(func() {
		d.Close()
		k.checkAllClosedOnce(t)
		if n := d.Stats().Live; n != 0 {
			t.Errorf("%d values are live at the end", n)
		}
	})
	return d, k
}

func (k *tracker) array(contents string) array {
	return array{item: k.make(0), contents: contents}
}

// is returns an equality callback.
func is(contents string) func(array) bool {
	return func(a array) bool { return a.contents == contents }
}

func TestDataGetPut(t *testing.T) {
	d, k := newTestData(t, DataOptions[array]{})
	key := Key{1, 2}
	if _, ok := d.Get("cpu", key, is("abc")); ok {
		t.Error("hit in an empty cache")
	}
	r := d.Put("cpu", key, k.array("abc"), 3)
	got, ok := d.Get("cpu", key, is("abc"))
	if !ok || got.Value() != r.Value() {
		t.Fatalf("got %v, %v", got, ok)
	}
	got.Release()
	r.Release()
	if _, ok := d.Get("cuda:0", key, is("abc")); ok {
		t.Error("hit on another device")
	}
	want := DataStats{Hits: 1, Misses: 2, Cost: 3, Live: 1}
	if got := d.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDataHitIsConfirmed(t *testing.T) {
	tests := []struct {
		name     string
		contents string // what the host has now
	}{
		{"collision", "xyz"},
		{"shorter", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, k := newTestData(t, DataOptions[array]{})
			key := Key{1, 2}
			old := d.Put("cpu", key, k.array("abc"), 3)
			if _, ok := d.Get("cpu", key, is(tt.contents)); ok {
				t.Fatal("other contents were taken for the same")
			}
			if s := d.Stats(); s.Mismatches != 1 || s.Misses != 1 || s.Hits != 0 {
				t.Errorf("stats %+v", s)
			}
			d.Put("cpu", key, k.array(tt.contents), 3).Release()
			if r, ok := d.Get("cpu", key, is(tt.contents)); !ok {
				t.Error("the old copy was not replaced")
			} else {
				r.Release()
			}
			if old.Value().closed.Load() != 0 {
				t.Error("the old copy was released while in use")
			}
			old.Release()
			if old.Value().closed.Load() != 1 {
				t.Error("the old copy was not released")
			}
			if s := d.Stats(); s.Evictions != 0 || s.Live != 1 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestDataIsBounded(t *testing.T) {
	const bound = 100
	d, k := newTestData(t, DataOptions[array]{MaxCost: bound})
	for i := range uint64(200) {
		for _, dev := range []string{"cpu", "cuda:0"} {
			d.Put(dev, Key{i, 1}, k.array("abc"), 30).Release()
		}
		if s := d.Stats(); s.Cost > 2*bound || s.Live > 2*3 {
			t.Fatalf("the bound is broken: %+v", s)
		}
	}
	s := d.Stats()
	if s.Evictions+s.Refusals+uint64(s.Live) != 400 || s.Evictions == 0 {
		t.Errorf("the puts don't add up: %+v", s)
	}
	d.Put("cpu", Key{1000, 1}, k.array("big"), bound+1).Release()
	if after := d.Stats(); after.Refusals != s.Refusals+1 || after.Live != s.Live {
		t.Errorf("oversize: %+v", after)
	}
}

func TestDataScalars(t *testing.T) {
	d, k := newTestData(t, DataOptions[array]{Scalars: 2})
	const f32, f64 = 6, 7
	zero := Scalar{f64, math.Float64bits(0)}
	minus := Scalar{f64, math.Float64bits(math.Copysign(0, -1))}
	single := Scalar{f32, 0}
	for range 2 { // the first time they are not kept
		d.PutScalar("cpu", zero, k.array("0")).Release()
		d.PutScalar("cpu", minus, k.array("-0")).Release()
	}
	check := func(dev string, s Scalar, want string) {
		t.Helper()
		r, ok := d.GetScalar(dev, s)
		if ok != (want != "") {
			t.Fatalf("%+v: found %v", s, ok)
		}
		if ok {
			if r.Value().contents != want || r.Value().closed.Load() != 0 {
				t.Errorf("%+v: got %+v", s, r.Value())
			}
			r.Release()
		}
	}
	check("cpu", minus, "-0")
	check("cpu", zero, "0")
	check("cpu", single, "")
	check("cuda:0", zero, "")

	d.PutScalar("cpu", zero, k.array("0 again")).Release() // a replacement
	check("cpu", zero, "0 again")
	if s := d.Stats(); s.Evictions != 0 || s.Scalars != 2 || s.Live != 2 {
		t.Errorf("stats %+v", s)
	}
	d.PutScalar("cpu", single, k.array("0f")).Release()
	check("cpu", single, "")
	check("cpu", minus, "-0")
	check("cpu", zero, "0 again")
	r := d.PutScalar("cpu", single, k.array("0f"))
	check("cpu", minus, "") // the oldest
	check("cpu", single, "0f")
	r.Release()
	want := DataStats{ScalarHits: 6, Misses: 4, Evictions: 1, Scalars: 2, Live: 2}
	if got := d.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestDataScalarsSeenOnce puts more scalars than there is room for, each once, among two that come again
// and again.
func TestDataScalarsSeenOnce(t *testing.T) {
	d, k := newTestData(t, DataOptions[array]{Scalars: 4})
	for i := range uint64(100) {
		for _, s := range []Scalar{{1, 1}, {1, 2}, {1, 100 + i}} {
			r, ok := d.GetScalar("cpu", s)
			if want := i > 1 && s.Bits < 100; ok != want {
				t.Fatalf("turn %d, %+v: found %v", i, s, ok)
			}
			if !ok {
				r = d.PutScalar("cpu", s, k.array("x"))
			}
			r.Release()
		}
	}
	if s := d.Stats(); s.Scalars != 2 || s.Live != 2 || s.Evictions != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDataThatKeepsNothing(t *testing.T) {
	d, k := newTestData(t, DataOptions[array]{MaxCost: -1, Scalars: -1})
	r := d.Put("cpu", Key{1, 1}, k.array("abc"), 1)
	s := d.PutScalar("cpu", Scalar{1, 1}, k.array("1"))
	if n := d.Stats().Live; n != 2 {
		t.Errorf("%d live, want the two in use", n)
	}
	r.Release()
	s.Release()
	if got, want := d.Stats(), (DataStats{Refusals: 1}); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDataClear(t *testing.T) {
	tests := []struct {
		name    string
		devices []string
		live    int64
	}{
		{"all", nil, 0},
		{"one", []string{"cpu"}, 2},
		{"unknown", []string{"tpu"}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, k := newTestData(t, DataOptions[array]{})
			for _, dev := range []string{"cpu", "cuda:0"} {
				d.Put(dev, Key{1, 1}, k.array("abc"), 1).Release()
				for range 2 {
					d.PutScalar(dev, Scalar{1, 1}, k.array("1")).Release()
				}
			}
			d.Clear(tt.devices...)
			if s := d.Stats(); s.Live != tt.live || s.Evictions != 0 {
				t.Errorf("stats %+v, want %d live", s, tt.live)
			}
			d.Put("cpu", Key{1, 1}, k.array("abc"), 1).Release()
			r, ok := d.Get("cpu", Key{1, 1}, is("abc"))
			if !ok {
				t.Fatal("the cache keeps nothing after Clear")
			}
			r.Release()
		})
	}
}

func TestClosedData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which checks that no goroutine is left
		d, k := newTestData(t, DataOptions[array]{})
		held := d.Put("cpu", Key{1, 1}, k.array("abc"), 1)
		d.Close()
		d.Close()
		if held.Value().closed.Load() != 0 {
			t.Error("released while in use")
		}
		held.Release()
		for _, dev := range []string{"cpu", "cuda:0"} { // known and new
			d.Put(dev, Key{1, 1}, k.array("abc"), 1).Release()
			for range 2 {
				d.PutScalar(dev, Scalar{1, 1}, k.array("1")).Release()
			}
			if _, ok := d.Get(dev, Key{1, 1}, is("abc")); ok {
				t.Error("a closed cache keeps arrays")
			}
			if _, ok := d.GetScalar(dev, Scalar{1, 1}); ok {
				t.Error("a closed cache keeps scalars")
			}
		}
		if n := d.Stats().Live; n != 0 {
			t.Errorf("%d live", n)
		}
	})
}

func TestDataStress(t *testing.T) {
	d, k := newTestData(t, DataOptions[array]{MaxCost: 6, Scalars: 3})
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(g, 9))
			for range 500 {
				dev := fmt.Sprint("dev", rng.IntN(2))
				id := rng.Uint64N(8)
				contents := fmt.Sprint(id, "v", rng.IntN(2)) // same key, other contents
				var r *Ref[array]
				var ok bool
				if rng.IntN(2) == 0 {
					if r, ok = d.Get(dev, Key{id, 1}, is(contents)); !ok {
						r = d.Put(dev, Key{id, 1}, k.array(contents), 1+int64(id%3))
					}
				} else {
					contents = fmt.Sprint(id)
					if r, ok = d.GetScalar(dev, Scalar{1, id}); !ok {
						r = d.PutScalar(dev, Scalar{1, id}, k.array(contents))
					}
				}
				runtime.Gosched()
				if a := r.Value(); a.contents != contents || a.closed.Load() != 0 {
					t.Errorf("got %q, closed %d times; want %q", a.contents, a.closed.Load(), contents)
				}
				r.Release()
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			d.Clear()
			runtime.Gosched()
		}
	})
	wg.Wait()
}
