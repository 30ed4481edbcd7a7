package torchexport

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// change writes a copy of a fixture with the members that edit changes; nil drops one.
func change(t *testing.T, name string, edit func(member string, b []byte) []byte) string {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("testdata", name+".pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if b = edit(f.Name, b); b == nil {
			continue
		}
		m, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "changed.pt2")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func replaceIn(suffix, old, with string) func(string, []byte) []byte {
	return func(member string, b []byte) []byte {
		if strings.HasSuffix(member, suffix) {
			return bytes.Replace(b, []byte(old), []byte(with), 1)
		}
		return b
	}
}

func drop(suffix string) func(string, []byte) []byte {
	return func(member string, b []byte) []byte {
		if strings.HasSuffix(member, suffix) {
			return nil
		}
		return b
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	for _, tc := range []struct {
		what string
		edit func(string, []byte) []byte
		says string
	}{
		{"unknown op", replaceIn("model.json", "aten.conv2d.default", "aten.conv9d.default"), "aten.conv9d.default (node conv2d, 1 uses, model.py:"},
		{"major version", replaceIn("model.json", `"major": 8`, `"major": 9`), "version 9."},
		{"no weight", drop("weights/weight_0"), "there is no such file"},
		{"no config", drop("weights_config.json"), "no values for c1.weight"},
		{"weight outside", replaceIn("weights_config.json", `"weight_0"`, `"../../weight_0"`), ""},
		{"short weight", replaceIn("weights_config.json", `"weight_0"`, `"weight_1"`), "its storage of 24 bytes"},
		{"wrong dtype", replaceIn("weights_config.json", `"dtype": 7`, `"dtype": 6`), "the graph says"},
		{"unknown dtype", replaceIn("weights_config.json", `"dtype": 7`, `"dtype": 77`), "element type 77"},
		{"pickled weight", replaceIn("weights_config.json", `"use_pickle": false`, `"use_pickle": true`), "only tensors"},
		{"undefined value", replaceIn("model.json", `{"as_tensor": {"name": "x"}}, "kind"`, `{"as_tensor": {"name": "z"}}, "kind"`), `"z" is not defined`},
		{"no graph", drop("model.json"), "no program"},
		{"not JSON", replaceIn("model.json", "{", "["), "not a program"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			_, err := Load(context.Background(), change(t, "conv_eval", tc.edit))
			if tc.says == "" {
				if err != nil {
					t.Errorf("only the last part of a path counts: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v, want %q", err, tc.says)
			}
		})
	}
}

func TestUnsupportedOpsAreListedAtOnce(t *testing.T) {
	_, err := Load(context.Background(), change(t, "conv_eval", func(member string, b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte("aten.conv2d.default"), []byte("mine.conv.default"))
		return bytes.ReplaceAll(b, []byte("aten.linear.default"), []byte("mine.fc.default"))
	}))
	var u *UnsupportedError
	if !errors.As(err, &u) || len(u.Nodes) != 2 || u.Nodes[0].Count != 3 || u.Nodes[0].Line == "" {
		t.Errorf("%v", err)
	}
}

func TestPicklesMakeOnlyTensors(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "data.pkl"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := unpickle(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(values) != 3 {
		t.Errorf("%v", maps.Keys(values))
	}
	if w, ok := values["tied"].(*pickled); !ok || w.strides[0] != 2 || w.sizes[0] != 3 {
		t.Errorf("%+v", values["tied"])
	}
	for _, text := range []string{
		"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
		"\x80\x02cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
		"\x80\x02}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00ls\x85Rs.",
	} {
		if _, err := unpickle([]byte(text)); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRangesAndSizesAreEnforcedWithNames(t *testing.T) {
	e, err := parseExpr("Add(Integer(-1), Mul(Integer(2), Symbol('s0', integer=True)))")
	if err != nil {
		t.Fatal(err)
	}
	if name, v, ok := e.solve(map[string]int64{}, 13); !ok || name != "s0" || v != 7 {
		t.Errorf("%q %d %v", name, v, ok)
	}
	if _, _, ok := e.solve(map[string]int64{}, 12); ok {
		t.Error("2*s0 - 1 = 12 was solved")
	}
	for _, bad := range []string{"", "Foo(Integer(1))", "Integer(", "Symbol()", strings.Repeat("Add(", 100) + "Integer(1)" + strings.Repeat(")", 100)} {
		if _, err := parseExpr(bad); err == nil {
			t.Errorf("%.20q was read", bad)
		}
	}
}
