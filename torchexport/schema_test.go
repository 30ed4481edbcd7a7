package torchexport

import (
	"math"
	"testing"
)

func TestNumbersThatJSONLacks(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[1, -2.5]`, `[1, -2.5]`},
		{`{"a": -Infinity, "b": [Infinity,NaN]}`, `{"a": "-Infinity", "b": ["Infinity","NaN"]}`},
		{`{"a \" NaN": "-Infinity\\", "b": NaN}`, `{"a \" NaN": "-Infinity\\", "b": "NaN"}`},
		{`{"a": "NaN`, `{"a": "NaN`},
		{`N-I`, `N-I`},
		{`"NaN\`, `"NaN\`},
	} {
		if got := string(quoteNonFinite([]byte(c.text))); got != c.want {
			t.Errorf("%s is %s, want %s", c.text, got, c.want)
		}
	}
	var got []jsonFloat
	if err := decodeJSON(quoteNonFinite([]byte(`[-Infinity, NaN, 2]`)), &got); err != nil ||
		!math.IsInf(float64(got[0]), -1) || !math.IsNaN(float64(got[1])) || got[2] != 2 {
		t.Error(got, err)
	}
}
