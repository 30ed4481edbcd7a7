package data

import (
	"errors"
	"fmt"
	"time"
)

// ErrState says that a loader cannot resume from a state, which is of another dataset or of other
// options.
var ErrState = errors.New("the state does not fit the loader")

// State is where a loader stands: Epoch and Batch of the next batch, and what decides which samples
// that has. It is small, and JSON keeps it.
type State struct {
	Epoch uint64 `json:"epoch"`
	Batch int    `json:"batch"` // number within the epoch, of those that Next returned

	Samples  int    `json:"samples"` // of the dataset
	Size     int    `json:"size"`    // of batches
	Seed     uint64 `json:"seed"`
	Shuffle  bool   `json:"shuffle"`
	DropLast bool   `json:"drop_last"`
	Ranks    int    `json:"ranks"`
}

// State returns where the loader stands. Batches that were made ahead but not returned do not
// count. The state of one rank is that of all.
func (l *Loader[T, B]) State() State {
	return State{Epoch: l.epoch, Batch: l.batch, Samples: l.ds.Len(), Size: l.size, Seed: l.cfg.seed,
		Shuffle: l.cfg.shuffle, DropLast: l.cfg.dropLast, Ranks: l.cfg.ranks}
}

// Resume makes the loader go on where another stood, or where it stood itself: the batches that
// follow are, bit for bit, those that would have followed there. A state of another number of
// samples or of other options is an error wrapping ErrState that names the first difference, and
// changes nothing.
func (l *Loader[T, B]) Resume(s State) error {
	own := l.State()
	own.Epoch, own.Batch = s.Epoch, s.Batch
	for _, d := range []struct {
		what       string
		state, own any
	}{
		{"samples", s.Samples, own.Samples}, {"batch size", s.Size, own.Size}, {"seed", s.Seed, own.Seed},
		{"shuffle", s.Shuffle, own.Shuffle}, {"drop last", s.DropLast, own.DropLast}, {"ranks", s.Ranks, own.Ranks},
	} {
		if d.state != d.own {
			return fmt.Errorf("data: %w: %s is %v in the state, %v in the loader", ErrState, d.what, d.state, d.own)
		}
	}
	if s.Batch < 0 || s.Batch > l.Batches() {
		return fmt.Errorf("data: %w: batch %d of %d", ErrState, s.Batch, l.Batches())
	}
	l.epoch, l.batch = s.Epoch, s.Batch
	l.mu.Lock()
	l.queue = nil
	l.mu.Unlock()
	return nil
}

// Stats says how long a training program has waited for its data.
type Stats struct {
	Batches int           // that Next returned
	Waited  time.Duration // in Next, for batches that were not made yet
	Elapsed time.Duration // from the first call of Next to the end of the last one
}

// WaitShare returns the part of the time that was spent waiting, from 0 to 1.
func (s Stats) WaitShare() float64 {
	if s.Elapsed == 0 {
		return 0
	}
	return float64(s.Waited) / float64(s.Elapsed)
}

// Stats returns the counts since the loader was made.
func (l *Loader[T, B]) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}
