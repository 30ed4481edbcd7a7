package cache

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Defaults of DataOptions.
const (
	DefaultDataCost    = 256 << 20
	DefaultDataScalars = 1024
)

// DataOptions configures a data cache. The zero value is ready to use.
type DataOptions[V any] struct {
	// MaxCost bounds the bytes kept on each device. Zero means DefaultDataCost;
	// a negative number keeps no arrays.
	MaxCost int64

	// Scalars is how many scalars are kept on each device, least recently used
	// first out. Zero means DefaultDataScalars; a negative number means none.
	Scalars int

	// Release, if not nil, is called exactly once for every value put, after
	// the cache has dropped it and its last user has released it.
	Release func(V)
}

// Scalar is a scalar as the cache compares it: by type and bits, so that 0 and
// -0, or two NaNs with different payloads, are different scalars.
type Scalar struct {
	DType byte   // any code that tells element types apart
	Bits  uint64 // the value's bits
}

// DataStats is a snapshot of the counts of a data cache, over all devices.
type DataStats struct {
	Hits       uint64 // arrays found and confirmed
	ScalarHits uint64
	Misses     uint64 // arrays and scalars not found or not confirmed
	Mismatches uint64 // of those, arrays found whose contents differed
	Evictions  uint64 // arrays and scalars dropped to make room
	Refusals   uint64 // arrays not let in

	Cost    int64 // bytes of arrays kept
	Scalars int   // scalars kept
	Live    int64 // values put and not yet released
}

// Data keeps device copies (of type V) of host arrays and scalars that were
// seen before, for devices named by K. What it hands out is shared, so it must
// not be written to or donated. Its methods may be called from any number of
// goroutines.
type Data[K comparable, V any] struct {
	maxCost int64
	scalars int
	owner   owner[V]

	// devices is replaced, never changed. mu serialises that.
	devices atomic.Pointer[map[K]*deviceData[V]]
	mu      sync.Mutex
	closed  bool // guarded by mu

	hits, scalarHits, misses, mismatches atomic.Uint64
	scalarEvictions, refusals            atomic.Uint64
}

// deviceData is the cache of one device.
type deviceData[V any] struct {
	arrays *store[V]

	mu      sync.Mutex // guards what follows
	closed  bool
	scalars *lru[Scalar, *Ref[V]]
	put     seen[Scalar] // the last that were put without being kept
}

// NewData returns an empty cache. It runs goroutines of its own, for every
// device used, until Close.
func NewData[K comparable, V any](o DataOptions[V]) *Data[K, V] {
	if o.MaxCost == 0 {
		o.MaxCost = DefaultDataCost
	}
	if o.Scalars == 0 {
		o.Scalars = DefaultDataScalars
	}
	d := &Data[K, V]{maxCost: o.MaxCost, scalars: o.Scalars, owner: owner[V]{close: o.Release}}
	d.devices.Store(&map[K]*deviceData[V]{})
	return d
}

// Get returns a reference to the device's copy of an array whose contents have
// the hash key, which the caller must release, or false if there is none. equal
// must compare the contents behind the copy with the caller's: a copy for which
// it says no, because the hashes collide or either side has been written to
// since, is not returned, and the Put that follows replaces it.
func (d *Data[K, V]) Get(device K, key Key, equal func(V) bool) (*Ref[V], bool) {
	if dev := d.lookup(device); dev != nil {
		if r := dev.arrays.get(key); r != nil {
			if equal(r.value) {
				d.hits.Add(1)
				return r, true
			}
			r.Release()
			d.mismatches.Add(1)
		}
	}
	d.misses.Add(1)
	return nil, false
}

// Put hands value, the device's copy of the array whose contents have the hash
// key and which takes cost bytes there, to the cache and returns a reference to
// it for the caller to release. The cache may decide not to keep it. By the
// time Put returns, copies that it displaced and nobody uses are released.
func (d *Data[K, V]) Put(device K, key Key, value V, cost int64) *Ref[V] {
	r := d.owner.newRef(key, value, cost)
	dev := d.device(device)
	if dev == nil {
		return r
	}
	if !dev.arrays.offer(r) {
		d.refusals.Add(1)
	}
	dev.arrays.drain()
	return r
}

// GetScalar returns a reference to the device's copy of the scalar, which the
// caller must release, or false if there is none. It does not allocate.
func (d *Data[K, V]) GetScalar(device K, s Scalar) (*Ref[V], bool) {
	if dev := d.lookup(device); dev != nil {
		dev.mu.Lock()
		r, ok := dev.scalars.get(s)
		if ok {
			r.Retain()
		}
		dev.mu.Unlock()
		if ok {
			d.scalarHits.Add(1)
			return r, true
		}
	}
	d.misses.Add(1)
	return nil, false
}

// PutScalar hands value, the device's copy of the scalar, to the cache and
// returns a reference to it for the caller to release. It replaces the copy
// that the cache had, if any. A scalar that was not put before is not kept: one
// that changes with each step, as a rate does, would drive out those that stay,
// and leave as many copies to the garbage collector as the cache has places.
func (d *Data[K, V]) PutScalar(device K, s Scalar, value V) *Ref[V] {
	r := d.owner.newRef(Key{Lo: s.Bits, Hi: uint64(s.DType)}, value, 1)
	dev := d.device(device)
	if dev == nil {
		return r
	}
	dev.mu.Lock()
	if dev.closed || !dev.put.again(s) {
		dev.mu.Unlock()
		return r
	}
	r.Retain()
	out, displaced := dev.scalars.put(s, r)
	dev.mu.Unlock()
	if displaced {
		if out.key != r.key { // neither a replacement nor r itself
			d.scalarEvictions.Add(1)
		}
		out.Release()
	}
	return r
}

// Clear drops what is kept on the devices, or on all devices if none is given.
// Values in use are released with their last reference.
func (d *Data[K, V]) Clear(devices ...K) {
	all := *d.devices.Load()
	if len(devices) == 0 {
		for _, dev := range all {
			dev.empty(false)
		}
		return
	}
	for _, k := range devices {
		if dev := all[k]; dev != nil {
			dev.empty(false)
		}
	}
}

// Close drops everything. The cache keeps nothing from then on; Get finds
// nothing, and Put returns references as before. Calling Close again has no
// effect.
func (d *Data[K, V]) Close() {
	d.mu.Lock()
	d.closed = true
	all := *d.devices.Load()
	d.mu.Unlock()
	for _, dev := range all {
		dev.empty(true)
	}
}

// Stats returns the counts so far.
func (d *Data[K, V]) Stats() DataStats {
	s := DataStats{
		Hits:       d.hits.Load(),
		ScalarHits: d.scalarHits.Load(),
		Misses:     d.misses.Load(),
		Mismatches: d.mismatches.Load(),
		Evictions:  d.scalarEvictions.Load(),
		Refusals:   d.refusals.Load(),
		Live:       d.owner.live.Load(),
	}
	for _, dev := range *d.devices.Load() {
		s.Evictions += dev.arrays.evictions.Load()
		s.Cost += dev.arrays.cost()
		dev.mu.Lock()
		s.Scalars += dev.scalars.len()
		dev.mu.Unlock()
	}
	return s
}

// lookup returns the device's cache, or nil if it has none.
func (d *Data[K, V]) lookup(device K) *deviceData[V] {
	return (*d.devices.Load())[device]
}

// device returns the device's cache, making it at the first call, or nil after
// Close.
func (d *Data[K, V]) device(device K) *deviceData[V] {
	if dev := d.lookup(device); dev != nil {
		return dev
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := *d.devices.Load()
	if dev := old[device]; dev != nil || d.closed {
		return dev
	}
	devices := maps.Clone(old)
	dev := &deviceData[V]{
		arrays:  newStore[V](d.maxCost, nil),
		scalars: newLRU[Scalar, *Ref[V]](d.scalars),
		put:     seen[Scalar]{n: max(d.scalars, 0)},
	}
	devices[device] = dev
	d.devices.Store(&devices)
	return dev
}

// empty drops everything, and for good keeps nothing from then on.
func (dev *deviceData[V]) empty(forGood bool) {
	dev.arrays.empty(forGood)
	dev.mu.Lock()
	dev.closed = dev.closed || forGood
	dropped := dev.scalars.clear()
	dev.put.forget()
	dev.mu.Unlock()
	for _, r := range dropped {
		r.Release()
	}
}
