package torchexport

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// graphs returns the graphs of the fixtures.
func graphs(tb testing.TB) [][]byte {
	files, err := filepath.Glob(filepath.Join("testdata", "*.pt2"))
	if err != nil || len(files) == 0 {
		tb.Fatal("no fixtures", err)
	}
	var out [][]byte
	for _, file := range files {
		z, err := zip.OpenReader(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/models/model.json") {
				continue
			}
			r, err := f.Open()
			if err != nil {
				tb.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				tb.Fatal(err)
			}
			out = append(out, b)
		}
		z.Close()
	}
	return out
}

// FuzzProgram reads texts as graphs: errors, and no panics.
func FuzzProgram(f *testing.F) {
	for _, b := range graphs(f) {
		if len(b) < 20000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readProgram(b)
		if err != nil {
			return
		}
		(&Model{program: p}).Signature()
	})
}

// FuzzExpr reads size expressions and evaluates them.
func FuzzExpr(f *testing.F) {
	for _, s := range []string{
		"Mul(Integer(4), Symbol('s77', positive=True, integer=True))", "Add(Integer(-1), Min(Integer(2), Symbol('s0')))",
		"torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(2))", "Mod(Integer(7), Integer(0))", "Pow(Integer(3), Integer(40))",
		"Piecewise(ExprCondPair(Integer(1), Equality(Symbol('s0'), Integer(2))), ExprCondPair(Integer(0), true))",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parseExpr(text)
		if err != nil {
			return
		}
		values := map[string]int64{}
		e.eval(values)
		e.solve(values, 12)
		e.symbols(func(s string) { values[s] = 6 })
		e.eval(values)
		_ = e.String()
	})
}

// FuzzPickle reads pickles: only tensors come of them.
func FuzzPickle(f *testing.F) {
	if b, err := os.ReadFile(filepath.Join("testdata", "data.pkl")); err == nil {
		f.Add(b)
	} else {
		f.Fatal(err)
	}
	f.Add([]byte("\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."))
	f.Fuzz(func(t *testing.T, b []byte) {
		values, err := unpickle(b)
		if err != nil {
			return
		}
		for _, v := range values {
			if w, ok := v.(*pickled); ok {
				s := &stored{dtype: w.dtype, sizes: w.sizes, strides: w.strides, offset: w.offset}
				_, _, _ = s.dense(make([]byte, 64))
			}
		}
	})
}
