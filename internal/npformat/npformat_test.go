package npformat

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

var golden = flag.String("golden", "testdata/numpy.json", "the `file` to compare with, from scripts/make_npformat_golden.py")

// value is a number of the golden file, where nan and inf are strings.
type value struct {
	i int64
	f float64
}

func (v *value) UnmarshalJSON(b []byte) (err error) {
	s := strings.Trim(string(b), `"`)
	if v.f, err = strconv.ParseFloat(s, 64); err != nil {
		return err
	}
	v.i, _ = strconv.ParseInt(s, 10, 64) // fails for floats only, which don't use it
	return nil
}

type goldenCase struct {
	Name    string
	DType   string
	Shape   []int
	Data    []value
	Step    float64 // without data, the elements are its multiples
	Options struct {
		Precision *int
		Suppress  bool `json:"suppress_small"`
		Separator *string
		Prefix    string
		Suffix    string
		LineWidth *int `json:"max_line_width"`
		Threshold *int
		EdgeItems *int
	}
	Want string
}

func set[T any](dst *T, src *T) {
	if src != nil {
		*dst = *src
	}
}

func (c goldenCase) options() Options {
	o := Defaults()
	set(&o.Precision, c.Options.Precision)
	set(&o.Separator, c.Options.Separator)
	set(&o.LineWidth, c.Options.LineWidth)
	set(&o.Threshold, c.Options.Threshold)
	set(&o.EdgeItems, c.Options.EdgeItems)
	o.Suppress, o.Prefix, o.Suffix = c.Options.Suppress, c.Options.Prefix, c.Options.Suffix
	return o
}

func (c goldenCase) elem(t *testing.T) Elem {
	kind, ok := map[string]Kind{
		"bool": Bool, "uint8": Int, "int32": Int, "int64": Int,
		"float64": Float64, "float32": Float32, "float16": Float16,
	}[c.DType]
	if !ok {
		t.Fatalf("unknown dtype %q", c.DType)
	}
	at := func(i int) value {
		if c.Data == nil {
			return value{int64(i) * int64(c.Step), float64(i) * c.Step}
		}
		return c.Data[i]
	}
	return Elem{
		Kind:  kind,
		Int:   func(i int) int64 { return at(i).i },
		Float: func(i int) float64 { return kind.round(at(i).f) },
	}
}

func TestMatchesNumPy(t *testing.T) {
	text, err := os.ReadFile(*golden)
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 200 {
		t.Errorf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if got := Format(c.Shape, c.elem(t), c.options()); got != c.Want {
			t.Errorf("%s %s\n got\n%s\nwant\n%s", c.DType, c.Name, got, c.Want)
		}
	}
}

// floats is an Elem of the values given.
func floats(kind Kind, v ...float64) Elem {
	return Elem{Kind: kind, Float: func(i int) float64 { return v[i] }}
}

// TestBFloat16 covers the kind that NumPy lacks.
func TestBFloat16(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want string
	}{
		{[]float64{BFloat16.round(0.1), BFloat16.round(3.14159), -2}, "[ 0.1   3.14 -2.  ]"},
		{[]float64{BFloat16.round(1e-30), 1}, "[1.e-30 1.e+00]"},
		{[]float64{996, 1}, "[996.   1.]"},
		{[]float64{1000, 1}, "[1.e+03 1.e+00]"},
		{[]float64{0.25, math.NaN()}, "[0.25  nan]"},
		{[]float64{0x1.fep127, 1}, "[3.39e+38 1.00e+00]"}, // the largest
	} {
		if got := Format([]int{len(c.in)}, floats(BFloat16, c.in...), Defaults()); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
}

// TestReadsOnlyWhatItPrints formats arrays far too large to exist.
func TestReadsOnlyWhatItPrints(t *testing.T) {
	eight := []int{6, 6, 6, 6, 6, 6, 6, 6}
	for _, c := range []struct {
		shape []int
		o     Options
		reads int
	}{
		{[]int{1 << 40}, Defaults(), 6},
		{[]int{1 << 30, 1 << 30}, Defaults(), 36},
		{[]int{1 << 30, 2, 1 << 30}, Defaults(), 6 * 2 * 6},
		{[]int{10, 10, 10, 10, 10}, Defaults(), 6 * 6 * 6 * 6 * 6},
		{eight, Defaults(), 2 * 2 * 2 * 2 * 2 * 2 * 2 * 2},
		{eight, Options{EdgeItems: 1, LineWidth: 75, Separator: " "}, 256},
		{[]int{1 << 20}, Options{Threshold: 1 << 30, EdgeItems: 3, Limit: 100}, 6},
		{[]int{1000}, Defaults(), 1000},
		{[]int{1 << 20}, Options{}, 2}, // at least one edge item
	} {
		seen := map[int]bool{}
		e := Elem{Kind: Int, Int: func(i int) int64 {
			if seen[i] {
				t.Errorf("%v: read element %d twice", c.shape, i)
			}
			seen[i] = true
			return 7
		}}
		got := Format(c.shape, e, c.o)
		if len(seen) != c.reads || strings.Count(got, "7") != c.reads {
			t.Errorf("%v: read %d and printed %d elements, want %d", c.shape, len(seen), strings.Count(got, "7"), c.reads)
		}
	}
}

// TestLimitOff prints everything NumPy would.
func TestLimitOff(t *testing.T) {
	o := Defaults()
	o.Limit = 0
	reads := 0
	Format([]int{7, 7, 7, 7, 7, 7}, Elem{Kind: Bool, Int: func(int) int64 { reads++; return 1 }}, o)
	if want := 6 * 6 * 6 * 6 * 6 * 6; reads != want {
		t.Errorf("read %d elements, want %d", reads, want)
	}
}

func ExampleFormat() {
	x := []float32{0.1, 2, -3.25, 1000}
	e := Elem{Kind: Float32, Float: func(i int) float64 { return float64(x[i]) }}
	o := Defaults()
	o.Precision = 4
	fmt.Println(Format([]int{2, 2}, e, o))
	// Output:
	// [[ 1.00e-01  2.00e+00]
	//  [-3.25e+00  1.00e+03]]
}
