package aoti_test

// Calls that are wrong, early, late or at the same time, on real packages.

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/ir"
)

// right runs a fixture's first case and holds the outputs against PyTorch's.
func right(t *testing.T, r *aoti.Runner, f *fixture) {
	t.Helper()
	outs, err := r.Run(context.Background(), f.list(t, "in")...)
	if err != nil {
		t.Error(err)
		return
	}
	refs := f.list(t, "ref")
	for i, want := range f.list(t, "out") {
		var ref aoti.Buffer
		if i < len(refs) {
			ref = refs[i]
		}
		if o := compare(t, outs[i], want, ref); o.problem != "" {
			t.Errorf("output %d: %s", i, o.problem)
		}
		outs[i].Release()
	}
}

// gated loads a fixture whose runs announce themselves and wait for the gate.
func gated(t *testing.T, name string) (r *aoti.Runner, started, gate chan struct{}) {
	t.Helper()
	started, gate = make(chan struct{}, 8), make(chan struct{})
	r = load(t, name, aoti.RunStep(func(ctx context.Context, m aoti.Model, inputs []aoti.Buffer, donated []bool) ([]aoti.Buffer, error) {
		started <- struct{}{}
		<-gate
		return m.Run(ctx, inputs, donated)
	}))
	return r, started, gate
}

// Whoever closes a model, however many do so at once, none unloads it or its
// weights below a run in flight, and none returns before that is over.
func TestCloseByMany(t *testing.T) {
	for _, name := range []string{"mlp", "weights_blob", "weights_disk"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			r, started, gate := gated(t, name)
			ran := make(chan error, 1)
			go func() {
				outs, err := r.Run(context.Background(), f.list(t, "in")...)
				if err == nil {
					if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
						err = errors.New(o.problem)
					}
				}
				ran <- err
			}()
			<-started
			closed := make(chan error, 3)
			for range cap(closed) {
				go func() { closed <- r.Close() }()
			}
			select {
			case err := <-closed:
				t.Errorf("a Close returned while a run was in flight: %v", err)
				closed <- err
			case <-time.After(30 * time.Millisecond):
			}
			close(gate)
			if err := <-ran; err != nil {
				t.Error(err)
			}
			for range cap(closed) {
				if err := <-closed; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Extracted constants stay readable after Close, be they copies or views of the
// library's, a file's or the host's memory.
func TestConstantsOutliveClose(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"mlp", "mlp_2_11", "mlp_2_6", "weights_blob", "weights_disk", "weights_mmap"} {
		t.Run(name, func(t *testing.T) {
			r := load(t, name)
			copies, err := r.ExtractConstants(ctx, aoti.Active, true)
			if err != nil {
				t.Fatal(err)
			}
			views, err := r.ExtractConstants(ctx, aoti.Active, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(views) == 0 || len(views) != len(copies) {
				t.Fatalf("%d views, %d copies", len(views), len(copies))
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			for constant, view := range views {
				a, err := view.Bytes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				b, err := copies[constant].Bytes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(a, b) {
					t.Errorf("%s differs from its copy", constant)
				}
				view.Release()
				copies[constant].Release()
			}
		})
	}
}

// A run that waits for an instance gives up with its context, and costs none.
func TestWaitingForAnInstance(t *testing.T) {
	f := open(t, "mlp")
	r, started, gate := gated(t, "mlp")
	ran := make(chan error, 1)
	go func() {
		_, err := r.Run(context.Background(), f.list(t, "in")...)
		ran <- err
	}()
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := r.Run(ctx, f.list(t, "in")...); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run that waited too long: %v", err)
	}
	close(gate)
	if err := <-ran; err != nil {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Run(cancelled, f.list(t, "in")...); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was cancelled before: %v", err)
	}
	right(t, r, f)
}

// Updates that are wrong name the constant and what is wrong, and change nothing.
func TestWrongUpdates(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"mlp", "mlp_2_11", "mlp_2_6"} {
		f := open(t, name)
		r := load(t, name)
		was, err := r.ExtractConstants(ctx, aoti.Active, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			with aoti.Buffer // for 0.weight; nil leaves it out
			also string      // a further name
			opts []aoti.UpdateOption
			want error
			says string
		}{
			{"missing", nil, "", nil, container.ErrMissing, "weight"},
			{"dtype", aoti.NewBuffer(ir.F64, 128, 64), "", nil, ir.ErrDType, "f64"},
			{"shape", aoti.NewBuffer(ir.F32, 64, 128), "", nil, ir.ErrShape, "64"},
			{"rank", aoti.NewBuffer(ir.F32, 128*64), "", nil, ir.ErrShape, "8192"},
			{"size", aoti.NewBuffer(ir.F32, 128, 63), "", nil, ir.ErrShape, "63"},
			{"unknown", was["0.weight"], "nobody", nil, container.ErrUnknown, "nobody"},
			{"unknown in a part", nil, "nobody", []aoti.UpdateOption{aoti.Partial()}, container.ErrUnknown, "nobody"},
		} {
			for _, which := range []aoti.Which{aoti.Active, aoti.Inactive} {
				values := map[string]aoti.Buffer{}
				for k, b := range was {
					values[k] = b
				}
				delete(values, "0.weight")
				if c.with != nil {
					values["0.weight"] = c.with
				}
				if c.also != "" {
					values[c.also] = was["0.bias"]
				}
				err := r.Update(ctx, values, which, c.opts...)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s, %s, %v: %v", name, c.name, which, err)
				}
			}
		}
		if err := r.Swap(ctx); !errors.Is(err, container.ErrNoInactive) {
			t.Errorf("%s: a wrong update left an inactive set: %v", name, err)
		}
		right(t, r, f)
	}
}

// A file of all weights replaces them; one that is not as long as they are, or
// not there, replaces nothing.
func TestUpdateFromWeightsFile(t *testing.T) {
	ctx := context.Background()
	blob := extract(t, "weights_blob", ".blob")
	f := open(t, "weights_blob")
	r := load(t, "weights_blob", aoti.WithoutWeights())
	data, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"short": data[:len(data)/2], "long": append(bytes.Clone(data), make([]byte, 64)...), "empty": nil} {
		wrong := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(wrong, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.UpdateFromFile(ctx, wrong, aoti.Active); !errors.Is(err, container.ErrBlob) || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.UpdateFromFile(ctx, blob+".none", aoti.Active); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := r.Run(ctx, f.list(t, "in")...); !errors.Is(err, container.ErrMissing) {
		t.Errorf("a run without weights: %v", err)
	}
	if err := r.UpdateFromFile(ctx, blob, aoti.Inactive); err != nil {
		t.Fatal(err)
	}
	if err := r.Swap(ctx); err != nil {
		t.Fatal(err)
	}
	right(t, r, f)
}

// What is no package, also in memory, is an error and no crash.
func TestLoadFromMemoryRefuses(t *testing.T) {
	load(t, "mlp") // or skip
	data, err := os.ReadFile(extract(t, "mlp", ".so"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name string, data []byte, size int64) {
		t.Helper()
		r, err := aoti.LoadFrom(context.Background(), bytes.NewReader(data), size)
		if err == nil {
			r.Close()
			t.Errorf("%s was loaded", name)
		}
	}
	refused("nothing", nil, 0)
	refused("a negative size", data, -1)
	refused("a size beyond the end", data, int64(len(data))*2)
	refused("half a library", data[:len(data)/2], int64(len(data)/2))
	refused("a header", data[:64], 64)
	refused("text", []byte("hello"), 5)
	r, err := aoti.LoadFrom(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	right(t, r, open(t, "mlp"))
}

// A step that returns too few or too many outputs is an error, and what it
// returned is let go of.
func TestStepReturnsWrongOutputs(t *testing.T) {
	ctx := context.Background()
	f := open(t, "mlp")
	for _, n := range []int{0, 2} {
		var made []*counted
		r := load(t, "mlp", aoti.RunStep(func(context.Context, aoti.Model, []aoti.Buffer, []bool) (outs []aoti.Buffer, err error) {
			made = nil
			for range n {
				b := &counted{Buffer: aoti.NewBuffer(ir.F32, 8, 10)}
				made, outs = append(made, b), append(outs, b)
			}
			return outs, nil
		}))
		check := func(err error) {
			t.Helper()
			if !errors.Is(err, ir.ErrArg) || !strings.Contains(err.Error(), "outputs") {
				t.Errorf("%d outputs: %v", n, err)
			}
			for _, b := range made {
				if b.released != 1 {
					t.Errorf("%d outputs: one was released %d times", n, b.released)
				}
			}
		}
		_, err := r.Run(ctx, f.list(t, "in")...)
		check(err)
		check(r.RunInto(ctx, f.list(t, "in"), []aoti.Buffer{aoti.NewBuffer(ir.F32, 8, 10)}))
		check(r.RunInto(ctx, f.list(t, "in"), []aoti.Buffer{nil}))
	}
}

// Sets that are saved by name come back, folded, after others were active, and as
// they were: the model of 2.6 writes what was folded from a buffer, which is state
// of an instance.
func TestRollback(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"folding", "folding_2_11", "folding_2_6"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			r := load(t, name, aoti.Instances(2))
			right(t, r, f)
			if err := r.Save(ctx, "good", aoti.Active); err != nil {
				t.Fatal(err)
			}
			zero := map[string]aoti.Buffer{}
			for _, k := range r.Constants() {
				if !k.FromFolded {
					zero[k.Name] = aoti.NewBuffer(k.Shape.DType(), k.Shape.Dims()...)
					data, err := zero[k.Name].Bytes(ctx)
					if err != nil {
						t.Fatal(err)
					}
					clear(data)
				}
			}
			if err := r.Update(ctx, zero, aoti.Active); err != nil {
				t.Fatal(err)
			}
			outs, err := r.Run(ctx, f.list(t, "in")...)
			if err != nil {
				t.Fatal(err)
			}
			if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem == "" {
				t.Errorf("%s: other constants give the same", name)
			}
			if err := r.Activate(ctx, "good"); err != nil {
				t.Fatal(err)
			}
			right(t, r, f)
		})
	}
}
