package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// event is what the test reads of an event of a trace.
type event struct {
	Phase    string  `json:"ph"`
	Process  int     `json:"pid"`
	Name     string  `json:"name"`
	Category string  `json:"cat"`
	Start    float64 `json:"ts"`
	Duration float64 `json:"dur"`
	Args     map[string]string
}

// The trace of all ranks has what each did, at the times of rank 0: no rank's part of a collective ends
// before the others' have begun, though clocks began long apart.
func TestTrace(t *testing.T) {
	const apart = 200 * time.Millisecond
	path := filepath.Join(t.TempDir(), "trace.json")
	engines := local.Engines(3)
	errs := make(chan error, len(engines))
	for r, e := range engines {
		go func() {
			time.Sleep(time.Duration(r) * apart)
			errs <- sums(t.Context(), e, dist.WithTrace(path))
		}()
	}
	for range engines {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []event
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	names := map[int]string{}
	found := map[int][]event{}
	kinds := map[string]bool{}
	for _, e := range all {
		kinds[e.Category] = true
		switch {
		case e.Name == "process_name":
			names[e.Process] = e.Args["name"]
		case e.Category == "collective" && strings.HasPrefix(e.Name, "all_reduce"):
			found[e.Process] = append(found[e.Process], e)
		}
	}
	for r := range engines {
		if want := "rank " + string(rune('0'+r)); names[r] != want || len(found[r]) != 3 {
			t.Fatalf("rank %d is %q with %d sums", r, names[r], len(found[r]))
		}
	}
	if !kinds["kernel"] && !kinds["run"] {
		t.Errorf("events are of %v only", kinds)
	}
	for i := range found[0] {
		for _, a := range found {
			for _, b := range found {
				if late := a[i].Start - (b[i].Start + b[i].Duration); late > float64(apart/2/time.Microsecond) {
					t.Errorf("sum %d begins %v µs after it has ended on another rank", i, late)
				}
			}
		}
	}
}

// sums runs three steps with a sum.
func sums(ctx context.Context, e dist.Engine, opts ...dist.Option) error {
	g, err := dist.New(ctx, e, opts...)
	if err != nil {
		return err
	}
	s, err := g.Session()
	if err != nil {
		return err
	}
	for range 3 {
		x := s.With().FromSlice([]float32{1, 2, 3}, 3)
		if _, err := g.AllReduce(x.Add(1), dist.Sum).Float32s(ctx); err != nil {
			return err
		}
	}
	return g.Close(ctx)
}

// A trace that cannot be written is an error of rank 0 alone, and the group is closed.
func TestTraceCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "trace.json")
	err := local.Run(t.Context(), 2, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session()
		if err != nil {
			return err
		}
		_, err = g.AllReduce(s.With().FromSlice([]float32{1}, 1), dist.Sum).Float32s(ctx)
		return err
	}, dist.WithTrace(path))
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "rank 1:") {
		t.Errorf("%v", err)
	}
}
