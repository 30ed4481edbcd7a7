package repository

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// idleReason is what the index says of a version that was unloaded to keep within the budget.
const idleReason = "idle: unloaded to keep within the memory budget; the next request loads it again"

// size returns the bytes of the files that a loaded version holds.
func (v files) size() (n int64, err error) {
	for _, path := range []string{v.model, v.weights} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

// memory returns what a version holds: its files, and the sets of weights that it got since.
func (v *version) memory() int64 {
	if v.idle {
		return 0
	}
	return v.size + v.model.AddedBytes()
}

// lockLoads has one load at a time make room for itself, if there is a budget. It is taken before
// the mu of any entry.
func (r *Repository) lockLoads() (unlock func()) {
	if r.options.MemoryBudget == 0 {
		return func() {}
	}
	r.loads.Lock()
	return r.loads.Unlock
}

// resident is a loaded version with its entry.
type resident struct {
	*version
	entry *entry
}

// makeRoom unloads idle versions until another one that holds size bytes fits into the budget; the
// one that it replaces is on its way out and does not count. The caller has locked the loads and
// e.mu.
func (r *Repository) makeRoom(ctx context.Context, e *entry, number string, size int64) error {
	budget := r.options.MemoryBudget
	if budget == 0 {
		return nil
	}
	if size > budget {
		return inference.Errorf(inference.ResourceExhausted, "its files have %s, more than the memory budget of %s", humanize.IBytes(uint64(size)), humanize.IBytes(uint64(budget)))
	}
	var all []resident
	for name, m := range *r.served.Load() {
		for _, v := range m.byNumber {
			if !v.idle && (name != e.name || v.number != number) {
				all = append(all, resident{v, r.entry(name)})
			}
		}
	}
	slices.SortFunc(all, func(a, b resident) int {
		return cmp.Or(cmp.Compare(min(a.users.Load(), 2), min(b.users.Load(), 2)), a.lastUsed().Compare(b.lastUsed()))
	})
	free := budget - size
	for _, v := range all {
		free -= v.memory()
	}
	deadline := time.Now().Add(r.options.LoadWait)
	var stay []string
	for _, v := range all {
		if free >= 0 {
			break
		}
		held := v.memory()
		if why := r.sleep(ctx, e, v, deadline); why != "" {
			stay = append(stay, fmt.Sprintf("%s version %s (%s)", v.name, v.number, why))
			continue
		}
		free += held
	}
	if free < 0 {
		return &inference.Error{
			Kind: inference.Unavailable, RetryAfter: time.Second,
			Msg: fmt.Sprintf("it does not fit into the memory budget of %s beside %s", humanize.IBytes(uint64(budget)), strings.Join(stay, ", ")),
		}
	}
	return nil
}

// sleep unloads a version when its requests are answered, and leaves a stand-in that has requests
// wait for it to be loaded again. It returns why it cannot. loading is the entry whose mu the caller
// has.
func (r *Repository) sleep(ctx context.Context, loading *entry, v resident, deadline time.Time) (why string) {
	e := v.entry
	if e != loading {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	n := v.files.number
	if e.loaded[n] != v.version {
		return "being replaced"
	}
	if !v.model.Reopens() {
		return "has a state or weights that are in no file"
	}
	r.exchange(e, n, v.asIdle())
	for !v.users.CompareAndSwap(1, 0) {
		if r.stopping.Load() || ctx.Err() != nil || time.Now().After(deadline) {
			r.exchange(e, n, v.version)
			return "has requests"
		}
		time.Sleep(time.Millisecond)
	}
	if !v.model.Reopens() { // a request has changed its weights meanwhile
		v.users.Store(1)
		r.exchange(e, n, v.version)
		return "has weights that are in no file"
	}
	if err := v.model.Close(); err != nil {
		r.options.Log.Error("a model cannot be closed", "model", v.name, "version", v.number, "err", err)
	}
	v.stats.slept()
	r.setIndex(e, n, inference.StateReady, idleReason)
	r.options.Log.Info("unloaded to keep within the memory budget", "model", v.name, "version", v.number)
	return ""
}

// exchange has requests find another version in the place of one, of which nothing else changes. The
// caller has e.mu.
func (r *Repository) exchange(e *entry, n int64, v *version) {
	e.loaded = maps.Clone(e.loaded)
	e.loaded[n] = v
	r.serve(e, e.loaded)
}

// asIdle returns what stands for a version that is not loaded: all that is known of it.
func (v *version) asIdle() *version {
	return &version{
		name: v.name, number: v.number, files: v.files, given: v.given, size: v.size, model: v.model.Description(), config: v.config, labels: v.labels,
		fingerprint: v.fingerprint, stats: v.stats, opened: v.opened, idle: true, retired: make(chan struct{}),
	}
}

// lastUsed is when a request was answered, or the version loaded.
func (v *version) lastUsed() time.Time {
	v.stats.mu.Lock()
	defer v.stats.mu.Unlock()
	if v.stats.last.After(v.opened) {
		return v.stats.last
	}
	return v.opened
}

// wake loads an idle version again, once for all requests that wait for it. They wait as long as
// their contexts and LoadWait allow; the load goes on.
func (r *Repository) wake(ctx context.Context, v *version) error {
	done := r.waking.DoChan(v.name+"/"+v.number, func() (any, error) { return nil, r.loadAgain(context.WithoutCancel(ctx), v) })
	t := time.NewTimer(r.options.LoadWait)
	defer t.Stop()
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return inference.AsError(ctx.Err())
	case <-t.C:
		return &inference.Error{
			Kind: inference.Unavailable, RetryAfter: time.Second,
			Msg: fmt.Sprintf("model %q version %s was idle and is still being loaded again after %v", v.name, v.number, r.options.LoadWait),
		}
	}
}

// loadAgain loads what an idle version stands for, as it is on disk now. Where something else has
// taken its place meanwhile it does nothing.
func (r *Repository) loadAgain(ctx context.Context, idle *version) error {
	defer r.lockLoads()()
	e := r.entry(idle.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	n := idle.files.number
	if e.loaded[n] != idle {
		return nil
	}
	if r.stopping.Load() {
		return errStopping()
	}
	p := planned{files: idle.files}
	var err error
	if p.fingerprint, err = p.files.fingerprint(); err == nil {
		p.fingerprint.config = idle.fingerprint.config
		var v *version
		if v, err = r.open(ctx, e, p, idle.given); err == nil {
			v.stats = idle.stats
			now := maps.Clone(e.loaded)
			now[n] = v
			r.publish(e, now)
			return nil
		}
	}
	r.setIndex(e, n, inference.StateUnavailable, "idle, and cannot be loaded again: "+err.Error())
	return &inference.Error{
		Kind: inference.Unavailable, RetryAfter: time.Second,
		Msg: fmt.Sprintf("model %q version %s was idle and cannot be loaded again: %v", idle.name, idle.number, err),
	}
}
