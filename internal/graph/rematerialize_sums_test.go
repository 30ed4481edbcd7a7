package graph_test

import "testing"

// TestRepeatForSums states which values reductions along different dimensions compute each by itself.
func TestRepeatForSums(t *testing.T) {
	const head = `%a = parameter "a" : f32[8,1,4]  %b = parameter "b" : f32[6,4]  %g = parameter "g" : f32[8,6,1]  %x = parameter "x" : f32[8,6,4]  %w = parameter "w" : f32[4,4]  `
	for _, c := range []struct{ name, body, want string }{
		{"pairs", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = mul(%0, %g)  %3 = sum(%2, [1])  %4 = neg(%2)  %5 = sum(%4, [0])  return %1, %3, %5`,
			"sub sum sub mul sum sub mul neg sum"},
		{"once for the same dimensions", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = sum(%0, [1])  %3 = amax(%0, [1])  return %1, %2, %3`,
			"sub sum sub sum amax"},
		{"more for the same dimensions", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = sum(%0, [1])  %3 = abs(%0)  %4 = amax(%3, [1])  return %1, %2, %4`,
			"sub sum sub sum abs amax"},
		{"one kernel", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = abs(%0)  %3 = amax(%2, [2])  return %1, %3`, "sub sum abs amax"},
		{"of what is as large", `%0 = sub(%x, %b)  %1 = sum(%0, [2])  %2 = sum(%0, [1])  return %1, %2`, "sub sum sum"},
		{"in memory anyway", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = sum(%0, [1])  return %0, %1, %2`, "sub sum sum"},
		{"for a product", `%0 = sub(%a, %b)  %1 = sum(%0, [2])  %2 = sum(%0, [1])  %3 = matmul(%0, %w)  return %1, %2, %3`, "sub sum sum matmul"},
		{"of what costs much", `%0 = sub(%a, %b)  %1 = exp(%0)  %2 = tanh(%1)  %3 = sum(%2, [2])  %4 = sum(%2, [1])  return %3, %4`, "sub exp tanh sum sum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := rematerialized(t, head+c.body)
			if got := opsOf(q); got != c.want {
				t.Errorf("got %s, want %s\n%s", got, c.want, q)
			}
		})
	}
}
