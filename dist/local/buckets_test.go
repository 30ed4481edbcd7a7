package local_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// averages returns how many collectives an average of four gradients of 4,000 bytes is.
func averages(t *testing.T, path string) (n int, err error) {
	err = local.Run(t.Context(), 2, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session()
		if err != nil {
			return err
		}
		var grads []*loris.Tensor
		for i := range 4 {
			grads = append(grads, s.With().Full(float64(i), 1000))
		}
		for _, x := range g.Average(grads) {
			x.Keep()
		}
		if err := s.MarkStep(ctx); err != nil {
			return err
		}
		if err := s.WaitDeviceOps(ctx); err != nil {
			return err
		}
		if g.Rank() == 0 {
			for _, c := range s.Report().Collectives {
				n += int(c.Runs)
			}
		}
		return nil
	}, dist.WithMeasuredBuckets(path))
	return n, err
}

// The size of buckets is measured at the first start and kept; later ones take what is in the file.
func TestMeasuredBuckets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "buckets.json")
	if n, err := averages(t, path); err != nil || n != 1 {
		t.Errorf("gradients of 16,000 bytes are %d collectives, want 1: %v", n, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const key = "*local.engine, 2 ranks on 1 machines"
	kept := map[string]int{}
	if err := json.Unmarshal(text, &kept); err != nil || len(kept) != 1 || kept[key] < 256<<10 {
		t.Fatalf("%v: %s", err, text)
	}
	for text, want := range map[string]int{
		`{"` + key + `": 4000}`: 4,
		`{"` + key + `": 8000}`: 2,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := averages(t, path); err != nil || n != want {
			t.Errorf("with %s it is %d collectives, want %d: %v", text, n, want, err)
		}
	}
	if _, err := averages(t, filepath.Join(path, "none")); err == nil {
		t.Error("a file that cannot be there is no error")
	}
}
