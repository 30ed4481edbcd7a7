package graph_test

import (
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
)

// TestDelay states which pointwise values of parameters alone are computed later than they were recorded.
func TestDelay(t *testing.T) {
	const head = `%x = parameter "x" : f32[4,4]  %w = parameter "w" : f32[4,4]  %n = parameter "n" : f32[1]  `
	for _, c := range []struct{ name, body, want string }{
		{"past a product", `%0 = exp(%w)  %1 = neg(%0)  %2 = matmul(%x, %w)  %3 = matmul(%1, %2)  return %3`, "matmul exp neg matmul"},
		{"past a reduction", `%0 = exp(%w)  %1 = sum(%x, [1])  %2 = mul(%0, %1)  return %2`, "sum exp mul"},
		{"to the first use", `%0 = exp(%w)  %1 = matmul(%x, %w)  %2 = matmul(%0, %1)  %3 = matmul(%0, %2)  return %3`, "matmul exp matmul matmul"},
		{"of a view", `%0 = permute(%w, [1,0])  %1 = exp(%0)  %2 = flip(%1, [0])  %3 = matmul(%x, %w)  %4 = matmul(%2, %3)  return %4`, "permute matmul exp flip matmul"},
		{"not a result", `%0 = exp(%w)  %1 = matmul(%x, %w)  %2 = matmul(%0, %1)  return %2, %0`, "exp matmul matmul"},
		{"not past pointwise ops", `%0 = exp(%w)  %1 = neg(%x)  %2 = mul(%0, %1)  return %2`, "exp neg mul"},
		{"not of what is computed", `%0 = matmul(%x, %w)  %1 = exp(%0)  %2 = matmul(%x, %x)  %3 = matmul(%1, %2)  return %3`, "matmul exp matmul matmul"},
		{"not a number", `%0 = exp(%n)  %1 = matmul(%x, %w)  %2 = mul(%0, %1)  return %2`, "exp matmul mul"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := rematerialized(t, head+c.body)
			if got := opsOf(q); got != c.want {
				t.Errorf("got %s, want %s\n%s", got, c.want, q)
			}
		})
	}
}

// rematerialized returns what a Program of these instructions becomes.
func rematerialized(t *testing.T, body string) *graph.Program {
	t.Helper()
	p, err := graph.Parse("program @p { " + body + " }")
	if err != nil {
		t.Fatal(err)
	}
	q, _ := graph.Optimize(p, graph.Options{Rematerialize: true})
	return q
}

// opsOf returns the ops of a Program in their order.
func opsOf(p *graph.Program) string {
	var ops []string
	for i := range p.Instrs {
		ops = append(ops, p.Instrs[i].Op.String())
	}
	return strings.Join(ops, " ")
}
