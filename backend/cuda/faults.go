//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"slices"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
)

// faultRoom is how many faults the memory of one report holds.
const faultRoom = 256

// faultLog has what the computations in a stream leave of faults. Nobody waits for
// them: at the end of a run they are copied to pinned memory, and who reads what the
// run made looks there. One goroutine at a time uses it.
type faultLog struct {
	open    *report   // of the present run, which computations add to; or nil
	reports []*report // that belong to what the present run makes
	begun   bool      // there are runs in the stream
	pending []*report // whose work was not seen to be done
}

// report is the faults of a part of a run.
type report struct {
	d     *device
	there *memory // on the device; nil when it was copied
	used  int
	parts []reportPart

	mu   sync.Mutex
	here *driver.HostMem // guarded by mu; nil when err tells all
	at   *event          // guarded by mu: of the copy
	err  error           // guarded by mu
}

// reportPart is the faults of one computation.
type reportPart struct {
	seq  *steps.Sequence
	from int // bytes
}

// reserve returns where a computation leaves its faults.
func (f *faultLog) reserve(ctx context.Context, h *hostStream, seq *steps.Sequence) (driver.DevicePtr, error) {
	if f.open != nil && f.open.used+seq.Faults > faultRoom {
		if err := f.flush(h); err != nil {
			return 0, err
		}
	}
	room := max(faultRoom, seq.Faults)
	if f.open == nil {
		mem, err := h.d.alloc(ctx, h.s, steps.FaultBytes*room)
		if err != nil {
			return 0, err
		}
		if err := h.s.Set(mem.ptr, 0, 4, int64(steps.FaultBytes/4*room)); err != nil {
			mem.release()
			return 0, h.d.check(err)
		}
		f.open = &report{d: h.d, there: mem}
	}
	r := f.open
	from := steps.FaultBytes * r.used
	r.used += seq.Faults
	r.parts = append(r.parts, reportPart{seq, from})
	return r.there.ptr + driver.DevicePtr(from), nil
}

// flush copies the faults of the computations so far.
func (f *faultLog) flush(h *hostStream) error {
	r := f.open
	if r == nil {
		return nil
	}
	f.open = nil
	defer func() {
		r.there.release() // in the order of the stream
		r.there = nil
	}()
	f.settle()
	var err error
	if r.here, err = h.d.faultMem(steps.FaultBytes * r.used); err != nil {
		return err
	}
	err = h.d.check(h.s.CopyOut(r.here.Bytes()[:steps.FaultBytes*r.used], r.there.ptr))
	if err == nil {
		r.at, err = h.d.record(h.s)
	}
	if err != nil {
		return err // the device is lost: the memory stays with it
	}
	f.reports, f.pending = append(f.reports, r), append(f.pending, r)
	return nil
}

// begin starts a run. What is still open is of one that failed.
func (f *faultLog) begin() {
	if f.open != nil {
		f.open.there.release() // in the order of the stream
	}
	f.open, f.reports, f.begun = nil, nil, true
}

// inherit says that the run reads what other reports belong to.
func (f *faultLog) inherit(rs []*report) {
	if !f.begun {
		return
	}
	for _, r := range rs {
		if !slices.Contains(f.reports, r) {
			f.reports = append(f.reports, r)
		}
	}
}

// settle looks at the reports whose copies are done.
func (f *faultLog) settle() {
	f.pending = slices.DeleteFunc(f.pending, func(r *report) bool {
		done, _ := r.look()
		return done
	})
}

// look returns the error of a report, if its work is done.
func (r *report) look() (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.here == nil {
		return true, r.err
	}
	done, err = r.at.done()
	if !done && err == nil {
		return false, nil
	}
	for _, p := range r.parts {
		if err == nil {
			err = failed(p.seq, r.here.Bytes()[p.from:])
		}
	}
	r.at.release()
	r.d.putFaultMem(r.here)
	r.here, r.at, r.parts, r.err = nil, nil, nil, err
	return true, err
}

// wait returns the error of a report, once its work is done, or ctx is.
func (r *report) wait(ctx context.Context) error {
	r.mu.Lock()
	at := r.at
	if at != nil {
		at.retain()
	}
	r.mu.Unlock()
	if at != nil {
		err := at.wait(ctx)
		at.release()
		if err != nil {
			return err
		}
	}
	_, err := r.look()
	return err
}

// failed returns the error for the faults that a run of a Sequence left, or nil.
func failed(seq *steps.Sequence, left []byte) error {
	for i := range seq.Steps {
		s := &seq.Steps[i]
		if s.Fault < 0 {
			continue
		}
		if err := s.Failed(left[steps.FaultBytes*s.Fault:]); err != nil {
			return err
		}
	}
	return nil
}

// setReports says which faults the contents of a memory may come from.
func (b *block) setReports(rs []*report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = nil
	for _, r := range rs {
		if done, err := r.look(); !done || err != nil {
			b.reports = append(b.reports, r)
		}
	}
}

// reported returns them.
func (b *block) reported() []*report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reports
}

// fault waits for the reports on the contents and returns the first fault.
func (b *block) fault(ctx context.Context) error {
	for _, r := range b.reported() {
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// faultMem returns pinned memory for a report, of at least some bytes.
func (d *device) faultMem(bytes int) (*driver.HostMem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.faults); n > 0 && bytes <= steps.FaultBytes*faultRoom {
		h := d.faults[n-1]
		d.faults = d.faults[:n-1]
		return h, nil
	}
	h, err := d.ctx.NewHostMem(max(bytes, steps.FaultBytes*faultRoom))
	if err == nil {
		d.closers = append(d.closers, h.Close)
	}
	return h, err
}

// putFaultMem gives it back.
func (d *device) putFaultMem(h *driver.HostMem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, h)
}
