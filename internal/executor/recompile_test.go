package executor_test

import (
	"regexp"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// The report says of each compilation what made its graph new.
func TestWhyTexts(t *testing.T) {
	type step func(t *testing.T, s *executor.Session) *executor.Tensor
	in := func(t *testing.T, s *executor.Session, n int) *executor.Tensor {
		return floats(t, s, make([]float32, n), n)
	}
	chain := func(n int, ops ...ir.Op) step {
		return func(t *testing.T, s *executor.Session) *executor.Tensor {
			x := in(t, s, n)
			y := x
			for _, op := range ops {
				y = binaryOp(s, op, y, x)
			}
			return y
		}
	}
	narrow, _ := ir.Lookup("narrow")
	summed := func(dim int) step {
		return func(t *testing.T, s *executor.Session) *executor.Tensor {
			x := floats(t, s, make([]float32, 4), 2, 2)
			return s.Call(aten.Sum, newTensor, []any{x, []int{dim}}, nil)[0]
		}
	}
	narrowed := func(n int) step {
		return func(t *testing.T, s *executor.Session) *executor.Tensor {
			return s.Call(narrow, newTensor, []any{in(t, s, 4), 0, 0, n}, nil)[0]
		}
	}
	for _, c := range []struct {
		name          string
		first, second step
		why           string
	}{
		{"shape", chain(2, aten.Add), chain(3, aten.Add), `^input shapes changed: input 0: f32\[2\] became f32\[3\]; the first op that this concerns is add at executor/\w+_test.go:\d+$`},
		{"result", narrowed(1), narrowed(2), `^sizes changed: narrow at executor/\w+_test.go:\d+ made f32\[1\] and now makes f32\[2\]$`},
		{"connections", chain(2, aten.Add), func(t *testing.T, s *executor.Session) *executor.Tensor {
			return binaryOp(s, aten.Add, in(t, s, 2), in(t, s, 2))
		}, `^same ops, other connections or outputs$`},
		{"shorter", chain(2, aten.Add, aten.Mul), chain(2, aten.Add), `^new graph: ends after 1 of the 2 nodes of the nearest$`},
		{"longer", chain(2, aten.Add), chain(2, aten.Add, aten.Mul), `^new graph: node 1, mul at executor/\w+_test.go:\d+, comes after the end of the nearest$`},
		{"attributes", summed(0), summed(1), `^new graph: node 0, sum at executor/\w+_test.go:\d+, has other attributes than in the nearest$`},
		{"op", chain(2, aten.Add, aten.Add), chain(2, aten.Add, aten.Mul), `^new graph: node 1 is mul at executor/\w+_test.go:\d+, in the nearest it is add$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, executor.Config{Lines: ir.LinesAlways})
			for _, fn := range []step{c.first, c.second} {
				y := fn(t, s)
				mark(t, s)
				read(t, y)
			}
			r := s.Report()
			if len(r.Recent) != 2 {
				t.Fatalf("%d compilations, want 2", len(r.Recent))
			}
			if got := r.Recent[0].Why; got != "first graph" {
				t.Errorf("the first: %q", got)
			}
			if got := r.Recent[1].Why; !regexp.MustCompile(c.why).MatchString(got) {
				t.Errorf("the second: %q, want %s", got, c.why)
			}
			if sizes := c.name == "shape" || c.name == "result"; r.Recent[1].NewSizes != sizes || (r.NewSizes == 1) != sizes {
				t.Errorf("new sizes: %v, %d in all, want %v", r.Recent[1].NewSizes, r.NewSizes, sizes)
			}
		})
	}
}
