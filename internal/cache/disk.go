package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/internal/filelock"
)

// Defaults of DiskOptions.
const (
	DefaultDiskBytes   = 4 << 30
	DefaultDiskTempAge = time.Hour
)

// ErrTooLarge is returned for an entry larger than the whole disk cache may be.
var ErrTooLarge = errors.New("cache: entry larger than the disk cache")

// DiskOptions configures a disk cache. The zero value is ready to use.
type DiskOptions struct {
	// MaxBytes bounds the sizes of all entries together. Zero means
	// DefaultDiskBytes; a negative number means no bound.
	MaxBytes int64

	// TempAge is the age from which a temporary file counts as left behind by a
	// process that died. Zero means DefaultDiskTempAge.
	TempAge time.Duration
}

// Disk keeps artefacts as files in one directory, which several processes may
// share. An entry appears whole or not at all, whenever a process dies, and is
// checked when it is read. Recency of use, which is the modification time of
// the file, decides what is removed to keep the bound. Files that are not named
// as Disk names them are left alone.
//
// An index beside the entries says how much there is and what is oldest, so that a Put
// costs the same in a full directory. Processes take turns to write it, for some
// microseconds; one that died leaves no lock.
//
// Nothing guards an entry against another process replacing or removing it;
// the worst that can follow is that an artefact is made again.
type Disk struct {
	dir      string
	maxBytes int64 // negative: no bound
	tempAge  time.Duration

	index index

	lastUse atomic.Int64 // the latest recency given out, in Unix nanoseconds

	hits, misses, puts, damaged, evictions atomic.Uint64

	ownerOf      func(fs.FileInfo) (uid int, ok bool)
	beforeRename func(temp string) // for tests; nil otherwise
}

// OpenDisk opens the cache in dir, making the directory if need be, and removes
// temporary files left behind there. What lies in it may be code that runs, so on Unix
// a directory that others than this user and root own or may write to is refused, with
// an error that wraps [fs.ErrPermission], and so is one below a directory that others
// own, or that everybody may change (unless it has the sticky bit, as /tmp). Entries of
// others are refused when they are read.
func OpenDisk(dir string, o DiskOptions) (*Disk, error) { return openDisk(dir, o, ownerOf) }

func openDisk(dir string, o DiskOptions, ownerOf func(fs.FileInfo) (int, bool)) (*Disk, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultDiskBytes
	}
	if o.TempAge <= 0 {
		o.TempAge = DefaultDiskTempAge
	}
	d := &Disk{dir: dir, maxBytes: o.MaxBytes, tempAge: o.TempAge, ownerOf: ownerOf}
	if err := d.makeDir(); err != nil {
		return nil, fmt.Errorf("cache: open disk cache: %w", err)
	}
	if f, err := os.Open(dir); err != nil {
		return nil, fmt.Errorf("cache: open disk cache: %w", err)
	} else if err := f.Close(); err != nil {
		return nil, fmt.Errorf("cache: open disk cache: %w", err)
	}
	d.index = index{dir: dir, wait: lockWait, scan: func() ([]DiskEntry, error) {
		entries, temps, err := d.scan()
		return entries, errors.Join(err, d.removeOldTemps(temps))
	}}
	// A cache that can't be written to can still be read.
	_ = errors.Join(d.cleanTemps(), d.index.locked(true, func() error { return d.evict(DiskKey{}) }))
	return d, nil
}

// makeDir makes the directory if it is not there, and checks who may write to it.
func (d *Disk) makeDir() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	return d.trustDir()
}

// Dir returns the directory.
func (d *Disk) Dir() string { return d.dir }

// Get returns the payload of the entry and makes it the most recently used, or
// returns false if there is none. A damaged entry is removed, counted, and not
// there. An error means that the entry could not be read, or is not to be trusted.
func (d *Disk) Get(key DiskKey) ([]byte, bool, error) {
	f, err := d.openEntry(key)
	if errors.Is(err, fs.ErrNotExist) {
		d.misses.Add(1)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cache: get disk entry: %w", err)
	}
	defer f.Close()
	var payload *bytes.Buffer
	err = readEntry(context.Background(), f, key, func(length int64) io.Writer {
		payload = bytes.NewBuffer(make([]byte, 0, length))
		return payload
	})
	var damage *DamageError
	if errors.As(err, &damage) {
		d.misses.Add(1)
		if err := d.drop(f); err != nil {
			return nil, false, fmt.Errorf("cache: remove damaged disk entry: %w", err)
		}
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("cache: get disk entry %v: %w", key, err)
	}
	d.hits.Add(1)
	d.touch(f.Name())
	return payload.Bytes(), true, nil
}

// Put stores the payload under the key, replacing the entry there was, and
// removes the entries used least recently if the bound demands it. Nothing is synced
// to the disk: a crash of the machine may lose or damage what was put shortly before, which
// a checksum tells. A payload larger than the bound is refused with [ErrTooLarge].
func (d *Disk) Put(key DiskKey, payload []byte) error {
	size := diskHeaderLen + int64(len(payload))
	if d.maxBytes >= 0 && size > d.maxBytes {
		return fmt.Errorf("%w: %d of %d bytes", ErrTooLarge, size, d.maxBytes)
	}
	temp, used, err := d.writeTemp(key, payload)
	if err != nil {
		return fmt.Errorf("cache: put disk entry: %w", err)
	}
	if d.beforeRename != nil {
		d.beforeRename(temp)
	}
	placed, err := d.place(temp, DiskEntry{key, size, used})
	if !placed {
		os.Remove(temp)
		return fmt.Errorf("cache: put disk entry: %w", err)
	}
	d.puts.Add(1)
	if err != nil {
		return fmt.Errorf("cache: prune disk cache: %w", err)
	}
	return nil
}

// place gives the file temp its name and keeps the bound. An error with placed is one of the
// index or of other entries.
func (d *Disk) place(temp string, e DiskEntry) (placed bool, err error) {
	to := d.path(e.Key)
	locked := false
	err = d.index.locked(false, func() error {
		locked = true
		d.index.set(e)
		if err := d.index.write(appendRecord(nil, recordPut, e)); err != nil {
			return err
		}
		if err := os.Rename(temp, to); err != nil {
			d.index.drop(e.Key)
			return errors.Join(err, d.index.write(appendRecord(nil, recordGone, e)))
		}
		placed = true
		return errors.Join(d.evict(e.Key), d.cleanTemps())
	})
	if !placed && !locked { // the bound is kept by who has an index
		if renameErr := os.Rename(temp, to); renameErr != nil {
			return false, errors.Join(renameErr, err)
		}
		placed = true
	}
	return placed, err
}

// Remove removes the entry if there is one. It is meant for entries that are
// whole but that the caller can't use.
func (d *Disk) Remove(key DiskKey) error {
	if err := removeFile(d.path(key)); err != nil {
		return fmt.Errorf("cache: remove disk entry: %w", err)
	}
	return nil
}

func (d *Disk) path(key DiskKey) string { return filepath.Join(d.dir, key.fileName()) }

// openEntry opens the file of an entry, which is a plain one that nobody else wrote.
func (d *Disk) openEntry(key DiskKey) (*os.File, error) {
	f, err := os.OpenFile(d.path(key), openFlags, 0)
	if err != nil {
		return nil, err
	}
	if err := d.trustEntry(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// writeTemp writes a file with the entry, ready to be renamed, and returns its recency.
func (d *Disk) writeTemp(key DiskKey, payload []byte) (name string, used time.Time, err error) {
	f, err := d.createTemp()
	if errors.Is(err, fs.ErrNotExist) { // the first one, or somebody removed the whole cache
		if err := errors.Join(d.makeDir(), os.MkdirAll(d.tempDir(), 0o700)); err != nil {
			return "", used, err
		}
		f, err = d.createTemp()
	}
	if err != nil {
		return "", used, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = writeEntry(f, key, payload)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", used, err
	}
	return f.Name(), d.touch(f.Name()), nil
}

// tempDir is the directory of files that are being written, which is small.
func (d *Disk) tempDir() string { return filepath.Join(d.dir, diskTemps) }

// createTemp makes a file that is locked for as long as it is written.
func (d *Disk) createTemp() (*os.File, error) {
	f, err := os.CreateTemp(d.tempDir(), diskTempStart+"*")
	if err != nil {
		return nil, err
	}
	if _, err := filelock.Try(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// touch makes the file the most recently used. The clock of the file system is
// too coarse to order entries that follow each other closely, so times come
// from here and never repeat within the process. Failing is no more than a
// wrong order, and to be expected where the cache is read-only.
func (d *Disk) touch(name string) time.Time {
	now := time.Now().UnixNano()
	for {
		last := d.lastUse.Load()
		now = max(now, last+1)
		if d.lastUse.CompareAndSwap(last, now) {
			break
		}
	}
	t := time.Unix(0, now)
	_ = os.Chtimes(name, t, t)
	return t
}

// drop counts and removes the damaged entry open as f, unless another process
// has put a new one in its place.
func (d *Disk) drop(f *os.File) error {
	d.damaged.Add(1)
	there, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if read, err := f.Stat(); err != nil || !os.SameFile(read, there) {
		return err
	}
	return removeFile(f.Name())
}

// removeFile removes the file if it is there.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
