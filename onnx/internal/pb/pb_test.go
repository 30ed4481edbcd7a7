package pb

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the writer makes of a model that was read is read as the same.
func TestEncodeIsRead(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/*/model.onnx")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeModel(b)
		if err != nil {
			t.Fatal(err)
		}
		once := EncodeModel(m)
		again, err := DecodeModel(once)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, EncodeModel(again)) || len(again.Graph.Nodes) != len(m.Graph.Nodes) {
			t.Errorf("%s is read otherwise than it was written", f)
		}
	}
}

// Damage is said with its place, and deep messages end before the stack does.
func TestDamage(t *testing.T) {
	deep := []byte{}
	for range 2000 { // a graph in an attribute of a node of a graph …
		w := &writer{}
		w.message(6, func(w *writer) { w.message(1, func(w *writer) { w.bytes(5, deep) }) })
		deep = w.b
	}
	whole := &writer{}
	whole.message(7, func(w *writer) { w.message(1, func(w *writer) { w.bytes(5, deep) }) })
	for _, c := range []struct {
		bytes []byte
		says  string
	}{
		{[]byte{0x3a, 0x05, 1}, "says it has 5 bytes, 1 are left"},
		{[]byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, "byte 0, in ModelProto"},
		{[]byte{0x08}, "cut off"},
		{[]byte{0x0b}, "wire type 3"},
		{[]byte{0x00, 0x01}, "no number of a field"},
		{[]byte{0x38, 0x01}, "a message is expected"},
		{[]byte{0x3a, 0x04, 0x0a, 0x02, 0x0a, 0x7f}, "byte 4, in NodeProto"},
		{whole.b, "nest deeper"},
	} {
		_, err := DecodeModel(c.bytes)
		var at *Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%x: %v, %q is expected", c.bytes[:min(len(c.bytes), 12)], err, c.says)
		}
	}
}
