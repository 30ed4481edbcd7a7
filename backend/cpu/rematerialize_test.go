package cpu

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
)

// TestRematerialize holds Programs whose cheap values are computed again against those that keep them:
// the bits are the same, and the workspace is no larger.
func TestRematerialize(t *testing.T) {
	const params = `%x = parameter "x" : f32[64,64]  %w = parameter "w" : f32[64,64]  `
	for _, c := range []struct {
		name, body string
		again      string // the op that is there once more; "" if none is
	}{
		{"of a value that is kept in any case", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = mul(%0, %1)  %3 = matmul(%2, %w)  %4 = mul(%3, %1)  %5 = mul(%4, %0)  return %5`, "erf"},
		{"several of one value", `%0 = matmul(%x, %w)  %1 = mul(%0, %0)  %2 = tanh(%1)  %3 = mul(%0, %2)  %4 = matmul(%3, %w)  %5 = mul(%4, %1)  %6 = mul(%5, %2)  %7 = mul(%6, %0)  return %7`, "tanh"},
		{"of a value that nothing else keeps", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = mul(%0, %1)  %3 = matmul(%2, %w)  %4 = mul(%3, %1)  return %4`, ""},
		{"for something that reads memory", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = matmul(%1, %w)  %3 = mul(%2, %0)  %4 = matmul(%1, %3)  return %4`, ""},
		{"what is returned", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = matmul(%1, %w)  %3 = mul(%2, %1)  %4 = mul(%3, %0)  return %4, %1`, ""},
		{"at too high a price", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = sin(%1)  %3 = tanh(%2)  %4 = matmul(%3, %w)  %5 = mul(%4, %3)  %6 = mul(%5, %0)  return %6`, ""},
		{"of more bytes than it has", `%0 = matmul(%x, %w)  %1 = ge(%0, %0)  %2 = where(%1, %0, %0)  %3 = matmul(%2, %w)  %4 = where(%1, %3, %0)  return %4`, ""},
		{"in the same kernel", `%0 = matmul(%x, %w)  %1 = erf(%0)  %2 = matmul(%x, %x)  %3 = mul(%2, %1)  %4 = mul(%3, %0)  return %4`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New()
			var results [2][][]byte
			var workspace [2]int
			var texts [2]string
			for i := range 2 {
				p, _ := graph.Optimize(program(t, "program @p { "+params+c.body+" }"), graph.Options{Supports: b.Supports, Rematerialize: i == 1})
				texts[i] = p.String()
				m, err := compile(b, p, backend.CompileOptions{})
				if err != nil {
					t.Fatal(err)
				}
				outs, err := m.Run(ctx, upload(t, b, m), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range outs {
					results[i] = append(results[i], bytes.Clone(must(backend.Contents(ctx, o))))
				}
				workspace[i] = m.plan.Workspace
			}
			for k, want := range results[0] {
				if !bytes.Equal(results[1][k], want) {
					t.Errorf("result %d has other bits", k)
				}
			}
			if workspace[1] > workspace[0] {
				t.Errorf("%d bytes of workspace, %d without", workspace[1], workspace[0])
			}
			if c.again == "" {
				if texts[1] != texts[0] {
					t.Errorf("changed to\n%s", texts[1])
				}
				return
			}
			if n := strings.Count(texts[1], c.again+"("); n != 2 {
				t.Errorf("%d of %s, want 2, in\n%s", n, c.again, texts[1])
			}
			if workspace[1] == workspace[0] {
				t.Errorf("%d bytes of workspace as before", workspace[1])
			}
		})
	}
}

// TestDelayedWeights states that weights which are unpacked for a later product are not stored with those
// of the first, over the same dimensions.
func TestDelayedWeights(t *testing.T) {
	const size = 64
	b := New()
	if b.engine == nil {
		t.Skip("no machine code here, and weights are stored whole")
	}
	text := `program @p { %x = parameter "x" : f32[64]  %v = parameter "v" : u8[64,64]  %w = parameter "w" : u8[64,64]
		%0 = mul(cast(%w, dtype=f32), 0.5)
		%1 = sum(mul(mul(cast(%v, dtype=f32), 0.25), %x), [1])
		%2 = cumsum(%1, dim=0)
		return sum(mul(%0, %2), [1]) }`
	p, _ := graph.Optimize(program(t, text), graph.Options{Supports: b.Supports, Rematerialize: true})
	m, err := compile(b, p, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.plan.Workspace >= size*size*4 {
		t.Errorf("the weights are stored:\n%s", m.plan)
	}
}
