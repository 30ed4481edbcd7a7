package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// file returns a file of the header and data given.
func file(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func readBytes(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// tensorJSON is a header of one tensor.
func tensorJSON(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func TestMalformed(t *testing.T) {
	const a = `"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	huge := binary.LittleEndian.AppendUint64(nil, 1<<63)
	// Each header has a mark, ^, where the error belongs.
	for _, c := range []struct{ header, data, reason string }{
		{``, ``, "'{'"},
		{`^[]`, ``, "'{'"},
		{`^ {}`, ``, "'{'"},
		{`{^`, ``, "a string"},
		{`{^1:2}`, ``, "a string"},
		{`{"a"^}`, ``, "':'"},
		{`{"a":^}`, ``, "'{'"},
		{`{"a":^["U8",[1],[0,1]]}`, `x`, "'{'"},
		{`{` + a + `^`, `x`, `',' or '}'`},
		{`{` + a + `,^}`, `x`, "a string"},
		{`{` + a + `}^{}`, `x`, "end of the header"},
		{`{` + a + "}^\x00", `x`, "end of the header"},
		{`{` + a + `,^` + a + `}`, `x`, "twice"},
		{`{"__metadata__":{},^"__metadata__":{}}`, ``, "twice"},
		{`{"__metadata__":null,^"__metadata__":null}`, ``, "twice"},
		{`{"__metadata__":{"k":"v",^"\u006b":"w"}}`, ``, "twice"},
		{`{"__metadata__":{"k":^1}}`, ``, "a string"},
		{`{"__metadata__":^[]}`, ``, "'{'"},
		{`{"__metadata__":^nul}`, ``, "JSON"},
		{"{\"a^\xff\":1}", ``, "UTF-8"},
		{`{^"a`, ``, "without end"},
		{"{\"a^\n\":1}", ``, "control"},
		{`{"a\^`, ``, "an escape"},
		{`{"a^\x":1}`, ``, "escape"},
		{`{"a^\u12":1}`, ``, "escape"},
		{`{"a^\u+123":1}`, ``, "escape"},
		{`{"^\ud800":1}`, ``, "escape"},
		{`{"^\ud800\u0041":1}`, ``, "escape"},
		{`{"^\udc00":1}`, ``, "escape"},
		{`{"a":{"dtype":"U8",^"dtype":"U8"}}`, ``, "twice"},
		{`{^"a":{"dtype":"U8","shape":[1]}}`, ``, "data_offsets"},
		{`{^"a":{"dtype":"U8","data_offsets":[0,1]}}`, ``, "shape"},
		{`{^"a":{"shape":[1],"data_offsets":[0,1]}}`, ``, "dtype"},
		{`{"a":{"x":^tru}}`, ``, "JSON"},
		{tensorJSON("U9", "[1]", "[0,1]"), `x`, "unknown dtype"},
		{tensorJSON("U8", "^1", "[0,1]"), `x`, "'['"},
		{tensorJSON("U8", "[^-1]", "[0,1]"), `x`, "natural"},
		{tensorJSON("U8", "[1^.0]", "[0,1]"), `x`, "']'"},
		{tensorJSON("U8", "[^01]", "[0,1]"), `x`, "leading zero"},
		{tensorJSON("U8", "[^9223372036854775808]", "[0,1]"), `x`, "63 bits"},
		{tensorJSON("U8", "["+strings.Repeat("1,", 64)+"^1]", "[0,1]"), `x`, "more than 64"},
		{tensorJSON("F32", "^[9223372036854775807]", "[0,1]"), `x`, "overflow"},
		{tensorJSON("U8", "^[9223372036854775807]", "[0,1]"), `x`, "overflow"},
		{tensorJSON("U8", "^[4294967296,4294967296,0]", "[0,0]"), ``, "overflow"},
		{tensorJSON("F4", "^[3]", "[0,2]"), `xx`, "whole bytes"},
		{tensorJSON("U8", "[1]", "^[0]"), `x`, "1 numbers"},
		{tensorJSON("U8", "[1]", "[0,1,^1]"), `x`, "more than 2"},
		{tensorJSON("U8", "[1]", "^[1,0]"), `x`, "before it begins"},
		{tensorJSON("U8", "[1]", "^[1,2]"), `xx`, "hole"},
		{tensorJSON("U8", "[2]", "^[0,2]"), `x`, "beyond"},
		{tensorJSON("U8", "[2]", "^[0,1]"), `x`, "room for 1"},
		{tensorJSON("F32", "[]", "^[0,1]"), `x`, "room for 1"},
		{`{` + a + `,"b":{"dtype":"U8","shape":[1],"data_offsets":^[0,1]}}`, `x`, "inside"},
		{`{` + a + `,"b":{"dtype":"U8","shape":[1],"data_offsets":^[2,3]}}`, `xyz`, "hole"},
		// An empty tensor inside another is an overlap too.
		{`{"a":{"dtype":"U8","shape":[0],"data_offsets":^[1,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, `xy`, "inside"},
		{`{` + a + `}`, `x^yz`, "2 bytes belong to no tensor"},
		{`{}`, `^x`, "1 bytes belong to no tensor"},
	} {
		marked := string(file(c.header, c.data))
		clean := file(strings.Replace(c.header, "^", "", 1), strings.Replace(c.data, "^", "", 1))
		want := int64(max(strings.Index(marked, "^"), lengthSize))
		if strings.Contains(c.header, "U9") {
			want = int64(strings.Index(marked, `"U9"`))
		}
		expectFormatError(t, clean, want, c.reason)
	}
	expectFormatError(t, nil, 0, "too few")
	expectFormatError(t, make([]byte, 7), 0, "too few")
	expectFormatError(t, append(huge, "{}"...), 0, "more than 100000000")
	expectFormatError(t, file("{}", "")[:9], 0, "header of 2 bytes in a file of 9")
}

func expectFormatError(t *testing.T, b []byte, offset int64, reason string) {
	t.Helper()
	_, err := readBytes(b)
	var fe *FormatError
	if !errors.As(err, &fe) {
		t.Errorf("%.200q: error %v", b, err)
		return
	}
	if fe.Offset != offset || !strings.Contains(fe.Reason, reason) {
		t.Errorf("%.200q:\n got %v\nwant %q at %d", b, err, reason, offset)
	}
}

func TestWellFormed(t *testing.T) {
	for _, c := range []struct {
		name, header, data string
		tensors            int
	}{
		{"nothing", `{}`, ``, 0},
		{"white space", "{ \"a\" : { \"dtype\":\t\"U8\",\n\"shape\":[ ] , \"data_offsets\":[ 0 , 1 ]\r} } \n ", `x`, 1},
		{"null metadata", `{"__metadata__":null}`, ``, 0},
		{"unknown members", `{"a":{"x":[1e3,{"y":null}, "]"] ,"dtype":"U8","z":-0.5,"shape":[1],"data_offsets":[0,1]}}`, `x`, 1},
		{"data in another order than names", `{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, `xy`, 2},
		{"several empty tensors in one place", `{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F64","shape":[3,0],"data_offsets":[0,0]}}`, ``, 2},
		{"nothing overflows after a zero", tensorJSON("U8", "[0,4294967296,4294967296]", "[0,0]"), ``, 1},
		{"empty name", `{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, `x`, 1},
		{"six-bit elements", tensorJSON("F6_E2M3", "[4]", "[0,3]"), `xyz`, 1},
	} {
		f, err := readBytes(file(c.header, c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := len(f.Tensors()); got != c.tensors {
			t.Errorf("%s: %d tensors", c.name, got)
		}
	}
}

func TestStrings(t *testing.T) {
	f, err := readBytes(file(`{"__metadata__":{"k\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é":"v\u0000"}}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	const key = "k\"\\/\b\f\n\r\té😀é"
	if got := f.Metadata(); len(got) != 1 || got[key] != "v\x00" {
		t.Errorf("metadata %q", got)
	}
}

func TestUseErrors(t *testing.T) {
	f, err := readBytes(file(tensorJSON("U8", "[2]", "[0,2]"), "xy"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bytes("b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown name: %v", err)
	}
	if _, ok := f.Lookup("__metadata__"); ok {
		t.Error("the metadata is a tensor")
	}
	if err := f.ReadInto("a", make([]byte, 3)); !errors.Is(err, ErrInvalidTensor) {
		t.Errorf("wrong buffer: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestShortReader has a reader with less than it promises, as of a file that
// was truncated after it was opened.
func TestShortReader(t *testing.T) {
	whole := file(tensorJSON("U8", "[2]", "[0,2]"), "xy")
	for _, n := range []int{0, 4, 20} {
		if _, err := Read(bytes.NewReader(whole[:n]), int64(len(whole))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	f, err := Read(bytes.NewReader(whole[:len(whole)-1]), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bytes("a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Bytes: %v", err)
	}
}

func TestOpenErrorsNamePath(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(dir, "bad.safetensors")
	if err := os.WriteFile(path, file("{]", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	var fe *FormatError
	if _, err := Open(path); !errors.As(err, &fe) || !strings.Contains(err.Error(), path) {
		t.Errorf("bad file: %v", err)
	}
}

// sparse is a file of which only the header was written.
type sparse struct{ head []byte }

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

// A file may be larger than memory, as a sparse one is for nothing.
func TestTensorLargerThanMemory(t *testing.T) {
	const size = 1 << 50
	head := file(tensorJSON("U8", fmt.Sprint("[", size, "]"), fmt.Sprint("[0,", size, "]")), "")
	f, err := Read(sparse{head}, int64(len(head))+size)
	if err != nil {
		t.Fatal(err)
	}
	var oom *ir.OutOfMemory
	if _, err := f.Bytes("a"); !errors.As(err, &oom) || oom.Wanted != size {
		t.Errorf("got %v", err)
	}
}
