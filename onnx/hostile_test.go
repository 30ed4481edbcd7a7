package onnx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// modelOf is a model with one input x, f32[n], and the nodes given as "Op in in -> out out".
func modelOf(opset int64, nodes ...string) *pb.Model {
	g := &pb.Graph{Name: "g", Inputs: []*pb.ValueInfo{{Name: "x", Type: &pb.Type{Kind: pb.KindTensor, DType: 1, HasShape: true, Shape: []pb.Dim{{Symbol: "n"}}}}},
		Outputs: []*pb.ValueInfo{{Name: "y"}}}
	for _, line := range nodes {
		left, right, _ := strings.Cut(line, " -> ")
		words := strings.Fields(left)
		domain, op := "", words[0]
		if i := strings.LastIndex(op, "."); i >= 0 {
			domain, op = op[:i], op[i+1:]
		}
		g.Nodes = append(g.Nodes, &pb.Node{Name: "n" + op, Domain: domain, OpType: op, Inputs: words[1:], Outputs: strings.Fields(right)})
	}
	return &pb.Model{IRVersion: 10, Graph: g, Opsets: []pb.Opset{{Version: opset}}}
}

// Everything that is not supported is listed at once, with its node and reason.
func TestUnsupportedIsListed(t *testing.T) {
	m := modelOf(26, "Relu x -> a", "StringSplit a -> b", "com.vendor.Fancy b -> c", "Frobnicate c -> y")
	m.Graph.Inputs[0].Type.DType = int64(tString)
	_, err := Decode("m.onnx", pb.EncodeModel(m))
	var u *UnsupportedError
	if !errors.As(err, &u) {
		t.Fatal(err)
	}
	all := strings.Join(u.Items, "\n")
	for _, want := range []string{`com.vendor.Fancy (node 2 "nFancy" of graph "g")`, `Frobnicate (node 3`, "StringSplit (node 1", "strings are not supported", `input "x": STRING elements`, "opset 26"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in:\n%s", want, all)
		}
	}
	if len(u.Items) != 5 {
		t.Errorf("%d items:\n%s", len(u.Items), all)
	}
}

// A graph that contradicts itself is refused before anything is made of it.
func TestWrongGraphs(t *testing.T) {
	twice := modelOf(22, "Relu x -> y")
	twice.Graph.Initializers = []*pb.Tensor{{Name: "w", DType: 1, Dims: []int64{0}, HasRaw: true}, {Name: "w", DType: 1, Dims: []int64{0}, HasRaw: true}}
	tensor := func(t *pb.Tensor) *pb.Model {
		m := modelOf(22, "Relu x -> y")
		t.Name = "w"
		m.Graph.Initializers = []*pb.Tensor{t}
		return m
	}
	recursive := modelOf(22, "own.f x -> y")
	recursive.Functions = []*pb.Function{{Name: "f", Domain: "own", Inputs: []string{"a"}, Outputs: []string{"b"}, Nodes: []*pb.Node{{OpType: "f", Domain: "own", Inputs: []string{"a"}, Outputs: []string{"b"}}}}}
	for name, c := range map[string]struct {
		model *pb.Model
		says  string
	}{
		"cycle":         {modelOf(22, "Add x b -> a", "Relu a -> b", "Relu b -> y"), `input "b" is not defined before it`},
		"no output":     {modelOf(22, "Relu x -> z"), `output "y" of graph "g" is not defined`},
		"inputs":        {modelOf(22, "Relu x x -> y"), "it has 2 inputs, 1 are expected"},
		"names":         {twice, "two initialisers"},
		"recursion":     {recursive, "calls itself"},
		"lying size":    {tensor(&pb.Tensor{DType: 1, Dims: []int64{1 << 40}, HasRaw: true, Raw: []byte{1}}), "1 bytes do not fill"},
		"overflow":      {tensor(&pb.Tensor{DType: 1, Dims: []int64{1 << 32, 1 << 32}, HasRaw: true}), "no shape"},
		"negative":      {tensor(&pb.Tensor{DType: 1, Dims: []int64{-1}, HasRaw: true}), "no shape"},
		"type":          {tensor(&pb.Tensor{DType: 99, Dims: []int64{1}}), "element type 99 is unknown"},
		"not from file": {tensor(&pb.Tensor{DType: 1, Dims: []int64{1}, Location: pb.External}), "not read from a folder"},
	} {
		_, err := Decode("m.onnx", pb.EncodeModel(c.model))
		var f *FormatError
		if !errors.As(err, &f) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q is expected", name, err, c.says)
		}
	}
}

// Files with holes have any size: more than the memory there is, is an error, and so is what is no file.
func TestSparseFiles(t *testing.T) {
	dir := t.TempDir()
	sparse := func(name string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<43)); err != nil {
			t.Skip("the file system has no such files: ", err)
		}
		return path
	}
	if _, err := Load(context.Background(), sparse("m.onnx")); !errors.As(err, new(*loris.OutOfMemory)) {
		t.Errorf("a model: %v", err)
	}
	sparse("w")
	m := modelOf(20, "Add x w -> y")
	m.Graph.Initializers = []*pb.Tensor{{Name: "w", DType: 1, Dims: []int64{1 << 41}, Location: pb.External,
		External: []pb.Entry{{Key: "location", Value: "w"}}}}
	path := filepath.Join(dir, "external.onnx")
	if err := os.WriteFile(path, pb.EncodeModel(m), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(context.Background(), path); !errors.As(err, new(*loris.OutOfMemory)) {
		t.Errorf("external data: %v", err)
	}
	if _, err := Load(context.Background(), dir); !errors.As(err, new(*FormatError)) {
		t.Errorf("a folder: %v", err)
	}
}

// External data is read from the model's folder only, and only where the file holds what it says.
func TestExternalData(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	inside := filepath.Join(dir, "model")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	data := elements.EncodeFloats(loris.F32, []float64{0, 1, 2, 3})
	for _, f := range []string{filepath.Join(dir, "secret"), filepath.Join(inside, "w.bin")} {
		if err := os.WriteFile(f, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	links := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(inside, "link")) == nil
	for _, c := range []struct {
		location, offset, length, says string
	}{
		{"w.bin", "8", "8", ""},
		{"w.bin", "8", "", ""},
		{"w.bin", "12", "8", "has 16 bytes"},
		{"w.bin", "0", "4", "do not fill"},
		{"w.bin", "-8", "8", "do not fill"},
		{"w.bin", "9223372036854775807", "8", "has 16 bytes"},
		{"w.bin", "x", "8", "no number"},
		{"../secret", "0", "8", "outside"},
		{filepath.Join(dir, "secret"), "0", "8", "outside"},
		{"link", "0", "8", "escapes"},
		{".", "0", "8", ""},
		{"missing", "0", "8", "no such file"},
	} {
		m := modelOf(22, "Add x w -> y")
		ext := []pb.Entry{{Key: "location", Value: c.location}, {Key: "offset", Value: c.offset}}
		if c.length != "" {
			ext = append(ext, pb.Entry{Key: "length", Value: c.length})
		}
		m.Graph.Initializers = []*pb.Tensor{{Name: "w", DType: 1, Dims: []int64{2}, Location: pb.External, External: ext}}
		file := filepath.Join(inside, "m.onnx")
		if err := os.WriteFile(file, pb.EncodeModel(m), 0o644); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(ctx, file)
		switch {
		case c.location == "link" && !links:
		case c.location == "." || c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		default:
			out, err := loaded.Call(ctx, loris.FromSlice([]float32{10, 20}))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := out[0].Float32s(ctx); err != nil || fmt.Sprint(got) != "[12 23]" {
				t.Errorf("%+v: %v, %v", c, got, err)
			}
		}
	}
}

// A tensor too large to be computed with while recording is read to where it stays.
func TestLargeExternalData(t *testing.T) {
	const n = readPiece/4 + maxKnown // several pieces are read

	dir := t.TempDir()
	path, weights := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "w.bin")
	data := make([]float64, n)
	for i := range data {
		data[i] = float64(i)
	}
	m := modelOf(22, "Add x w -> y")
	m.Graph.Initializers = []*pb.Tensor{{Name: "w", DType: 1, Dims: []int64{n}, Location: pb.External,
		External: []pb.Entry{{Key: "location", Value: "w.bin"}, {Key: "offset", Value: "4"}}}}
	if err := os.WriteFile(path, pb.EncodeModel(m), 0o644); err != nil {
		t.Fatal(err)
	}
	bytes := append(make([]byte, 4), elements.EncodeFloats(loris.F32, data)...)
	if err := os.WriteFile(weights, bytes[:len(bytes)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), path); err == nil || !strings.Contains(err.Error(), "the tensor needs") {
		t.Error(err)
	}
	if err := os.WriteFile(weights, bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for name := range loaded.Params() {
		if name != "w" {
			t.Errorf("parameter %q", name)
		}
	}
	out, err := loaded.Call(t.Context(), loris.Zeros(n))
	if err != nil {
		t.Fatal(err)
	}
	got, err := out[0].Float32s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != float32(i) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}

// What shows only for the sizes at hand names the node, and wraps the op's error.
func TestNodeErrors(t *testing.T) {
	m := modelOf(22, "Shape x -> s", "MatMul x w -> y")
	m.Graph.Initializers = []*pb.Tensor{{Name: "w", DType: 1, Dims: []int64{2}, HasRaw: true, Raw: make([]byte, 8)}}
	loaded, err := Decode("m.onnx", pb.EncodeModel(m))
	if err != nil {
		t.Fatal(err)
	}
	_, err = loaded.Call(context.Background(), loris.Zeros(3))
	var node *NodeError
	var op *loris.OpError
	if !errors.As(err, &node) || node.Index != 1 || node.Name != "nMatMul" || node.Op != "MatMul" || !errors.As(err, &op) {
		t.Error(err)
	}
	_, err = Decode("m.onnx", pb.EncodeModel(modelOf(22, "Concat x x -> y")))
	if err != nil {
		t.Fatal(err)
	}
}

// A function that calls others twice each is recorded up to the bound and no further.
func TestCallsAreBounded(t *testing.T) {
	m := modelOf(22, "own.f0 x -> y")
	for i := range 40 {
		next := fmt.Sprintf("f%d", i+1)
		body := []*pb.Node{{OpType: next, Domain: "own", Inputs: []string{"a"}, Outputs: []string{"b"}}, {OpType: next, Domain: "own", Inputs: []string{"b"}, Outputs: []string{"c"}}}
		if i == 39 {
			body = []*pb.Node{{OpType: "Identity", Inputs: []string{"a"}, Outputs: []string{"c"}}}
		}
		m.Functions = append(m.Functions, &pb.Function{Name: fmt.Sprintf("f%d", i), Domain: "own", Inputs: []string{"a"}, Outputs: []string{"c"}, Nodes: body, Opsets: []pb.Opset{{Version: 22}, {Domain: "own", Version: 1}}})
	}
	loaded, err := Decode("m.onnx", pb.EncodeModel(m))
	if err != nil {
		t.Fatal(err)
	}
	loaded.maxNodes = 1 << 12
	var u *UnsupportedError
	if _, err := loaded.Call(context.Background(), loris.Zeros(3)); !errors.As(err, &u) {
		t.Error(err)
	}
}

// Counts that no machine can go through end a call, whatever the loop does.
func TestLoopsAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	count := elements.EncodeInts(loris.I64, []int64{1 << 60})
	for name, m := range map[string]*pb.Model{
		"loop":            modelOf(22, "Loop n -> "),
		"SplitToSequence": modelOf(22, "Expand x n -> a", "SplitToSequence a -> y"),
	} {
		m.Graph.Initializers = []*pb.Tensor{{Name: "n", DType: int64(tInt64), Dims: []int64{1}, HasRaw: true, Raw: count}}
		if name == "loop" {
			m.Graph.Nodes[0].Attributes = []*pb.Attribute{{Name: "body", Type: pb.AttrGraph, G: &pb.Graph{
				Inputs: []*pb.ValueInfo{{Name: "i"}, {Name: "c"}}, Outputs: []*pb.ValueInfo{{Name: "c"}}}}}
			m.Graph.Outputs[0].Name = "x"
		}
		loaded, err := Decode("m.onnx", pb.EncodeModel(m))
		if err != nil {
			t.Fatal(name, err)
		}
		loaded.maxNodes = 1 << 12
		if _, err := loaded.Call(ctx, loris.Zeros(1)); err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLoad holds the reader to errors: what it accepts is recorded for small inputs, and neither panics.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/cases/*/model.onnx")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode("fuzz.onnx", b)
		if err != nil {
			return
		}
		var in []any
		for _, a := range m.inputs {
			if !a.elem.held() || a.sequence {
				return
			}
			var dims []int
			n := 1
			for _, d := range a.Dims {
				size := d.Size
				if size < 0 {
					size = 2
				}
				if n *= max(size, 1); n > 1<<16 {
					return
				}
				dims = append(dims, size)
			}
			in = append(in, loris.With(loris.As(a.DType)).Zeros(dims...))
		}
		m.maxNodes = 1 << 10
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err = m.CallNested(ctx, in...)
		if err != nil && strings.Contains(err.Error(), "runtime error") {
			t.Error(err)
		}
	})
}
