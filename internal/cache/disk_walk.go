package cache

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/filelock"
)

// DiskEntry describes an entry on disk.
type DiskEntry struct {
	Key  DiskKey
	Size int64     // of the file, header included
	Used time.Time // when it was last put or got
}

// DiskStats describes a disk cache: what is on disk now, and what happened
// through this Disk since it was opened.
type DiskStats struct {
	Entries  int
	Bytes    int64
	MaxBytes int64 // negative if there is no bound
	Temps    int   // temporary files, in use or left behind

	Hits      uint64
	Misses    uint64 // including damaged entries
	Puts      uint64
	Damaged   uint64 // entries dropped because they were damaged
	Evictions uint64 // entries removed to keep the bound
}

// DiskReport is the result of Verify.
type DiskReport struct {
	Checked int   // entries read
	Bytes   int64 // their size
	Damaged []*DamageError
}

// Stat describes the cache.
func (d *Disk) Stat() (DiskStats, error) {
	entries, temps, err := d.scan()
	if err != nil {
		return DiskStats{}, fmt.Errorf("cache: stat disk cache: %w", err)
	}
	return DiskStats{
		Entries:   len(entries),
		Bytes:     totalSize(entries),
		MaxBytes:  d.maxBytes,
		Temps:     len(temps),
		Hits:      d.hits.Load(),
		Misses:    d.misses.Load(),
		Puts:      d.puts.Load(),
		Damaged:   d.damaged.Load(),
		Evictions: d.evictions.Load(),
	}, nil
}

// List returns the entries, most recently used first.
func (d *Disk) List() ([]DiskEntry, error) {
	entries, _, err := d.scan()
	if err != nil {
		return nil, fmt.Errorf("cache: list disk cache: %w", err)
	}
	slices.Reverse(entries)
	return entries, nil
}

// Verify reads all entries, removes the damaged ones and reports them. It goes
// on after an entry that can't be read and returns such errors joined; when ctx
// ends it returns ctx.Err() and what was found so far.
func (d *Disk) Verify(ctx context.Context) (DiskReport, error) {
	var report DiskReport
	entries, _, err := d.scan()
	if err != nil {
		return report, fmt.Errorf("cache: verify disk cache: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		damage, err := d.verify(ctx, e.Key)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil && errors.Is(err, ctx.Err()) {
			return report, err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cache: verify disk entry %v: %w", e.Key, err))
		}
		if damage != nil {
			report.Damaged = append(report.Damaged, damage)
		}
		report.Checked++
		report.Bytes += e.Size
	}
	return report, errors.Join(errs...)
}

// verify reads an entry and removes it if it is damaged. The error is that of
// reading or removing.
func (d *Disk) verify(ctx context.Context, key DiskKey) (*DamageError, error) {
	f, err := d.openEntry(key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = readEntry(ctx, f, key, func(int64) io.Writer { return io.Discard })
	var damage *DamageError
	if errors.As(err, &damage) {
		return damage, d.drop(f)
	}
	return nil, err
}

// Clear removes all entries, and the temporary files left behind.
func (d *Disk) Clear(ctx context.Context) error {
	entries, temps, err := d.scan()
	if err == nil {
		err = d.removeOldTemps(temps)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err = errors.Join(err, removeFile(d.path(e.Key)))
	}
	if len(entries) > 0 {
		err = errors.Join(err, d.index.locked(false, d.index.rebuild))
	}
	if err != nil {
		return fmt.Errorf("cache: clear disk cache: %w", err)
	}
	return nil
}

// evict removes the entries used least recently until the rest is within the bound, but
// never keep. It is called with the index locked.
func (d *Disk) evict(keep DiskKey) (err error) {
	x := &d.index
	var gone []byte
	var aside []DiskEntry // to stay: keep, and what can't be removed
	for d.maxBytes >= 0 && x.total > d.maxBytes && len(x.order) > 0 {
		e := x.order[0].DiskEntry
		if e.Key == keep {
			aside = append(aside, e)
			heap.Pop(&x.order)
			continue
		}
		info, statErr := os.Lstat(d.path(e.Key))
		if statErr == nil && info.ModTime().After(e.Used) { // somebody got it meanwhile
			x.set(DiskEntry{e.Key, info.Size(), info.ModTime()})
			continue
		}
		if statErr == nil {
			if statErr = os.Remove(d.path(e.Key)); statErr == nil {
				d.evictions.Add(1)
			}
		}
		if statErr != nil && !errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, statErr)
			aside = append(aside, e)
			heap.Pop(&x.order)
			continue
		}
		x.drop(e.Key)
		gone = appendRecord(gone, recordGone, e)
	}
	for _, e := range aside {
		heap.Push(&x.order, x.entries[e.Key])
	}
	return errors.Join(err, x.write(gone))
}

// scan returns the entries, least recently used first, and the paths of the temporary files.
func (d *Disk) scan() (entries []DiskEntry, temps []string, err error) {
	if temps, err = d.temps(); err != nil {
		return nil, nil, err
	}
	files, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the whole cache
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		key, isEntry := keyOfFile(file.Name())
		if !file.Type().IsRegular() || !isEntry && !strings.HasPrefix(file.Name(), diskTempStart) {
			continue
		}
		info, err := file.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return nil, nil, err
		case isEntry:
			entries = append(entries, DiskEntry{Key: key, Size: info.Size(), Used: info.ModTime()})
		default:
			temps = append(temps, filepath.Join(d.dir, file.Name())) // of versions without tempDir
		}
	}
	slices.SortStableFunc(entries, func(a, b DiskEntry) int { return a.Used.Compare(b.Used) })
	return entries, temps, nil
}

// cleanTemps removes temporary files that processes left behind.
func (d *Disk) cleanTemps() error {
	temps, err := d.temps()
	return errors.Join(err, d.removeOldTemps(temps))
}

// temps returns the paths of the temporary files.
func (d *Disk) temps() ([]string, error) {
	files, err := os.ReadDir(d.tempDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var temps []string
	for _, f := range files {
		if f.Type().IsRegular() && strings.HasPrefix(f.Name(), diskTempStart) {
			temps = append(temps, filepath.Join(d.tempDir(), f.Name()))
		}
	}
	return temps, err
}

// removeOldTemps removes those temporary files that are old and that no process writes.
func (d *Disk) removeOldTemps(temps []string) error {
	var errs []error
	for _, t := range temps {
		errs = append(errs, filelock.RemoveStale(t, d.tempAge))
	}
	return errors.Join(errs...)
}

func totalSize(entries []DiskEntry) int64 {
	var n int64
	for _, e := range entries {
		n += e.Size
	}
	return n
}
