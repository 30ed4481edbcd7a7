package jsonread

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// texts are JSON and what only looks like it.
var texts = []string{
	`{}`, `[]`, `{"a":1,"b":[true,false,null,"x"]}`, ` [ 1 , -2.5e+3 , 0 , 0.5 , 1E9 ] `, `"é\n\ud83d\ude00"`, `"é"`,
	`[[[[1]]]]`, ``, ` `, `{`, `[1,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `NaN`, `tru`, `nul`,
	`"`, `"\x"`, "\"\n\"", "\"\xff\"", `"\u12"`, `1 2`, `[1 2]`, `{"a":1 "b":2}`, `]`, "\x00", `{"a":1}x`,
}

func whole(text string, depth int) error {
	r := New([]byte(text), depth)
	if _, err := r.Skip(); err != nil {
		return err
	}
	return r.End()
}

func TestAcceptsWhatJSONIs(t *testing.T) {
	for _, text := range texts {
		err := whole(text, 100)
		// encoding/json replaces what is not UTF-8; here it is a mistake.
		if want := json.Valid([]byte(text)) && !strings.Contains(text, "\xff"); want != (err == nil) {
			t.Errorf("%q: %v, valid %v", text, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	if err := whole(strings.Repeat("[", 100)+strings.Repeat("]", 100), 100); err != nil {
		t.Error(err)
	}
	for _, text := range []string{strings.Repeat("[", 101) + strings.Repeat("]", 101), strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 1<<20)} {
		if err := whole(text, 100); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("%.20s…: %v", text, err)
		}
	}
}

func FuzzSkip(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := New(data, 1000)
		_, err := r.Skip()
		if err == nil {
			err = r.End()
		}
		if err == nil && !json.Valid(data) {
			t.Errorf("%q is taken for JSON", data)
		}
	})
}

// TestName reads the same names in texts one after another: they are those that String reads, and an old
// one is not lost when many others have come.
func TestName(t *testing.T) {
	var r Reader
	for i := range 3 * maxNames {
		for _, text := range []string{`"x"`, `"a\"b"`, `"` + strings.Repeat("long", maxName) + `"`, fmt.Sprintf(`"input%d"`, i), `""`} {
			want, err := New([]byte(text), 1).String()
			if err != nil {
				t.Fatal(err)
			}
			r.Reset([]byte(text), 1)
			if got, err := r.Name(); got != want || err != nil || r.End() != nil {
				t.Fatalf("%s: %q, %v", text, got, err)
			}
		}
	}
	if len(r.names) > maxNames {
		t.Errorf("%d names are kept", len(r.names))
	}
	for _, bad := range []string{"", "1", `"`, `"\x"`, "\"\x01\"", "\"\xff\""} {
		_, want := New([]byte(bad), 1).String()
		r.Reset([]byte(bad), 1)
		if _, err := r.Name(); err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("%q: %v, want %v", bad, err, want)
		}
	}
}
