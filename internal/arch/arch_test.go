package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/loris-ml/loris"

// allowed lists, for each package of the module, the other packages of the
// module that it may import, by prefix. The graph points downwards only. Test
// files are free.
var allowed = map[string][]string{
	"":                      {"internal/ir", "internal/graph", "backend", "aoti", "report", "internal"},
	"internal/ir":           {"internal/half", "internal/twooverpi"},
	"internal/graph":        {"internal/aten", "internal/ir"},
	"backend":               {"internal/ir", "internal/graph"},
	"internal/ref":          {"backend", "internal/ir", "internal/graph", "internal"},
	"internal/null":         {"backend", "internal/ir", "internal/graph", "internal"},
	"backend/cpu":           {"backend", "internal/ir", "internal/graph", "internal"},
	"backend/cuda":          {"backend", "internal/ir", "internal/graph", "internal"},
	"internal/backendtest":  {"backend", "internal/ir", "internal/graph", "internal"},
	"dist":                  {"", "dist", "internal", "internal/ir", "report"},
	"dist/local":            {"dist"},
	"dist/mpi":              {"dist", "internal/ir"},
	"dist/nccl":             {"internal/collective"},
	"dist/parallel":         {"", "dist", "internal/tensorfile", "internal/ir", "nn", "optim", "safetensors"},
	"internal/collective":   {"internal/graph", "internal/aten", "internal/ir", "report"},
	"report":                {"internal/ir", "backend"},
	"internal/executor":     {"report", "internal/aten", "internal/ir", "internal/graph", "backend", "aoti/container", "internal/cache", "internal/collective", "internal/devicelock", "internal/elements", "internal/memlimit", "internal/modelcall", "internal/tracefile", "internal/tracing"},
	"internal/pt2":          {"internal/ir", "backend", "internal/escape", "internal/isa"},
	"aoti/internal/host":    {"aoti/internal/vecmath", "internal/pt2", "internal/ir", "internal/graph", "backend", "internal"},
	"aoti/internal/vecmath": {},
	"aoti/container":        {"internal/ir", "internal/graph", "backend", "internal/hostmem"},
	"aoti":                  {"aoti", "internal/ir", "internal/graph", "backend", "internal"},
	"data":                  {"", "internal", "internal/ir", "safetensors"},
	"data/images":           {"", "data", "internal/ir"},
	"data/tokenizer":        {"", "data"},
	"nn":                    {"", "internal/ir", "internal", "safetensors"},
	"model":                 {"", "nn"},
	"torchexport":           {"", "internal/ir", "model", "internal/importer", "internal/pt2", "internal/escape", "nn"},
	"onnx":                  {"", "internal/ir", "internal/graph", "model", "internal/importer", "internal/elements", "internal/memlimit", "onnx"},
	"onnx/internal/pb":      {},
	"internal/importer":     {"", "internal/ir", "internal/executor"},
	"hub":                   {"internal/atomicfile", "internal/escape", "internal/filelock", "internal/ir", "nn"},
	"optim":                 {"", "nn", "internal/ir", "internal"},
	"tensorboard":           {"internal/figure"},
	"safetensors":           {"internal/atomicfile", "internal/memlimit"},
	"internal/accelerator":  {"backend", "internal/graph", "internal/ir"},
	"internal/aten":         {"internal/ir"},
	"internal/atomicfile":   {"internal/filelock"},
	"internal/ctest":        {},
	"internal/cxx":          {"internal/aten", "internal/loop", "internal/ir"},
	"internal/openmp":       {},
	"internal/escape":       {},
	"internal/elements":     {"internal/half", "internal/ir"},
	"internal/filelock":     {},
	"internal/half":         {"internal/isa"},
	"internal/isa":          {},
	"internal/sanitizer":    {},
	"internal/philox":       {"internal/isa"},
	"internal/npformat":     {"internal/half"},
	"internal/memlimit":     {"internal/ir"},
	"internal/shim":         {},
	"internal/scalartype":   {"internal/ir"},
	"internal/tensorfile":   {"internal/ir", "safetensors"},
	"internal/opinfo":       {"internal/ir", "internal/elements"},
	"internal/hostmem":      {"backend", "internal/memlimit", "internal/ir"},
	"internal/modelcall":    {"backend", "internal/hostmem", "internal/ir"},
	"internal/loop":         {"internal/aten", "internal/ir", "internal/elements"},
	"internal/native":       {"internal/aten", "internal/ir", "internal/half", "internal/isa", "internal/loop", "internal/native", "internal/twooverpi"},
	"internal/native/code":  {},
	"internal/native/a64":   {"internal/native/x64"},
	"internal/native/x64":   {},
	"internal/parallel":     {},
	"internal/strided":      {"internal/isa"},
	"internal/tracefile":    {},
	"internal/figure":       {},
	"internal/tracing":      {},
	"internal/twooverpi":    {},
	"internal/kernels":      {"internal/isa", "internal/strided"},

	"serve":                       {"serve"},
	"serve/client":                {"serve/internal/inference", "serve/internal/jsonread", "serve/internal/pb"},
	"serve/internal/access":       {"serve/internal/inference"},
	"serve/internal/metrics":      {"serve/internal/inference", "serve/internal/rest"},
	"serve/internal/generate":     {"data/tokenizer", "internal/elements", "serve/internal/inference", "serve/internal/model"},
	"serve/internal/profiling":    {"serve/internal/inference", "serve/internal/rest"},
	"serve/internal/sharedmemory": {"serve/internal/inference"},
	"serve/internal/answer":       {},
	"serve/internal/date":         {},
	"serve/internal/http1":        {"serve/internal/date", "serve/internal/http2"},
	"serve/internal/http2":        {"serve/internal/date"},
	"serve/internal/tracing":      {"serve/internal/answer", "serve/internal/inference"},
	"serve/internal/page":         {"serve/internal/inference", "serve/internal/rest"},
	"serve/internal/repository":   {"data/tokenizer", "internal/elements", "internal/ir", "serve/internal/batch", "serve/internal/generate", "serve/internal/inference", "serve/internal/model", "serve/internal/pb", "serve/internal/tracing", "serve/internal/weights"},
	"serve/internal/inference":    {"internal/ir"},
	"serve/internal/jsonread":     {},
	"serve/internal/rest":         {"serve/internal/inference", "serve/internal/jsonread", "serve/internal/sharedmemory"},
	"serve/internal/model":        {"aoti", "backend", "internal/graph", "internal/elements", "internal/tensorfile", "internal/ir", "safetensors", "serve/internal/inference", "serve/internal/weights"},
	"serve/internal/batch":        {"serve/internal/inference", "serve/internal/model"},
	"serve/internal/grpcapi":      {"serve/internal/inference", "serve/internal/pb", "serve/internal/sharedmemory"},
	"serve/internal/weightsapi":   {"serve/internal"},
	"serve/internal/weights":      {"aoti", "backend", "internal", "internal/ir", "safetensors", "serve/internal/inference"},

	"aoti/internal/elfwrite": {},
	"aoti/internal/glue":     {},
	"aoti/export":            {"", "aoti", "backend", "backend/cpu", "backend/cuda", "internal/graph", "internal/ahead", "internal/cxx", "internal/executor", "internal/loop", "internal/pt2", "internal/strided", "internal/ir", "nn"},
	"internal/ahead":         {"internal/loop", "internal/scalartype", "internal/strided", "internal/ir"},

	"internal/check":                 {"backend", "internal/graph", "internal/ir"},
	"backend/internal/fuse":          {"internal/aten", "internal/graph", "internal/loop", "internal/strided", "internal/ir"},
	"backend/internal/ahead":         {"backend", "internal/check", "internal/graph", "internal/aten", "internal/ahead", "internal/elements", "internal/kernels", "internal/loop", "internal/native", "internal/strided", "internal/ir"},
	"backend/internal/nest":          {"backend/internal/fuse", "internal/loop"},
	"backend/internal/plan":          {"internal/aten", "backend", "internal/check", "internal/graph", "internal/strided", "internal/ir"},
	"backend/cuda/internal/emit":     {"internal/aten", "internal/cxx", "internal/ir", "internal/loop"},
	"backend/cuda/internal/steps":    {"backend", "backend/cuda/internal/emit", "internal/graph", "internal", "internal/ir"},
	"internal/loop/looptest":         {"internal/aten", "internal/ir", "internal/half", "internal/loop"},
	"backend/cuda/internal/driver":   {},
	"backend/cuda/internal/fakecuda": {},

	"internal/kernels/dense":     {"internal/isa", "internal/kernels/gemm", "internal/parallel"},
	"internal/kernels/linalg":    {"internal/aten", "internal/elements", "internal/kernels/dense", "internal/kernels/lanes", "internal/ir", "internal/parallel"},
	"internal/kernels/lanes":     {"internal/isa"},
	"internal/kernels/guarded":   {},
	"internal/kernels/gemm":      {"internal/kernels", "internal/parallel", "internal/half", "internal/isa"},
	"internal/kernels/bags":      {"internal/kernels"},
	"internal/kernels/distance":  {"internal/isa"},
	"internal/kernels/fft":       {"internal/kernels/gemm", "internal/isa"},
	"internal/kernels/igemm":     {"internal/isa", "internal/kernels/gemm"},
	"internal/kernels/tile":      {"internal/isa"},
	"internal/kernels/vec":       {"internal/kernels", "internal/half", "internal/isa"},
	"internal/kernels/conv":      {"internal/isa", "internal/kernels", "internal/parallel"},
	"internal/kernels/attention": {"internal/isa", "internal/kernels", "internal/parallel"},
	"internal/kernels/rnn":       {"internal/kernels", "internal/parallel"},
	"internal/kernels/sample":    {"internal/isa", "internal/kernels"},
	"internal/kernels/pool":      {"internal/kernels", "internal/parallel", "internal/strided"},
	"internal/kernels/quant":     {"internal/kernels", "internal/parallel"},
}

// dependencies are the modules that packages of the library may import, by
// prefix: all that a program which imports Loris has to download. Commands,
// benchmarks and examples may have others.
var dependencies = []string{
	"github.com/cespare/xxhash/v2", "github.com/dgraph-io/ristretto/v2", "github.com/dustin/go-humanize",
	"github.com/hashicorp/golang-lru/v2", "golang.org/x/image", "golang.org/x/sync", "golang.org/x/sys",
}

// ownDependencies are what one package alone may import besides: who does without the package does
// without them.
var ownDependencies = map[string][]string{
	"data/tokenizer": {"github.com/sugarme/tokenizer", "golang.org/x/text"},
	"dist/mpi":       {"github.com/ebitengine/purego"},
	"hub":            {"github.com/hashicorp/go-retryablehttp"},
}

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	// With the tag the CUDA backend is looked at, too; the files that it leaves out
	// import nothing of the module.
	cmd := exec.Command("go", "list", "-tags", "cuda", "-json=ImportPath,Dir,Imports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// rel returns the path of a package inside the module; false for others.
func rel(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func TestImportsPointDownwards(t *testing.T) {
	pkgs := packages(t)
	// Of the modules that go.work joins, all are looked at.
	for _, want := range []string{"", "cmd/loris", "serve"} {
		if !slices.ContainsFunc(pkgs, func(p pkg) bool { name, _ := rel(p.ImportPath); return name == want }) {
			t.Fatalf("package %q was not found", want)
		}
	}
	for _, p := range pkgs {
		name, _ := rel(p.ImportPath)
		may, listed := allowed[name]
		if !listed {
			continue // commands, benchmarks and examples may import everything
		}
		for _, imp := range p.Imports {
			dep, inside := rel(imp)
			if inside && !permits(may, dep) {
				t.Errorf("package %q imports %q", name, dep)
			}
		}
	}
}

func permits(may []string, dep string) bool {
	for _, m := range may {
		if dep == m || (m != "" && strings.HasPrefix(dep, m+"/")) {
			return true
		}
	}
	return false
}

// The library imports no module that only commands, benchmarks and examples need.
func TestLibraryHasFewDependencies(t *testing.T) {
	for _, p := range packages(t) {
		name, _ := rel(p.ImportPath)
		switch top, _, _ := strings.Cut(name, "/"); top {
		case "cmd", "bench", "examples", "serve":
			continue
		}
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			_, inside := rel(imp)
			if strings.Contains(first, ".") && !inside && !permits(dependencies, imp) && !permits(ownDependencies[name], imp) {
				t.Errorf("package %q imports %q", name, imp)
			}
		}
	}
}

// Libraries below the root import nothing of the commands or benchmarks.
func TestNobodyImportsCommands(t *testing.T) {
	for _, p := range packages(t) {
		name, _ := rel(p.ImportPath)
		for _, imp := range p.Imports {
			dep, inside := rel(imp)
			top, _, _ := strings.Cut(dep, "/")
			own, _, _ := strings.Cut(name, "/")
			if inside && (top == "cmd" || top == "bench") && own != top {
				t.Errorf("package %q imports %q", name, dep)
			}
		}
	}
}

// goFiles calls fn for each Go file of the repository.
func goFiles(t *testing.T, fn func(path string, src []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != root && (strings.HasPrefix(n, ".") || n == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fn(path, src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func generated(src []byte) bool {
	head, _, _ := bytes.Cut(src, []byte("\npackage "))
	return bytes.Contains(head, []byte("DO NOT EDIT."))
}

func TestFilesStayShort(t *testing.T) {
	const limit = 520
	goFiles(t, func(path string, src []byte) {
		if n := bytes.Count(src, []byte("\n")); n > limit && !generated(src) {
			t.Errorf("%s has %d lines; over %d it is perhaps two ideas", path, n, limit)
		}
	})
}

func TestExportedNamesAreDocumented(t *testing.T) {
	fset := token.NewFileSet()
	goFiles(t, func(path string, src []byte) {
		// What protoc writes is documented in the .proto file.
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return
		}
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		if f.Name.Name == "main" {
			return
		}
		for _, d := range f.Decls {
			checkDecl(t, fset, d)
		}
	})
}

func checkDecl(t *testing.T, fset *token.FileSet, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			t.Errorf("%v: %s has no comment", fset.Position(d.Pos()), d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					t.Errorf("%v: type %s has no comment", fset.Position(s.Pos()), s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%v: %s has no comment", fset.Position(s.Pos()), s.Names[0].Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is visible outside: not a method
// of an unexported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// Go takes a test whose file's name ends in _windows_test.go, or in another system's name, for that
// system alone, so a test about windows would run nowhere else. Such a name belongs to the test of
// code for that system.
func TestNamesOfTestsAreNoSystems(t *testing.T) {
	systems := map[string]bool{"windows": true, "darwin": true, "js": true, "ios": true, "android": true, "plan9": true, "solaris": true, "illumos": true, "aix": true}
	goFiles(t, func(path string, _ []byte) {
		name, isTest := strings.CutSuffix(filepath.Base(path), "_test.go")
		at := strings.LastIndexByte(name, '_')
		if !isTest || at < 0 || !systems[name[at+1:]] {
			return
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), name+".go")); err != nil {
			t.Errorf("%s is built for %s alone, and there is no %s.go", path, name[at+1:], name)
		}
	})
}
