package repository

import (
	"context"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// lookup returns a version that is served, loaded or idle.
func (r *Repository) lookup(name, number string) (*version, error) {
	m := (*r.served.Load())[name]
	if m == nil {
		return nil, r.absent(name, number)
	}
	if number == "" {
		return m.latest, nil
	}
	if v := m.byNumber[number]; v != nil {
		return v, nil
	}
	return nil, r.absent(name, number)
}

// find returns a loaded version with a user counted in. One that is idle is loaded first.
func (r *Repository) find(ctx context.Context, name, number string) (*version, error) {
	for {
		v, err := r.lookup(name, number)
		if err != nil {
			return nil, err
		}
		if v.idle {
			if err := r.wake(ctx, v); err != nil {
				return nil, err
			}
		} else if v.use() {
			return v, nil
		} // replaced meanwhile: look again
	}
}

// absent says why a version is not served.
func (r *Repository) absent(name, number string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[name]; e != nil {
		for n, x := range e.index {
			if x.State != inference.StateReady && (number == "" || number == strconv.FormatInt(n, 10)) {
				if x.State == inference.StateLoading {
					return inference.Errorf(inference.Unavailable, "model %q version %d is being loaded", name, n)
				}
				return inference.Errorf(inference.NotFound, "model %q version %d is not served: %s", name, n, x.Reason)
			}
		}
	}
	if number != "" {
		return inference.Errorf(inference.NotFound, "there is no model %q with a version %s", name, number)
	}
	return inference.Errorf(inference.NotFound, "there is no model %q", name)
}
