package escape

import (
	"bytes"
	"errors"
	"testing"
)

var cases = []struct{ in, want string }{
	{"", ""},
	{"plain text,\n\tlines", "plain text,\n\tlines"},
	{"größer ± 2 · 東京 🙂", "größer ± 2 · 東京 🙂"},
	{"\x1b[2J\x1b]0;owned\a", `\u001b[2J\u001b]0;owned\u0007`},
	{"a\rb\x00\x7f", `a\u000db\u0000\u007f`},
	{"\u009b2J", `\u009b2J`},
	{"\u202eabc\u2066", `\u202eabc\u2066`},
	{"\U000e0041", `\U000e0041`},
	{"\xff\xc3", `\xff\xc3`},
	{"\ufffd", `\ufffd`},
}

func TestText(t *testing.T) {
	for _, c := range cases {
		if got := Text(c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

// However the text is cut into writes, the result is the same.
func TestWriter(t *testing.T) {
	for _, c := range cases {
		for size := 1; size <= len(c.in)+1; size++ {
			var b bytes.Buffer
			w := NewWriter(&b)
			for rest := []byte(c.in); len(rest) > 0; {
				n := min(size, len(rest))
				if k, err := w.Write(rest[:n]); k != n || err != nil {
					t.Fatal(k, err)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil || b.String() != c.want {
				t.Errorf("%q in pieces of %d: %q, %v, want %q", c.in, size, b.String(), err, c.want)
			}
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterError(t *testing.T) {
	if _, err := NewWriter(broken{}).Write([]byte("x")); err == nil {
		t.Error("no error")
	}
}
