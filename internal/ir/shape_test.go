package ir

import "testing"

func TestAround(t *testing.T) {
	s := MakeShape(F32, 2, 3, 4, 5)
	for dim, want := range [][3]int{{1, 2, 60}, {2, 3, 20}, {6, 4, 5}, {24, 5, 1}} {
		if outer, n, inner := s.Around(dim); [3]int{outer, n, inner} != want {
			t.Errorf("around dimension %d: %d, %d, %d, want %v", dim, outer, n, inner, want)
		}
	}
	if outer, n, inner := MakeShape(F32).Around(0); outer != 1 || n != 1 || inner != 1 {
		t.Errorf("around a scalar: %d, %d, %d", outer, n, inner)
	}
}
