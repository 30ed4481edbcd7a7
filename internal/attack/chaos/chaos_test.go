package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/longtest"
)

func TestRun(t *testing.T) {
	o := Options{Seed: 1, Time: 400 * time.Millisecond, Goroutines: 2}
	if longtest.Enabled() {
		o.Time, o.Goroutines = 15*time.Second, 3
	}
	var c Counts
	if err := Run(context.Background(), o, &c); err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Rows() {
		if row.Count == 0 && longtest.Enabled() {
			t.Errorf("%s: none", row.What)
		}
	}
}
