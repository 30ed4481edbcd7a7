package torchexport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/torchexport"
)

// rewritten makes a copy of a fixture whose graph is changed.
func rewritten(t *testing.T, fixture string, change func(graph []byte) []byte) string {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join("testdata", fixture))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(f.Name, "models/") {
			changed := change(data)
			if bytes.Equal(changed, data) {
				t.Fatal("nothing to change")
			}
			data = changed
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		to.Write(data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.pt2")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A dimension that is not there is an error with the node, whichever op has it.
func TestDimensionThatIsNotThere(t *testing.T) {
	dim := regexp.MustCompile(`("name":\s*"dim",\s*"arg":\s*\{"as_int":\s*)-?\d+`)
	for _, n := range []string{"4294967295", "9", "-7"} {
		path := rewritten(t, "views.pt2", func(graph []byte) []byte { return dim.ReplaceAll(graph, []byte("${1}"+n)) })
		ctx := context.Background()
		m, err := torchexport.Load(ctx, path)
		if err != nil {
			continue // refused at once
		}
		var in []*loris.Tensor
		for _, a := range m.Signature().Inputs {
			dims := make([]int, len(a.Dims))
			for i, d := range a.Dims {
				dims[i] = max(d.Size, 2)
			}
			in = append(in, loris.With(loris.As(a.DType)).Ones(dims...))
		}
		_, err = m.Call(ctx, in...)
		var oe *loris.OpError
		if !errors.As(err, &oe) || !strings.Contains(err.Error(), "node") {
			t.Errorf("dim %s: %v", n, err)
		}
	}
}
