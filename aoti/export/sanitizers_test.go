package export

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/glue"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/longtest"
)

// encoded returns the words and the code of a program of testdata, whose parameters "w…" are constants.
func encoded(t *testing.T, program string, assign map[string]int, compiled bool) (*model, *encoder) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", program+".lir"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]aoti.ConstantValue{}
	r := rand.New(rand.NewPCG(1, 2))
	for _, q := range p.Params {
		if strings.HasPrefix(q.Name, "w") {
			v := make([]float64, q.Shape.Numel())
			for i := range v {
				v[i] = float64(r.IntN(9) - 4)
			}
			values[q.Name] = aoti.ConstantValue{Shape: q.Shape, Data: elements.EncodeFloats(q.Shape.DType(), v)}
		}
	}
	m := &model{name: "model"}
	if err := m.constantsOf(p, values); err != nil {
		t.Fatal(err)
	}
	if err := m.assignAll(assign, len(p.Returns)); err != nil {
		t.Fatal(err)
	}
	plans, optimised, err := cpu.PlanAhead([]*graph.Program{p}, m.seed(), m.stays)
	if err != nil {
		t.Fatal(err)
	}
	m.plan = plans[0]
	if err := m.describe(optimised[0]); err != nil {
		t.Fatal(err)
	}
	e := newEncoder(m, compiled)
	if err := e.encode(); err != nil {
		t.Fatal(err)
	}
	return m, e
}

// All functions of the interface, with right and wrong arguments and hosts that fail in the middle, leave
// no memory behind and touch none that is not theirs: the object's source runs under the sanitizers.
func TestInterfaceUnderSanitizers(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("the object is compiled with the sanitizers: only for the long suites, see internal/longtest")
	}
	if runtime.GOOS != "linux" || !isa.AVX2() {
		t.Skip("libraries are for Linux and processors with AVX2")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skipf("the test is compiled when it runs: %v", err)
	}
	dir := t.TempDir()
	_, e := encoded(t, "driver", map[string]int{"w.n": 2}, false)
	if err := e.writeData(dir); err != nil {
		t.Fatal(err)
	}
	code := filepath.Join(dir, glue.Code)
	if err := os.WriteFile(code, e.code, 0o644); err != nil {
		t.Fatal(err)
	}
	asm := fmt.Sprintf(".text\n.balign 64\n.globl %s\n%s: .incbin %q\n.section .note.GNU-stack,\"\",@progbits\n", glue.Code, glue.Code, code)
	if err := os.WriteFile(code+".s", []byte(asm), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize=vla-bound", "-mno-red-zone"}
	sources, err := filepath.Glob("../internal/glue/c/*.c")
	if err != nil || len(sources) < 5 {
		t.Fatal(sources, err)
	}
	build := func(compiler string, args ...string) {
		t.Helper()
		if out, err := exec.Command(compiler, append(append([]string(nil), flags...), args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	objects := []string{filepath.Join(dir, "data.s"), code + ".s"}
	for _, s := range sources {
		o := filepath.Join(dir, filepath.Base(s)+".o")
		build("gcc", "-c", "-std=gnu11", "-o", o, s)
		objects = append(objects, o)
	}
	driver := filepath.Join(dir, "driver")
	build("g++", append([]string{"-std=c++17", "-o", driver, "testdata/driver.cpp"}, objects...)...)
	for _, rule := range []string{"stolen", "gradients", "strides", "checks", "views"} { // docs/aoti-export.md says what they are
		t.Run("rule "+rule, func(t *testing.T) {
			if out, err := exec.Command(driver, "rule", rule).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	out, err := exec.Command(driver, "20000").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// Filters are given to the host as views of the constants, so that it may keep them packed, unless runs
// assign them.
func TestFiltersShareTheConstants(t *testing.T) {
	m, e := encoded(t, "conv", nil, false)
	filters := 0
	for _, s := range m.plan.Steps {
		if s.Call == nil || s.Call.Function != "aoti_torch_cpu_convolution" {
			continue
		}
		w := s.Call.Args[1].(ahead.Tensor)
		if !e.shared(&w) {
			t.Errorf("the filters of %s are no view of the constants", s.Op)
		}
		m.constants[m.sources[m.plan.Places[w.Buf].Index].index].assigned = true
		if e.shared(&w) {
			t.Errorf("the filters of %s, which runs assign, are said to stay", s.Op)
		}
		filters++
	}
	if filters != 2 {
		t.Errorf("%d convolutions", filters)
	}
}

// Steps that read constants alone are taken out of the runs.
func TestWhatIsFolded(t *testing.T) {
	for _, c := range []struct {
		program string
		assign  map[string]int
		folds   int
	}{
		{"encoder", nil, 2}, // the factors of w.up and w.down
		{"driver", map[string]int{"w.n": 2}, 1},
		{"mlp", nil, 0},
	} {
		m, _ := encoded(t, c.program, c.assign, false)
		if len(m.plan.Folds) != c.folds || c.folds > 0 && m.plan.FoldedBytes == 0 {
			t.Errorf("%s, assigning %v: %d steps fold %d bytes, want %d", c.program, c.assign, len(m.plan.Folds), m.plan.FoldedBytes, c.folds)
		}
	}
}
