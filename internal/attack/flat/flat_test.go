package flat

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/internal/attack/held"
)

func TestRun(t *testing.T) {
	o := Options{Graphs: 400, Steps: 4000, Loads: 12, Package: "../../../aoti/testdata/bounds.pt2"}
	rows, err := Run(context.Background(), o)
	for _, r := range rows {
		t.Logf("%s, %d times: %+v, then %+v", r.What, r.Times, r.Before, r.After)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What grows is found.
func TestGrown(t *testing.T) {
	same := held.Counts{Objects: 100_000, Goroutines: 10, Tensors: 1000, Files: 9, Mappings: 100}
	for _, after := range []held.Counts{
		{Objects: 110_000, Goroutines: 10, Tensors: 1000, Files: 9, Mappings: 100},
		{Objects: 100_000, Goroutines: 20, Tensors: 1000, Files: 9, Mappings: 100},
		{Objects: 100_000, Goroutines: 10, Tensors: 1001, Files: 9, Mappings: 100},
		{Objects: 100_000, Goroutines: 10, Tensors: 1000, Files: 10, Mappings: 100},
		{Objects: 100_000, Goroutines: 10, Tensors: 1000, Files: 9, Mappings: 200},
	} {
		if (&Row{Before: same, After: after}).grown() == nil {
			t.Errorf("%+v is no more than %+v", after, same)
		}
	}
	if err := (&Row{Before: same, After: same}).grown(); err != nil {
		t.Error(err)
	}
}
