package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
)

// trained is the backward pass of a chain of products and the updates of their
// weights, which a program has at its end. The gradient that goes on to the
// layer before reads the old weights. No two weights have equal dimensions, or one
// step would update both.
func trained(layers int) (text string, aliases []backend.Alias) {
	var b strings.Builder
	b.WriteString("program @p {\n%d0 = parameter \"d\" : f32[64,64]\n")
	for i := range layers {
		fmt.Fprintf(&b, "%%w%d = parameter \"w%d\" : f32[%d,%d]\n", i, i, 64+i, 65+i)
		fmt.Fprintf(&b, "%%y%d = parameter \"y%d\" : f32[64,%d]\n", i, i, 65+i)
	}
	var returns []string
	for i := range layers {
		fmt.Fprintf(&b, "%%g%d = matmul(permute(%%d%d, [1,0]), %%y%d)\n%%d%d = matmul(%%d%d, %%w%d)\n", i, i, i, i+1, i, i)
	}
	for i := range layers {
		fmt.Fprintf(&b, "%%n%d = sub(%%w%d, mul(%%g%d, 0.5))\n", i, i, i)
		returns = append(returns, fmt.Sprintf("%%n%d", i))
		aliases = append(aliases, backend.Alias{Input: 1 + 2*i, Output: i})
	}
	fmt.Fprintf(&b, "return %s, sum(%%d%d)\n}", strings.Join(returns, ", "), layers)
	return b.String(), aliases
}

// A gradient lives until its weights are updated, which is at once: the number of
// layers does not count.
func TestUpdatesComeEarly(t *testing.T) {
	const matrix = 76 * 76 * 4 // at most
	for _, layers := range []int{3, 6, 12} {
		text, aliases := trained(layers)
		m := mustCompile(t, NewPortable(), text, aliases...)
		if m.plan.Workspace > 5*matrix {
			t.Errorf("%d layers: a workspace of %d bytes, matrices have %d", layers, m.plan.Workspace, matrix)
		}
		for i := range m.plan.Storages {
			if st := &m.plan.Storages[i]; st.Output >= 0 && st.Output < layers && st.Donor != 1+2*st.Output {
				t.Errorf("%d layers: result %d has the memory of parameter %d", layers, st.Output, st.Donor)
			}
		}
	}
}

// The order changes no result, donated or not.
func TestReorderedResults(t *testing.T) {
	hostmem.CheckLeaks(t)
	text, aliases := trained(5)
	b := New()
	m, plain := mustCompile(t, b, text, aliases...), mustCompile(t, b, text)
	in := upload(t, b, m)
	want, err := plain.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	donated := make([]bool, len(in))
	for _, a := range aliases {
		donated[a.Input] = true
	}
	for _, mask := range [][]bool{nil, donated} { // the second spoils the inputs
		got, err := m.Run(ctx, in, mask)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			g, w := hostmem.Slice[float32](got[i].(*hostmem.Buffer)), hostmem.Slice[float32](want[i].(*hostmem.Buffer))
			if !slices.Equal(g, w) {
				t.Errorf("result %d differs, donated: %v", i, mask != nil)
			}
		}
		release(got)
	}
	release(in)
	release(want)
}
