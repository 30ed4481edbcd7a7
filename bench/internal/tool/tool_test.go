package tool

import (
	"flag"
	"io"
	"slices"
	"testing"
)

func TestThreads(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []int // nil: an error
	}{
		{nil, []int{1, 2}},
		{[]string{"--threads", "4"}, []int{4}},
		{[]string{"--threads=3,1,8"}, []int{3, 1, 8}},
		{[]string{"--threads", "3", "--threads", "2"}, []int{2}},
		{[]string{"--threads", ""}, nil},
		{[]string{"--threads", "0"}, nil},
		{[]string{"--threads", "1,two"}, nil},
	} {
		f := flag.NewFlagSet("test", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		var got []int
		Threads(f, &got)
		if err := f.Parse(c.args); (err == nil) != (c.want != nil) || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.args, got, err, c.want)
		}
	}
}
