package onnx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
		"cycle":         {modelOf(22, "Add x b -> a", "Relu a -> b", "Relu b -> y"), `input "a" is not defined before it`},
		"two of a name": {modelOf(22, "Relu x -> y", "Relu x -> y"), `its output "y" is defined twice`},
		"input again":   {modelOf(22, "Relu x -> x", "Relu x -> y"), `its output "x" is defined twice`},
		"no output":     {modelOf(22, "Relu x -> z"), `output "y" of graph "g" is not defined`},
		"inputs":        {modelOf(22, "Relu x x -> y"), "it has 2 inputs, 1 are expected"},
		"names":         {twice, "two initialisers"},
		"recursion":     {recursive, "calls itself"},
		"lying size":    {tensor(&pb.Tensor{DType: 1, Dims: []int64{1 << 40}, HasRaw: true, Raw: []byte{1}}), "1 bytes do not fill"},
		"overflow":      {tensor(&pb.Tensor{DType: 1, Dims: []int64{1 << 32, 1 << 32}, HasRaw: true}), "no shape"},
		"rank":          {tensor(&pb.Tensor{DType: 1, Dims: make([]int64, 9), HasRaw: true}), "9 dimensions, at most 8"},
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

// What is computed while recording is in proportion to the file and its inputs, whatever sizes the file
// asks for: each of these models has some hundred bytes.
func TestRecordingIsBounded(t *testing.T) {
	const large = 1 << 25
	ints := func(v ...int64) []*pb.Attribute { return []*pb.Attribute{{Type: pb.AttrInts, Ints: v}} }
	named := func(name string, a []*pb.Attribute) []*pb.Attribute { a[0].Name = name; return a }
	text := func(name, v string) *pb.Attribute { return &pb.Attribute{Name: name, Type: pb.AttrString, S: v} }
	doubled := []string{"Concat n n -> c0"}
	for i := range 24 {
		doubled = append(doubled, fmt.Sprintf("Concat c%d c%d -> c%d", i, i, i+1))
	}
	looped := &pb.Graph{Inputs: []*pb.ValueInfo{{Name: "i"}, {Name: "c"}, {Name: "s"}}, Outputs: []*pb.ValueInfo{{Name: "c"}, {Name: "t"}},
		Nodes: []*pb.Node{{OpType: "ConstantOfShape", Inputs: []string{"small"}, Outputs: []string{"v"}}, {OpType: "SequenceInsert", Inputs: []string{"s", "v"}, Outputs: []string{"t"}}}}
	for name, c := range map[string]struct {
		nodes []string
		attrs []*pb.Attribute // of the first node
	}{
		"Pad":               {[]string{"Pad x pads -> y"}, []*pb.Attribute{text("mode", "reflect")}},
		"Resize":            {[]string{"Unsqueeze x zero -> a", "Resize a   both -> y"}, nil},
		"Resize, smoothed":  {[]string{"Upsample x wide -> y"}, []*pb.Attribute{text("mode", "linear")}},
		"HannWindow":        {[]string{"HannWindow n -> w", "Add w x -> y"}, nil},
		"MelWeightMatrix":   {[]string{"MelWeightMatrix bins length rate f0 f1 -> y"}, nil},
		"AveragePool":       {[]string{"Expand x image -> a", "LpPool a -> y"}, nil},
		"RandomUniform":     {[]string{"RandomUniform -> y"}, append(named("shape", ints(large, 4)), &pb.Attribute{Name: "seed", Type: pb.AttrFloat, F: 1})},
		"Concat":            {append(doubled, "ConstantOfShape c24 -> y"), named("axis", ints(0))},
		"NonZero":           {[]string{"Expand x n -> a", "NonZero a -> y"}, nil},
		"Compress":          {[]string{"Expand x n -> a", "Cast a -> b", "Compress a b -> y"}, nil},
		"Unique":            {[]string{"Expand x n -> a", "Unique a -> y"}, nil},
		"Reshape":           {[]string{"Expand x n -> a", "Reshape x a -> y"}, nil},
		"SplitToSequence":   {[]string{"Expand x n -> a", "SplitToSequence a -> s", "ConcatFromSequence s -> y"}, nil},
		"Loop of sequences": {[]string{"SequenceEmpty -> s", "Loop n  s -> u", "ConcatFromSequence u -> y"}, nil},
		"NonMaxSuppression": {[]string{"Expand x boxes -> a", "Expand x scores -> b", "NonMaxSuppression a b -> y"}, nil},
		"TfIdfVectorizer":   {[]string{"Cast x -> i", "TfIdfVectorizer i -> y"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(22, c.nodes...)
			if strings.HasPrefix(name, "Resize, ") {
				m = modelOf(9, c.nodes...)
			}
			list := func(name string, v ...int64) {
				m.Graph.Initializers = append(m.Graph.Initializers, &pb.Tensor{Name: name, DType: int64(tInt64), Dims: []int64{int64(len(v))}, HasRaw: true, Raw: elements.EncodeInts(loris.I64, v)})
			}
			number := func(name string, v float64) {
				m.Graph.Initializers = append(m.Graph.Initializers, &pb.Tensor{Name: name, DType: int64(tFloat), Dims: []int64{1}, HasRaw: true, Raw: elements.EncodeFloats(loris.F32, []float64{v})})
			}
			list("n", large)
			list("pads", large, large)
			list("zero", 0)
			list("both", 2, large)
			list("small", maxKnown)
			list("bins", 1<<11)
			list("length", 1<<20)
			list("rate", 16000)
			list("image", 1, 1, 1<<16, 1)
			list("boxes", 1, large, 4)
			list("scores", 1, 1, large)
			number("wide", large)
			number("f0", 0)
			number("f1", 8000)
			m.Graph.Nodes[0].Attributes = c.attrs
			for _, n := range m.Graph.Nodes {
				switch n.OpType {
				case "Resize":
					n.Inputs = []string{"a", "", "", "both"}
					n.Attributes = []*pb.Attribute{text("mode", "cubic")}
				case "Loop":
					n.Inputs = []string{"n", "", "s"}
					n.Attributes = []*pb.Attribute{{Name: "body", Type: pb.AttrGraph, G: looped}}
				case "Cast":
					n.Attributes = []*pb.Attribute{{Name: "to", Type: pb.AttrInt, I: int64(tInt64)}}
					if name == "Compress" {
						n.Attributes[0].I = int64(tBool)
					}
				case "LpPool":
					n.Attributes = named("kernel_shape", ints(1<<15, 1))
				case "Concat", "ConcatFromSequence":
					n.Attributes = []*pb.Attribute{{Name: "axis", Type: pb.AttrInt}}
				case "TfIdfVectorizer":
					n.Attributes = append(named("pool_int64s", ints(1)), named("ngram_counts", ints(0))[0], named("ngram_indexes", ints(1<<23))[0],
						&pb.Attribute{Name: "max_skip_count", Type: pb.AttrInt, I: 1 << 62}, &pb.Attribute{Name: "max_gram_length", Type: pb.AttrInt, I: 1 << 62}, text("mode", "TF"))
				}
			}
			file := pb.EncodeModel(m)
			if len(file) > 4096 {
				t.Fatalf("%d bytes", len(file))
			}
			loaded, err := Decode("m.onnx", file)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = loaded.CallNested(ctx, loris.Zeros(1))
			runtime.ReadMemStats(&after)
			var u *UnsupportedError
			if !errors.As(err, &u) || !strings.Contains(err.Error(), "while recording") {
				t.Errorf("%v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 4*hostBytes {
				t.Errorf("%d MiB were allocated", got>>20)
			}
		})
	}
}

// Stretches of integers that no row is long enough for are not looked for.
func TestGramsAreBounded(t *testing.T) {
	m := modelOf(22, "Cast x -> i", "TfIdfVectorizer i -> y")
	list := func(name string, v ...int64) *pb.Attribute {
		return &pb.Attribute{Name: name, Type: pb.AttrInts, Ints: v}
	}
	m.Graph.Nodes[0].Attributes = []*pb.Attribute{{Name: "to", Type: pb.AttrInt, I: int64(tInt64)}}
	m.Graph.Nodes[1].Attributes = []*pb.Attribute{list("pool_int64s", 0, 0, 0), list("ngram_counts", 0, 1), list("ngram_indexes", 0, 1),
		{Name: "max_skip_count", Type: pb.AttrInt, I: 1<<63 - 1}, {Name: "max_gram_length", Type: pb.AttrInt, I: 1<<63 - 1}, {Name: "mode", Type: pb.AttrString, S: "TF"}}
	loaded, err := Decode("m.onnx", pb.EncodeModel(m))
	if err != nil {
		t.Fatal(err)
	}
	outs, err := loaded.Call(t.Context(), loris.Zeros(3))
	if err != nil {
		t.Fatal(err)
	}
	// Three single zeros, and pairs of neighbours and of what is one apart.
	if got, err := outs[0].Float32s(t.Context()); err != nil || fmt.Sprint(got) != "[3 3]" {
		t.Error(got, err)
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
