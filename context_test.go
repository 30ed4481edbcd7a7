package loris_test

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// contextPackages are the folders whose exported functions are called with a nil context.
var contextPackages = []string{".", "nn", "optim", "data", "aoti", "aoti/container"}

// A nil context is an error that says so, everywhere.
func TestNilContexts(t *testing.T) {
	rows := nilContextCalls(t)
	for _, dir := range contextPackages {
		for _, name := range takesContext(t, dir) {
			call := rows[name]
			if call == nil {
				t.Errorf("%s takes a context; add it to this test", name)
				continue
			}
			delete(rows, name)
			err := call()
			var oe *loris.OpError
			if !errors.Is(err, loris.ErrArg) || !errors.As(err, &oe) || !strings.Contains(oe.Msg, "context is nil") || !strings.Contains(oe.Line, "context_test.go:") {
				t.Errorf("%s: got %v, want an error about the nil context in this file", name, err)
			}
		}
	}
	for name := range rows {
		t.Errorf("there is no %s", name)
	}
}

// takesContext lists the exported functions of a folder whose first parameter is a context, such as
// "nn.Load" and "loris.Tensor.Item".
func takesContext(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && firstIsContext(fn.Type) {
				if recv, exported := receiver(fn); exported {
					names = append(names, f.Name.Name+"."+recv+fn.Name.Name)
				}
			}
		}
	}
	return names
}

func firstIsContext(f *ast.FuncType) bool {
	if len(f.Params.List) == 0 {
		return false
	}
	s, ok := f.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Context"
}

// receiver returns the type of a method and a dot, and whether it is exported.
func receiver(fn *ast.FuncDecl) (string, bool) {
	if fn.Recv == nil {
		return "", true
	}
	name := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name + ".", ast.IsExported(name)
}

func nilContextCalls(t *testing.T) map[string]func() error {
	var ctx context.Context
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	x := s.With().FromSlice([]float32{1})
	second := func(_ any, err error) error { return err }
	layer := nn.NewLinear(1, 1, nn.With(s.With()))
	opt := optim.NewSGD(layer.Params(), 1)
	check := &optim.Checkpoint{Model: layer}
	loader := data.NewLoader(data.Slice([]int{1}), 1, func(in []int) ([]int, error) { return in, nil })
	prog, err := graph.Parse("program @p {\n  %x = parameter \"x\" : f32[1]\n  %0 = neg(%x)\n  return %0\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	p := &container.Program{Run: prog, Device: loris.CPU}
	c, err := container.New(t.Context(), p.Compile, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r := &aoti.Runner{Container: c}
	buf := []backend.Buffer{nil}
	return map[string]func() error{
		"loris.Session.Close":         func() error { return s.Close(ctx) },
		"loris.Session.MarkStep":      func() error { return s.MarkStep(ctx) },
		"loris.Session.Step":          func() error { return s.Step(ctx, func() error { return nil }) },
		"loris.Session.Sync":          func() error { return s.Sync(ctx, x) },
		"loris.Session.WaitDeviceOps": func() error { return s.WaitDeviceOps(ctx) },
		"loris.Session.Plug":          func() error { return second(s.Plug(ctx, loris.Graph{}, nil)) },
		"loris.MarkStep":              func() error { return loris.MarkStep(ctx) },
		"loris.Sync":                  func() error { return loris.Sync(ctx, x) },
		"loris.Publish":               func() error { return loris.Publish(ctx, []*loris.Variable{layer.Bias}, []*loris.Tensor{x}) },
		"loris.Fetch":                 func() error { return second(loris.Fetch(ctx, x)) },
		"loris.Read":                  func() error { return second(loris.Read[float32](ctx, x)) },
		"loris.Function.Call": func() error {
			return second(loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { return in }).Call(ctx, x))
		},
		"loris.Nonzero": func() error { return second(loris.Nonzero(ctx, x)) },
		"loris.NMS":     func() error { return second(loris.NMS(ctx, loris.Zeros(1, 4), loris.Zeros(1), 0.5)) },
		"loris.Unique": func() error {
			_, _, _, err := loris.Unique(ctx, x)
			return err
		},
		"loris.Tensor.Text":        func() error { return second(x.Text(ctx)) },
		"loris.Tensor.Float32s":    func() error { return second(x.Float32s(ctx)) },
		"loris.Tensor.Float64s":    func() error { return second(x.Float64s(ctx)) },
		"loris.Tensor.Int64s":      func() error { return second(x.Int64s(ctx)) },
		"loris.Tensor.Int32s":      func() error { return second(x.Int32s(ctx)) },
		"loris.Tensor.Int16s":      func() error { return second(x.Int16s(ctx)) },
		"loris.Tensor.Int8s":       func() error { return second(x.Int8s(ctx)) },
		"loris.Tensor.Uint8s":      func() error { return second(x.Uint8s(ctx)) },
		"loris.Tensor.Bools":       func() error { return second(x.Bools(ctx)) },
		"loris.Tensor.Complex64s":  func() error { return second(x.Complex64s(ctx)) },
		"loris.Tensor.Complex128s": func() error { return second(x.Complex128s(ctx)) },
		"loris.Tensor.Bytes":       func() error { return second(x.Bytes(ctx)) },
		"loris.Tensor.Item":        func() error { return second(x.Item(ctx)) },
		"loris.Tensor.Wait":        func() error { return x.Wait(ctx) },
		"loris.Tensor.Sync":        func() error { return x.Sync(ctx) },
		"loris.Tensor.To":          func() error { return second(x.To(ctx, loris.CPU)) },

		"nn.Load": func() error { return second(nn.Load(ctx, "no file", layer)) },
		"nn.Save": func() error { return nn.Save(ctx, "no file", layer, nil) },

		"optim.Checkpoint.Save":     func() error { return check.Save(ctx, "no file") },
		"optim.Checkpoint.Load":     func() error { return check.Load(ctx, "no file") },
		"optim.Optimizer.SaveState": func() error { return opt.SaveState(ctx, "no file") },
		"optim.LBFGS.Minimize": func() error {
			_, err := new(optim.LBFGS).Minimize(ctx, layer.Params(), func() *loris.Tensor { return nil })
			return err
		},
		"optim.Optimizer.LoadState": func() error { return opt.LoadState(ctx, "no file") },

		"data.Loader.Next": func() error { return second(loader.Next(ctx)) },
		"data.Loader.Epoch": func() (err error) {
			for _, err = range loader.Epoch(ctx) {
			}
			return err
		},

		"aoti.Load":            func() error { return second(aoti.Load(ctx, "no file")) },
		"aoti.LoadFrom":        func() error { return second(aoti.LoadFrom(ctx, bytes.NewReader(nil), 0)) },
		"aoti.Runner.Run":      func() error { return second(r.Run(ctx, buf...)) },
		"aoti.Runner.RunInto":  func() error { return r.RunInto(ctx, buf, buf) },
		"aoti.Runner.BoxedRun": func() error { return second(r.BoxedRun(ctx, buf)) },
		"aoti.Runner.RunNamed": func() error { return second(r.RunNamed(ctx, nil)) },

		"container.New":             func() error { return second(container.New(ctx, p.Compile, container.Config{Instances: 1})) },
		"container.Program.Compile": func() error { return second(p.Compile(ctx)) },
		"container.Container.Call":  func() error { return second(c.Call(ctx, buf, nil)) },
		"container.Container.Run":   func() error { return second(c.Run(ctx, buf, nil)) },
		"container.Container.RunInto": func() error {
			return c.RunInto(ctx, buf, nil, buf)
		},
		"container.Container.RunVersion": func() error { return second(c.RunVersion(ctx, "", buf, nil)) },
		"container.Container.RunVersionInto": func() error {
			return c.RunVersionInto(ctx, "", buf, nil, nil)
		},
		"container.Container.RunSingleThreaded": func() error { return second(c.RunSingleThreaded(ctx, buf, nil)) },
		"container.Container.Start":             func() error { return second(c.Start(ctx, buf, nil)) },
		"container.Container.StartCall": func() error {
			_, _, err := c.StartCall(ctx, buf, nil)
			return err
		},
		"container.Pending.Wait":               func() error { return new(container.Pending).Wait(ctx) },
		"container.Container.Fold":             func() error { return c.Fold(ctx, container.Active) },
		"container.Container.ExtractConstants": func() error { return second(c.ExtractConstants(ctx, container.Active, true)) },
		"container.Container.Swap":             func() error { return c.Swap(ctx) },
		"container.Container.FreeInactive":     func() error { return c.FreeInactive(ctx) },
		"container.Container.Save":             func() error { return c.Save(ctx, "v", container.Active) },
		"container.Container.Activate":         func() error { return c.Activate(ctx, "v") },
		"container.Container.Drop":             func() error { return c.Drop(ctx, "v") },
		"container.Container.Update":           func() error { return c.Update(ctx, nil, container.Inactive) },
		"container.Container.UpdateFromBlob": func() error {
			return c.UpdateFromBlob(ctx, bytes.NewReader(nil), 0, container.Inactive)
		},
		"container.Container.UpdateFromBytes": func() error { return c.UpdateFromBytes(ctx, nil, container.Inactive) },
		"container.Container.UpdateFromFile":  func() error { return c.UpdateFromFile(ctx, "no file", container.Inactive) },
	}
}

// Mistakes in using layers and optimisers name the user's line.
func TestMistakesNameTheLine(t *testing.T) {
	v := loris.NewVariable(loris.Ones(2))
	params := func(yield func(string, *loris.Variable) bool) { yield("v", v) }
	for name, fn := range map[string]func(){
		"a size":            func() { nn.NewLinear(0, 1) },
		"an option":         func() { nn.NewLinear(1, 1, nn.Causal()) },
		"a name":            func() { new(nn.Base).Param("", v) },
		"a rank":            func() { nn.NewBatchNorm1d(2).Forward(loris.Ones(2)) },
		"a batch":           func() { nn.NewBatchNorm1d(2).Forward(loris.Ones(1, 2)) },
		"a layer's product": func() { nn.NewLinear(3, 1).Forward(loris.Ones(2, 2)) },
		"a rate":            func() { optim.NewSGD(params, -1) },
		"an optim option":   func() { optim.NewSGD(params, 1, optim.AMSGrad()) },
		"gradients":         func() { optim.NewSGD(params, 1).Step(nil) },
		"a schedule":        func() { optim.Cosine(1, 0, 0) },
		"recurrent states":  func() { nn.NewGRU(2, 2).Run(loris.Ones(3, 2), nil, nil) },
		"a sequence":        func() { nn.NewGRU(2, 2).Run(loris.Ones(3)) },
		"an instance":       func() { nn.NewInstanceNorm1d(2).Forward(loris.Ones(2)) },
		"a cache's batch": func() {
			m := nn.NewMultiheadAttention(2, 1)
			m.Decode(loris.Ones(2, 1, 2), m.NewKVCache(1, 1, false))
		},
		"a group":  func() { optim.NewSGD(params, 1, optim.Group(nil, optim.Nesterov())) },
		"samples":  func() { loris.Multinomial(loris.Ones(2), 3, false) },
		"a scan":   func() { loris.Scan(nil, nil, nil) },
		"clipping": func() { optim.ClipGradNorm(nil, 1) },
		"a device": func() { loris.CUDA(-1) },
		"zeros":    func() { loris.Zeros(-1) },
	} {
		var oe *loris.OpError
		if err := loris.Try(fn); !errors.As(err, &oe) || !strings.Contains(oe.Line, "context_test.go:") {
			t.Errorf("%s: got %v, want an OpError in this file", name, err)
		}
	}
}

// Errors name what the user called, not what that was rewritten to.
func TestErrorsNameTheCall(t *testing.T) {
	ctx := context.Background()
	for name, fn := range map[string]func(){
		"zeros(": func() { loris.Zeros(-1) }, "ones(": func() { loris.Ones(-1) }, "full(": func() { loris.Full(1, -1) },
		"rand(": func() { loris.Rand(-1) }, "randn(": func() { loris.Randn(-1) },
	} {
		if err := loris.Try(fn); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("got %v, want an error of %s)", err, name)
		}
	}
	for name, x := range map[string]*loris.Tensor{
		"cross_entropy": loris.Ones(2, 3).CrossEntropy(loris.FromSlice([]int64{0, 7})),
		"nll_loss":      loris.Ones(2, 3).NllLoss(loris.FromSlice([]int64{0, 7})),
		"gather":        loris.Ones(2, 3).Gather(1, loris.FromSlice([]int64{0, 7}, 2, 1)),
	} {
		_, err := x.Float32s(ctx)
		if !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), name+" (at") {
			t.Errorf("got %v, want an index error of %s", err, name)
		}
		x.Discard()
	}
}

// A file of another format is named, with what to do.
func TestLoadOfOtherFormats(t *testing.T) {
	for begins, want := range map[string]string{
		"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00": "safetensors.torch.save_file",
		"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19":  "safetensors.torch.save_file",
		"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00":   "pickle",
		"version https://git-lfs.github.com/spec/v1": "git lfs pull",
		"\x93NUMPY\x01\x00v\x00":                     "NumPy",
		"GGUF\x03\x00\x00\x00\x01\x00\x00\x00":       "GGUF",
		"<!DOCTYPE html>":                            "HTML",
	} {
		path := filepath.Join(t.TempDir(), "weights")
		if err := os.WriteFile(path, []byte(begins), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := nn.Load(t.Context(), path, nn.NewLinear(1, 1))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a header of") {
			t.Errorf("%q: got %v, want %q", begins, err, want)
		}
	}
}
