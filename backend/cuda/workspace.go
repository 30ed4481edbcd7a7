//go:build cuda && linux && cgo

package cuda

import "context"

// keptPart is which part of a device's memory models may keep as workspaces between
// their runs. One that is kept is in the same place each time, so that graphs need
// not be changed for it; models beyond take theirs from the pool for each run.
const keptPart = 16

// workspace returns the memory for the steps of a run.
func (m *model) workspace(ctx context.Context) (*memory, error) {
	if m.work != nil {
		return m.work, nil
	}
	if !m.dev.keep(m) {
		return m.temporary(ctx, m.seq.Workspace)
	}
	work, err := m.dev.alloc(ctx, m.stream, m.seq.Workspace)
	if err != nil {
		m.dev.unkeep(m)
		return nil, err
	}
	m.work = work
	return work, nil
}

// dropWorkspace gives the workspace back; mu is held.
func (m *model) dropWorkspace() {
	if m.work == nil {
		return
	}
	m.dev.unkeep(m)
	m.work.release() // in the order of the stream
	m.work = nil
}

// keep reports whether a model may keep its workspace.
func (d *device) keep(m *model) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := int64(m.seq.Workspace)
	if d.kept+n > d.props.Memory/keptPart {
		return false
	}
	d.keepers[m] = struct{}{}
	d.kept += n
	return true
}

func (d *device) unkeep(m *model) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keepers, m)
	d.kept -= int64(m.seq.Workspace)
}

// dropWorkspaces has models that do not run give their workspaces back.
func (d *device) dropWorkspaces() {
	d.mu.Lock()
	all := make([]*model, 0, len(d.keepers))
	for m := range d.keepers {
		all = append(all, m)
	}
	d.mu.Unlock()
	for _, m := range all {
		if m.mu.TryLock() { // one that runs, which may be who is short, goes on
			m.dropWorkspace()
			m.mu.Unlock()
		}
	}
}
