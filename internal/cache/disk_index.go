package cache

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/loris-ml/loris/internal/filelock"
)

// The index lists the entries of a directory, so that keeping the bound needs no look at
// each of them. It is a log of records of one size, all numbers little-endian: first
//
//	 0  8  magic
//	 8  4  version of this format
//	12  4  zero
//	16  8  when the directory was last scanned, in Unix nanoseconds
//	24 32  a random number that tells this log from the one that it replaced
//	56  8  xxhash64 of the above
//
// and then, for each entry that was put or removed,
//
//	 0  8  1 for put, 2 for removed
//	 8  8  size of the file
//	16  8  recency when it was put, in Unix nanoseconds
//	24 32  key
//	56  8  xxhash64 of the above
//
// It is read and written under the lock of a file beside it. The directory is what counts: a
// record comes before its file, a record without a file costs nothing but a look when it is
// the oldest, and a log that is damaged, gone or older than rescanAge is made anew of a scan.
const (
	indexName    = ".index"
	indexLock    = ".lock"
	indexMagic   = "LORISIDX"
	indexVersion = 1
	recordLen    = 64
	recordPut    = 1
	recordGone   = 2
	// rescanAge is when an index is made anew although nothing is wrong with it: a crash of
	// the machine may have lost its end, and programs of other versions write none.
	rescanAge = 24 * time.Hour
	// lockWait bounds how long a Put waits for other processes. The entry is stored without
	// the lock, too; only the bound may be passed until the next scan.
	lockWait = 5 * time.Second
)

// errIndex says that an index must be made anew.
var errIndex = errors.New("cache: damaged index")

// index is what a process knows of the index of a directory. Its mutex is held by those who
// hold the lock of the directory.
type index struct {
	dir  string
	scan func() ([]DiskEntry, error)
	wait time.Duration // for the lock

	mu      sync.Mutex
	log     [32]byte // which log was read, and up to where
	end     int64
	entries map[DiskKey]*indexed
	order   recency
	total   int64
	scanned time.Time // when the directory was
}

// indexed is an entry in the index.
type indexed struct {
	DiskEntry
	at int // in the order
}

// recency is a heap of entries, the least recently used first.
type recency []*indexed

func (r recency) Len() int           { return len(r) }
func (r recency) Less(i, j int) bool { return r[i].Used.Before(r[j].Used) }
func (r recency) Swap(i, j int)      { r[i], r[j] = r[j], r[i]; r[i].at, r[j].at = i, j }
func (r *recency) Push(x any)        { e := x.(*indexed); e.at = len(*r); *r = append(*r, e) }
func (r *recency) Pop() any {
	last := len(*r) - 1
	e := (*r)[last]
	(*r)[last], *r = nil, (*r)[:last]
	return e
}

// locked calls fn with the lock of the directory and the index read. With rescan an index
// that is old is made anew before.
func (x *index) locked(rescan bool, fn func() error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	lock, err := os.OpenFile(filepath.Join(x.dir, indexLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), x.wait, fmt.Errorf("%s: another process holds the lock", lock.Name()))
	defer cancel()
	if err := filelock.Lock(ctx, lock); err != nil {
		return err
	}
	err = x.read()
	if errors.Is(err, errIndex) || err == nil && rescan && time.Since(x.scanned).Abs() > rescanAge {
		err = x.rebuild()
	}
	if err != nil {
		return err
	}
	return fn()
}

// read brings the index up to date. The error is errIndex if the log can't be used.
func (x *index) read() error {
	f, err := os.Open(filepath.Join(x.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return errIndex
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var head [recordLen]byte
	if _, err := f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if want := indexHeader(x.scanned, x.log); !sound(head[:]) || !bytes.Equal(head[:16], want[:16]) {
		return errIndex
	}
	if log := [32]byte(head[24:56]); log != x.log || info.Size() < x.end {
		x.forget()
		x.log, x.end, x.scanned = log, recordLen, time.Unix(0, int64(binary.LittleEndian.Uint64(head[16:])))
	}
	// A process that died may have left a part of a record; the next one overwrites it.
	whole := info.Size() / recordLen * recordLen
	tail := make([]byte, whole-x.end)
	if _, err := f.ReadAt(tail, x.end); err != nil && !(errors.Is(err, io.EOF) && len(tail) == 0) {
		return err
	}
	x.end = whole
	for ; len(tail) > 0; tail = tail[recordLen:] {
		if !sound(tail[:recordLen]) {
			return errIndex
		}
		x.apply(tail[:recordLen])
	}
	return nil
}

// forget drops what was read.
func (x *index) forget() {
	x.entries, x.order, x.total = map[DiskKey]*indexed{}, nil, 0
	x.log, x.end, x.scanned = [32]byte{}, 0, time.Time{}
}

// rebuild makes the index of what is in the directory.
func (x *index) rebuild() error {
	list, err := x.scan()
	if err != nil {
		return err
	}
	x.forget()
	for _, e := range list {
		x.set(e)
	}
	x.scanned = time.Now()
	return x.rewrite()
}

// rewrite replaces the log by one that has the entries there are.
func (x *index) rewrite() error {
	var log [32]byte
	_, _ = rand.Read(log[:]) // it never fails
	head := indexHeader(x.scanned, log)
	b := append(make([]byte, 0, recordLen*(1+len(x.entries))), head[:]...)
	for _, e := range x.entries {
		b = appendRecord(b, recordPut, e.DiskEntry)
	}
	// The name is not random: nobody else writes it under the lock.
	temp := filepath.Join(x.dir, indexName+".new")
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(x.dir, indexName)); err != nil {
		return err
	}
	x.log, x.end = log, int64(len(b))
	return nil
}

// write appends records, which were applied, to the log, or makes a new log when most of it
// is history.
func (x *index) write(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if x.end/recordLen > int64(2*len(x.entries)+1024) {
		return x.rewrite()
	}
	f, err := os.OpenFile(filepath.Join(x.dir, indexName), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(records, x.end)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		x.forget() // it is not what the log says
		return err
	}
	x.end += int64(len(records))
	return nil
}

// set notes an entry.
func (x *index) set(e DiskEntry) {
	if old := x.entries[e.Key]; old != nil {
		x.total += e.Size - old.Size
		old.DiskEntry = e
		heap.Fix(&x.order, old.at)
		return
	}
	n := &indexed{DiskEntry: e}
	x.entries[e.Key] = n
	x.total += e.Size
	heap.Push(&x.order, n)
}

// drop forgets an entry.
func (x *index) drop(key DiskKey) {
	if e := x.entries[key]; e != nil {
		heap.Remove(&x.order, e.at)
		delete(x.entries, key)
		x.total -= e.Size
	}
}

// apply does what a record says.
func (x *index) apply(r []byte) {
	key := DiskKey(r[24:56])
	switch binary.LittleEndian.Uint64(r) {
	case recordPut:
		x.set(DiskEntry{key, int64(binary.LittleEndian.Uint64(r[8:])), time.Unix(0, int64(binary.LittleEndian.Uint64(r[16:])))})
	case recordGone:
		x.drop(key)
	}
}

func appendRecord(b []byte, what uint64, e DiskEntry) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, what)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Used.UnixNano()))
	b = append(b, e.Key[:]...)
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[at:]))
}

func indexHeader(scanned time.Time, log [32]byte) [recordLen]byte {
	var h [recordLen]byte
	copy(h[:], indexMagic)
	binary.LittleEndian.PutUint32(h[8:], indexVersion)
	binary.LittleEndian.PutUint64(h[16:], uint64(scanned.UnixNano()))
	copy(h[24:], log[:])
	binary.LittleEndian.PutUint64(h[56:], xxhash.Sum64(h[:56]))
	return h
}

// sound reports whether a record is as it was written.
func sound(r []byte) bool { return xxhash.Sum64(r[:56]) == binary.LittleEndian.Uint64(r[56:]) }
