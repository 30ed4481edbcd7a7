package dist

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loris-ml/loris/internal/atomicfile"
	"github.com/loris-ml/loris/internal/ir"
)

// WithMeasuredBuckets sets the bytes of WithBucketBytes to what is quickest here. Where the group begins
// the ranks time sums of some sizes, which takes part of a second in shared memory, and rank 0 keeps the
// result in a file by the engine, the number of ranks and the number of machines; later starts read it
// there. All ranks give the option; path, "" for loris/buckets.json in the user's cache folder, is rank
// 0's. Results are the same bits with any size.
func WithMeasuredBuckets(path string) Option {
	return func(w *world) { w.measured = &path }
}

// bucketSizes are those that are timed, each by moving bucketTotal bytes, or one bucket, bucketRounds times.
var bucketSizes = []int{256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20}

const (
	bucketTotal  = 8 << 20
	bucketRounds = 3
	// bucketSlack is by how much a smaller bucket may be slower than the quickest: more of it is sent while
	// the rest of the gradients is computed.
	bucketSlack = 1.1
)

// measureBuckets sets the bytes of a bucket, on all ranks. It is a part of the root group.
func (w *world) measureBuckets(ctx context.Context) error {
	machines, err := w.machines(ctx)
	if err != nil {
		return err
	}
	g, path := w.root, *w.measured
	key := fmt.Sprintf("%T, %d ranks on %d machines", g.engine, g.Size(), machines)
	kept := map[string]int{}
	if g.Rank() == 0 {
		if path, err = bucketFile(path); err != nil {
			return err
		}
		if kept, err = readBuckets(path); err != nil {
			return err
		}
	}
	chosen := binary.LittleEndian.AppendUint64(nil, uint64(max(kept[key], 0)))
	if err := g.engine.Broadcast(ctx, chosen, 0); err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint64(chosen); n != 0 {
		w.bucket = int(n)
		return nil
	}
	best, err := g.timeBuckets(ctx)
	if err != nil {
		return err
	}
	if g.Rank() == 0 {
		kept[key] = best
		if err := writeBuckets(path, kept); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint64(chosen, uint64(best))
	if err := g.engine.Broadcast(ctx, chosen, 0); err != nil {
		return err
	}
	w.bucket = int(binary.LittleEndian.Uint64(chosen))
	return nil
}

// machines counts the machines that the ranks are on, by their names.
func (w *world) machines(ctx context.Context) (int, error) {
	name, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash takes all
	all := make([]byte, 8*w.root.Size())
	if err := w.root.engine.AllGather(ctx, all, h.Sum(nil)); err != nil {
		return 0, err
	}
	found := map[string]bool{}
	for at := range slices.Chunk(all, 8) {
		found[string(at)] = true
	}
	return len(found), nil
}

// timeBuckets returns the smallest size that is about as quick as the quickest. What it returns may
// differ by rank.
func (g *Group) timeBuckets(ctx context.Context) (int, error) {
	out, in := aligned(bucketSizes[len(bucketSizes)-1]), aligned(bucketSizes[len(bucketSizes)-1])
	took := make([]time.Duration, len(bucketSizes))
	for i := range took {
		took[i] = math.MaxInt64
	}
	for range bucketRounds {
		for i, n := range bucketSizes {
			begun := time.Now()
			for at := 0; at < bucketTotal; at += n {
				if err := g.allReduce(ctx, out[:n], in[:n], ir.F32, "sum"); err != nil {
					return 0, err
				}
			}
			took[i] = min(took[i], time.Since(begun)*bucketTotal/time.Duration(max(bucketTotal, n)))
		}
	}
	quickest := slices.Min(took)
	return bucketSizes[slices.IndexFunc(took, func(d time.Duration) bool {
		return float64(d) <= bucketSlack*float64(quickest)
	})], nil
}

// bucketFile returns where sizes are kept.
func bucketFile(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the file of measured buckets: %w", err)
	}
	dir = filepath.Join(dir, "loris")
	return filepath.Join(dir, "buckets.json"), os.MkdirAll(dir, 0o755)
}

// readBuckets reads sizes by what they are for; none where there is no file, or one that says nothing.
func readBuckets(path string) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, err
	}
	kept := map[string]int{}
	if json.Unmarshal(text, &kept) != nil {
		return map[string]int{}, nil // it is measured and written anew
	}
	return kept, nil
}

// writeBuckets adds sizes to a file, which others may have written meanwhile.
func writeBuckets(path string, kept map[string]int) error {
	now, err := readBuckets(path)
	if err != nil {
		return err
	}
	maps.Copy(now, kept)
	return atomicfile.Write(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "\t")
		return enc.Encode(now)
	})
}
