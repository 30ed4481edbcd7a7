package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
)

// Rank 1 comes late to the second of three steps: what rank 0 waited is in its report, by the line of the
// collective, and in its trace.
func TestReportOfCollectives(t *testing.T) {
	const late = 50 * time.Millisecond
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		var trace bytes.Buffer
		stop, err := s.Trace(&trace)
		if err != nil {
			return err
		}
		for i := range 3 {
			if i == 1 && g.Rank() == 1 {
				time.Sleep(late)
			}
			if _, err := g.AllReduce(m.Full(1, 100).Add(float64(i)), dist.Sum).Float32s(ctx); err != nil {
				return err
			}
		}
		if err := stop(); err != nil {
			return err
		}
		if g.Rank() == 1 {
			return nil
		}
		r := s.Report()
		if r.Agreements.Runs != 3 || r.Agreements.Time < late/2 {
			t.Errorf("the agreements are %+v; one waited for rank 1 for about %v", r.Agreements, late)
		}
		if len(r.Collectives) != 1 {
			t.Fatalf("the collectives are %+v", r.Collectives)
		}
		c := r.Collectives[0]
		if c.Runs != 3 || c.Bytes != 3*400 || c.Group != "world" || c.Op != "all_reduce(f32[100], sum)" || !strings.Contains(c.Line, "report_test.go:") {
			t.Errorf("the collective is %+v", c)
		}
		if c.Time <= 0 || c.Waited <= 0 || c.Overlap > c.Time {
			t.Errorf("the times of the collective are %+v", c)
		}
		if text := r.String(); !strings.Contains(text, "agreed with other ranks 3 times") || !strings.Contains(text, `all_reduce(f32[100], sum) of group "world": 3 runs, 1200 bytes`) {
			t.Errorf("the report is\n%s", text)
		}
		var events []struct{ Name, Cat string }
		if err := json.Unmarshal(trace.Bytes(), &events); err != nil {
			return err
		}
		seen := map[string]int{}
		for _, e := range events {
			if e.Cat == "collective" {
				seen[e.Name]++
			}
		}
		if seen["agreement"] != 3 || seen["all_reduce(f32[100], sum)"] != 3 {
			t.Errorf("the trace has the collectives %v", seen)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A collective beside which a rank computes overlaps.
func TestReportOfOverlap(t *testing.T) {
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		x := g.AllReduce(m.Full(1, 100), dist.Sum)
		y := m.Randn(700, 700)
		for range 20 {
			y = y.MatMul(y).Tanh()
		}
		if _, err := x.Add(y.Sum()).Float32s(ctx); err != nil {
			return err
		}
		if c := s.Report().Collectives[0]; c.Overlap <= 0 || c.Overlap > c.Time {
			t.Errorf("rank %d: %+v: nothing of it was hidden", g.Rank(), c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
