package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRematerializeOfBisection optimizes 60 steps of a bisection, of which each uses both values of the one before
// twice: a walk that forgets what it has found out about them would never end.
func TestRematerializeOfBisection(t *testing.T) {
	const steps = 60
	var b strings.Builder
	b.WriteString(`%x = parameter "x" : f32[4,4]  %w = parameter "w" : f32[4,4]  %l0 = parameter "l" : f32[4,4]  %h0 = parameter "h" : f32[4,4]  `)
	for i := range steps {
		fmt.Fprintf(&b, "%%m%[1]d = add(%%l%[1]d, %%h%[1]d)  %%g%[1]d = matmul(%%m%[1]d, %%w)  %%c%[1]d = gt(%%g%[1]d, %%x)  "+
			"%%l%[2]d = where(%%c%[1]d, %%m%[1]d, %%l%[1]d)  %%h%[2]d = where(%%c%[1]d, %%h%[1]d, %%m%[1]d)  ", i, i+1)
	}
	fmt.Fprintf(&b, "return %%l%[1]d, %%h%[1]d", steps)
	q := rematerialized(t, b.String())
	if got := strings.Count(q.String(), "matmul"); got != steps {
		t.Errorf("%d products, want %d", got, steps)
	}
}
