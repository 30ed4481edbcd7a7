package onnx

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

var (
	suite     = flag.String("onnx.suite", "", "folder of ONNX's backend tests (backend/test/data of the Python package)")
	suiteOnly = flag.String("onnx.only", ".", "which of its cases run")
	suiteList = flag.String("onnx.failures", "", "file for the list of failures")
)

// TestSuite runs ONNX's own backend tests where their folder is given; scripts/onnx-conformance does.
func TestSuite(t *testing.T) {
	if *suite == "" {
		t.Log("no folder is given: scripts/onnx-conformance runs this")
		return
	}
	only := regexp.MustCompile(*suiteOnly)
	var failures bytes.Buffer
	fmt.Printf("%-20s %6s %6s\n", "category", "passed", "cases")
	passed, all := 0, 0
	ops := map[string][2]int{}
	for _, category := range []string{"node", "simple", "pytorch-operator", "pytorch-converted", "light", "real"} {
		p, n := 0, 0
		for _, c := range casesOf(t, *suite, category) {
			if !only.MatchString(c) {
				continue
			}
			n++
			err := guarded(c)
			count := ops[opOf(c)]
			count[1]++
			if err == nil {
				p++
				count[0]++
			} else {
				fmt.Fprintf(&failures, "%s/%s: %v\n", category, filepath.Base(c), strings.ReplaceAll(err.Error(), "\n", " "))
			}
			ops[opOf(c)] = count
		}
		fmt.Printf("%-20s %6d %6d\n", category, p, n)
		passed, all = passed+p, all+n
	}
	fmt.Printf("%-20s %6d %6d\n", "all", passed, all)
	names := make([]string, 0, len(ops))
	for name, n := range ops {
		if n[0] < n[1] {
			names = append(names, fmt.Sprintf("%s %d/%d", name, n[0], n[1]))
		}
	}
	sort.Strings(names)
	fmt.Printf("\nops with failures: %s\n", strings.Join(names, ", "))
	if *suiteList != "" {
		if err := os.WriteFile(*suiteList, failures.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func casesOf(t *testing.T, root, category string) []string {
	entries, err := os.ReadDir(filepath.Join(root, category))
	if err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, e := range entries {
		if e.IsDir() || category == "light" && strings.HasSuffix(e.Name(), ".onnx") {
			cases = append(cases, filepath.Join(root, category, e.Name()))
		}
	}
	return cases
}

// opOf is the op of the only kind that a case's model has, or else the case's category.
func opOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "model.onnx"))
	if err != nil {
		return filepath.Base(filepath.Dir(dir))
	}
	m, err := pb.DecodeModel(b)
	if err != nil || m.Graph == nil {
		return "?"
	}
	name := ""
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Constant" || n.OpType == name {
			continue
		}
		if name != "" {
			return filepath.Base(filepath.Dir(dir)) + " (several ops)"
		}
		name = n.OpType
	}
	return name
}

// guarded runs a case; a panic is its error.
func guarded(dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("PANIC: %v", p)
		}
	}()
	if strings.HasSuffix(dir, ".onnx") {
		return lightCase(dir)
	}
	return runCase(dir)
}

// runCase runs a model on its recorded inputs and holds the outputs to the recorded ones.
func runCase(dir string) error {
	tolerance := struct{ Rtol, Atol float64 }{1e-3, 1e-7}
	if b, err := os.ReadFile(filepath.Join(dir, "data.json")); err == nil {
		if err := json.Unmarshal(b, &tolerance); err != nil {
			return err
		}
	}
	session, err := loris.New()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer session.Close(ctx)
	if _, err := os.Stat(filepath.Join(dir, "model.onnx")); err != nil {
		return fmt.Errorf("the model is not in the package: it is downloaded")
	}
	m, err := Load(ctx, filepath.Join(dir, "model.onnx"), With(session.With()))
	if err != nil {
		return err
	}
	sets, err := filepath.Glob(filepath.Join(dir, "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return fmt.Errorf("there is no data: %v", err)
	}
	for _, set := range sets {
		if err := runSet(ctx, session, m, set, tolerance.Rtol, tolerance.Atol); err != nil {
			return err
		}
	}
	return nil
}

func runSet(ctx context.Context, s *loris.Session, m *Model, set string, rtol, atol float64) error {
	var inputs []any
	for i, a := range m.inputs {
		v, err := readValue(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)), a)
		if os.IsNotExist(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		in, err := given(s, v)
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		inputs = append(inputs, in)
	}
	outs, err := m.CallNested(ctx, inputs...)
	if err != nil {
		return err
	}
	for i, a := range m.outputs {
		want, err := readValue(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)), a)
		if os.IsNotExist(err) {
			break
		}
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		if err := held(ctx, outs[i], want, rtol, atol); err != nil {
			return fmt.Errorf("output %d, %q: %w", i, a.Name, err)
		}
	}
	return nil
}

// readValue reads a file of the type that the model declares.
func readValue(path string, a arg) (*pb.Value, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	switch {
	case a.optional:
		return pb.DecodeOptional(b)
	case a.sequence:
		return pb.DecodeSequence(b)
	}
	t, err := pb.DecodeTensor(b)
	return &pb.Value{Tensor: t}, err
}

// given makes the argument of CallNested.
func given(s *loris.Session, v *pb.Value) (any, error) {
	if v.IsSeq {
		seq := []any{}
		for _, e := range v.Values {
			g, err := given(s, e)
			if err != nil {
				return nil, err
			}
			seq = append(seq, g)
		}
		return seq, nil
	}
	if v.Tensor == nil {
		return nil, nil
	}
	c, err := (&externals{}).read(v.Tensor)
	if err != nil {
		return nil, err
	}
	return s.With().FromBytes(c.data, ir.MakeShape(c.elem.dtype(), c.dims...)), nil
}

// held compares a result with the recorded one.
func held(ctx context.Context, got any, want *pb.Value, rtol, atol float64) error {
	if want.IsSeq {
		seq, ok := got.([]any)
		if !ok || len(seq) != len(want.Values) {
			return fmt.Errorf("%v, a sequence of %d is expected", got, len(want.Values))
		}
		for i, w := range want.Values {
			if err := held(ctx, seq[i], w, rtol, atol); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
	if want.Tensor == nil {
		if got != nil {
			return fmt.Errorf("%v, nothing is expected", got)
		}
		return nil
	}
	t, ok := got.(*loris.Tensor)
	if !ok {
		return fmt.Errorf("a %T, a tensor is expected", got)
	}
	w, err := (&externals{}).read(want.Tensor)
	if err != nil {
		return err
	}
	if t.DType() != w.elem.dtype() || !slices.Equal(t.Dims(), w.dims) {
		return fmt.Errorf("shape %v, %v%v is expected", t.Shape(), w.elem.dtype(), w.dims)
	}
	data, err := t.Bytes(ctx)
	if err != nil {
		return err
	}
	return alike(w.elem.dtype(), data, w.data, rtol, atol)
}

func alike(d ir.DType, got, want []byte, rtol, atol float64) error {
	n := len(want) / d.Size()
	for i := range n {
		g, w := elementAt(d, got, i), elementAt(d, want, i)
		same := g == w || cmplx.IsNaN(g) && cmplx.IsNaN(w) || cmplx.Abs(g-w) <= atol+rtol*cmplx.Abs(w)
		if math.IsInf(real(w), 0) {
			same = g == w
		}
		if !same {
			return fmt.Errorf("element %d of %d is %v, %v is expected", i, n, g, w)
		}
	}
	return nil
}

func elementAt(d ir.DType, b []byte, i int) complex128 {
	switch {
	case d.IsComplex():
		p := d.Part()
		return complex(elements.Float(p, b, 2*i), elements.Float(p, b, 2*i+1))
	case d.IsIntegral():
		return complex(float64(elements.Int(d, b, i)), 0)
	}
	return complex(elements.Float(d, b, i), 0)
}

// lightCase runs a whole network, whose weights are fills, on the input that ONNX's runner makes.
func lightCase(path string) error {
	session, err := loris.New()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	defer session.Close(ctx)
	m, err := Load(ctx, path, With(session.With()))
	if err != nil {
		return err
	}
	var inputs []*loris.Tensor
	for _, a := range m.inputs {
		dims := []int{}
		for _, d := range a.Dims {
			dims = append(dims, max(d.Size, 1))
		}
		n := product(dims)
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(float64(i) / float64(n))
		}
		inputs = append(inputs, session.With().FromSlice(data, dims...))
	}
	outs, err := m.Call(ctx, inputs...)
	if err != nil {
		return err
	}
	for i, o := range outs {
		b, err := os.ReadFile(strings.TrimSuffix(path, ".onnx") + fmt.Sprintf("_output_%d.pb", i))
		if err != nil {
			return err
		}
		want, err := pb.DecodeTensor(b)
		if err != nil {
			return err
		}
		if err := held(ctx, o, &pb.Value{Tensor: want}, 1e-3, 1e-7); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// TestCases runs the committed cases, which scripts/make_onnx_cases.py made with ONNX's reference
// evaluator.
func TestCases(t *testing.T) {
	entries, err := os.ReadDir("testdata/cases")
	if err != nil || len(entries) < 5 {
		t.Fatalf("%d cases: %v", len(entries), err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			if err := runCase(filepath.Join("testdata", "cases", e.Name())); err != nil {
				t.Error(err)
			}
		})
	}
}
