package plan

import (
	"slices"
	"testing"
)

func TestPermute(t *testing.T) {
	for _, order := range [][]int32{{}, {0}, {0, 1, 2}, {1, 0}, {2, 0, 1}, {1, 2, 0}, {3, 1, 0, 2}, {4, 3, 2, 1, 0}, {1, 0, 3, 4, 2}} {
		var list, want []int
		for i := range order {
			list, want = append(list, 10+i), append(want, 10+int(order[i]))
		}
		if permute(list, slices.Clone(order)); !slices.Equal(list, want) {
			t.Errorf("%v brings 10, 11, … into the order %v, want %v", order, list, want)
		}
	}
}
