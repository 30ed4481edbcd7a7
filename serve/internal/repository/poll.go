package repository

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Poll looks at the models on disk at an interval, until ctx ends, and serves what it
// finds. A change is taken when two looks in a row see the same files, so that one that
// is being written is not.
func (r *Repository) Poll(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := r.look(ctx); err != nil {
				r.options.Log.Error("the repository cannot be read", "err", err)
			}
		}
	}
}

// look is one look at all models.
func (r *Repository) look(ctx context.Context) error {
	names, err := r.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		e := r.entry(name)
		if e.changed(r.onDisk(e)) {
			if err := r.load(ctx, name, nil); err != nil {
				e.mu.Lock()
				e.failed = e.seen
				e.mu.Unlock()
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(*r.served.Load())) {
		if slices.Contains(names, name) {
			continue
		}
		var e *inference.Error
		if err := r.unload(name); err != nil && (!errors.As(err, &e) || e.Kind != inference.NotFound) {
			return err
		}
	}
	r.mu.Lock()
	r.selected = names
	r.mu.Unlock()
	return nil
}

// onDisk returns what changes when the files of a model do.
func (r *Repository) onDisk(e *entry) string {
	src, err := r.source(e.name)
	if err != nil {
		return err.Error()
	}
	want, _, err := r.plan(e, src, nil)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, p := range want {
		all = append(all, fmt.Sprint(p.fingerprint))
	}
	return strings.Join(all, "\n")
}

// changed reports whether what is on disk should be loaded: it is not what is served, nor
// what failed, and it is the same as at the last look.
func (e *entry) changed(now string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, n := range slices.Sorted(maps.Keys(e.loaded)) {
		all = append(all, fmt.Sprint(e.loaded[n].fingerprint))
	}
	settled := now == e.seen
	e.seen = now
	return settled && now != e.failed && now != strings.Join(all, "\n")
}
