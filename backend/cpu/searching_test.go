package cpu

import (
	"fmt"
	"slices"
	"testing"
)

// The kernel of searchsorted and bucketize finds the places that its decomposition does: with equal
// elements, NaNs, rows of their own, a sorter, and operands of different dtypes.
func TestSearch(t *testing.T) {
	b := New()
	for _, rows := range []string{"1", "17", "3,40", "2,3,5", "0", "3,0"} {
		values := map[string]string{"1": "5,7", "17": "600", "3,40": "3,50", "2,3,5": "2,3,4", "0": "4", "3,0": "3,2"}[rows]
		for _, types := range [][2]string{{"f32", "f32"}, {"f64", "f32"}, {"bf16", "bf16"}, {"i64", "i64"}, {"i32", "f32"}, {"u8", "u8"}, {"bool", "bool"}} {
			for _, options := range []string{"", ", right=true", ", out_int32=true", ", side=\"right\"", ", sorter=%order"} {
				testSearch(t, b, fmt.Sprintf(`program @search { %%rows = parameter "rows" : f32[%s]
					%%x = parameter "x" : f32[%s]
					%%0 = mul(%%rows, %%rows)
					%%1 = add(%%0, %%0)
					%%2 = floor(%%1)
					%%3 = sqrt(%%rows)
					%%4 = mul(%%3, 0)
					%%5 = ceil(%%x)
					%%6 = %s(%%2, %%4)
					%%7 = cast(%%6, dtype=%s)
					%%8 = cast(%%5, dtype=%s)
					%%sorted, %%order = sort(%%7)
					%%9 = searchsorted(%s, %%8%s)
					%%10 = cast(%%9, dtype=f32)
					return %%10 }`, rows, values, map[bool]string{true: "add", false: "maximum"}[types[0][0] == 'f' || types[0] == "bf16"],
					types[0], types[1], map[bool]string{true: "%7", false: "%sorted"}[options == ", sorter=%order"], options))
			}
		}
	}
	for _, options := range []string{"", ", right=true", ", out_int32=true"} {
		testSearch(t, b, fmt.Sprintf(`program @bucketize { %%rows = parameter "rows" : f32[30]
			%%x = parameter "x" : f32[4,100]
			%%sorted, %%order = sort(%%rows)
			%%0 = bucketize(%%x, %%sorted%s)
			%%1 = cast(%%0, dtype=f32)
			return %%1 }`, options))
	}
}

func testSearch(t *testing.T, b *Backend, text string) {
	t.Helper()
	p := program(t, text)
	if want, got := runOptimized(t, b, p, nil), runOptimized(t, b, p, b.Supports); !slices.Equal(got, want) {
		t.Errorf("%v, want %v in\n%s", got, want, text)
	}
}
