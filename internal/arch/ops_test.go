package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// rowsAndEmitters are where ops are named one by one: their rows, and the native code for them.
var rowsAndEmitters = []string{"internal/ir/", "internal/native/", "backend/cuda/internal/emit/", "internal/cxx/", "backend/cpu/blockops.go"}

// exempt name functions of others, which are called as ops are, or count what names an op.
var exempt = []string{"aoti/internal/", "internal/kernels/", "internal/gen/shimstubs/", "scripts/count/", "onnx/", "torchexport/"}

// special lists the packages that treat some pointwise ops unlike others.
var special = []struct{ pkg, ops, why string }{
	{".", "add sub mul div floor floor_divide trunc trunc_divide", "arguments of methods choose the op or are multiplied in"},
	{"internal/gen/rootops", "add sub div", "these methods are written by hand"},
	{"backend/internal/fuse", "add sub mul div tanh sigmoid relu erf", "dense kernels take sums, factors and activations along"},
	{"backend/cpu", "add sub mul div", "the same of convolutions and products"},
	{"backend/cuda/internal/steps", "add sub mul div reciprocal lt", "kernels that are written as loops: ranges, scaled products"},
	{"internal/loop", "round", "the instruction of that name"},
	{"internal/loop/looptest", "add", "x + 0 has no -0"},
	{"internal/randprog", "add sub mul div maximum minimum gt le ne atan2 floor_divide trunc_divide remainder fmod pow abs tanh", "random programs weigh ops"},
	{"internal/backendtest", "add sub mul div floor floor_divide trunc trunc_divide remainder fmod tanh maximum minimum cos relu sin sigmoid abs log1p gt lt bitwise_xor", "PyTorch's calls have other arguments; errors are tried of some, and whole programs are written with others"},
	{"internal/collective", "add maximum minimum eq", "reductions over ranks are written as ops on GPUs"},
	{"nn", "tanh", "an activation is chosen by name"},
	{"bench/workloads", "tanh", "the form of gelu"},
}

// maxHandWritten is the most hand-written files that a pointwise primitive may need.
const maxHandWritten = 6

// TestOpsAreNamedInTheirRows fails where a pointwise primitive is named by hand, as a variable or as a
// string, in a package that need not know it: what is a fact about an op is a field of its row.
func TestOpsAreNamedInTheirRows(t *testing.T) {
	ops := map[string]string{} // by what names them
	for _, sp := range ir.Ops() {
		// Every layer knows that a cast has a dtype, and where three operands.
		if sp.Category == ir.Pointwise && !sp.Composite() && sp.Op != aten.Cast && sp.Op != aten.Where {
			for _, by := range []string{"op" + sp.GoIdent(), "aten." + sp.GoIdent(), strconv.Quote(sp.Name)} {
				ops[by] = sp.Name
			}
		}
	}
	files := map[string][]string{} // by op
	used := map[string]bool{}
	goFiles(t, func(file string, src []byte) {
		file = filepath.ToSlash(strings.TrimPrefix(file, filepath.Join("..", "..")+string(filepath.Separator)))
		if strings.HasSuffix(file, "_test.go") || generated(src) {
			return
		}
		for _, op := range namesIn(t, file, src, ops) {
			pkg := path.Dir(file)
			within := func(prefix string) bool { return strings.HasPrefix(file, prefix) }
			i := slices.IndexFunc(special, func(s struct{ pkg, ops, why string }) bool {
				return s.pkg == pkg && slices.Contains(strings.Fields(s.ops), op)
			})
			switch {
			case slices.ContainsFunc(exempt, within):
			case slices.ContainsFunc(rowsAndEmitters, within):
				files[op] = append(files[op], file)
			case i >= 0:
				used[pkg+" "+op] = true
			default:
				t.Errorf("%s names %s: make what it has to know of the op a field of its row, or say in this test why it treats the op by itself", file, op)
			}
		}
	})
	for op, list := range files {
		if len(list) > maxHandWritten {
			t.Errorf("%s needs %d files: %v", op, len(list), list)
		}
	}
	for _, s := range special {
		for _, op := range strings.Fields(s.ops) {
			if !used[s.pkg+" "+op] {
				t.Errorf("package %s does not name %s; take it out of this test", s.pkg, op)
			}
		}
	}
}

// namesIn returns the ops that a file names, each once.
func namesIn(t *testing.T, file string, src []byte, ops map[string]string) (found []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		name := ""
		switch n := n.(type) {
		case *ast.Ident: // in package ir
			name = n.Name
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				name = x.Name + "." + n.Sel.Name
			}
		case *ast.BasicLit:
			name = n.Value
		}
		if op, ok := ops[name]; ok && !slices.Contains(found, op) {
			found = append(found, op)
		}
		return true
	})
	return found
}
