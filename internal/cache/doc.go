// Package cache keeps what is expensive to make again: compiled computations
// in memory ([Computations]), device copies of host data ([Data]) and compiled
// artefacts on disk ([Disk]).
//
// The two memory caches hand out references. A cached value belongs to the
// cache and to every [Ref] that was handed out; it is closed exactly once, when
// the cache has dropped it and the last Ref has been released, whichever comes
// last. Both decide what to keep with ristretto's TinyLFU admission, bounded by
// bytes.
//
// Caches call back into the user's code (builders, Close, Release, OnEvict)
// with no lock held, so these may use the cache, with one exception: a callback
// must not wait for the build, or for the Close of the cache, that it runs in.
package cache
