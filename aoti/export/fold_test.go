package export_test

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
)

// What is computed of constants alone is computed before the runs, and again after updates and swaps.
func TestFoldedConstantsFollowUpdates(t *testing.T) {
	ctx := context.Background()
	p := parse(t, `program @p {
  %x = parameter "x" : f32[4,6]
  %w = parameter "w" : f32[6,5]
  %v = parameter "wv" : f32[5,5]
  %f = matmul(tanh(%w), exp(%v))
  return matmul(%x, %f), %f
}`)
	s := sampleOf(t, p, 1)
	r := load(t, s.export(t))
	check := func(s *sample) {
		t.Helper()
		for range 2 {
			got, err := r.Run(ctx, s.in...)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, s.want(t))
		}
	}
	check(s)
	for seed := range uint64(3) {
		next := sampleOf(t, p, seed+2)
		update := map[string]aoti.Buffer{}
		for i, q := range p.Params {
			if isConstant(q.Name) {
				update[q.Name] = next.all[i]
			}
		}
		if err := r.Update(ctx, update, aoti.Inactive); err != nil {
			t.Fatal(err)
		}
		check(s) // which the inactive set does not change
		if err := r.Swap(ctx); err != nil {
			t.Fatal(err)
		}
		s = &sample{p: p, constants: next.constants, all: append([]backend.Buffer{s.in[0]}, next.all[1:]...), in: s.in}
		check(s)
	}
}
