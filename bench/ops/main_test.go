package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// Nearly all ops have a case on some dtype. What is added to the table and cannot be called by its
// schema alone is named by the run until it has a recipe.
func TestOpsHaveCases(t *testing.T) {
	small := size{name: "small", letters: map[string]int{"r": 9, "c": 120, "n": 4, "q": 4, "b": 2, "k": 8, "s": 10, "t": 3, "v": 50}, awkward: true}
	var without []string
	for _, sp := range ir.Ops() {
		found := recipes[sp.Name] == "-"
		for _, d := range []ir.DType{ir.F32, ir.I64, ir.Bool, ir.C64} {
			if found {
				break
			}
			_, roots, err := prepare(sp, d, small, forward)
			if err != nil && !errors.Is(err, errNoCase) {
				t.Errorf("%s %v: %v", sp.Name, d, err)
			}
			found = err == nil && len(roots) > 0
		}
		if !found {
			without = append(without, sp.Name)
		}
	}
	if n := len(ir.Ops()); len(without) > n/20 {
		t.Errorf("%d of %d ops have no case: give them recipes: %v", len(without), n, without)
	}
}

func TestRecipesAreOfOps(t *testing.T) {
	known := map[string]bool{}
	for _, sp := range ir.Ops() {
		known[sp.Name] = true
	}
	for name := range recipes {
		if !known[name] {
			t.Errorf("there is a recipe for %s, which is no op", name)
		}
	}
	for _, s := range sizes {
		for name := range s.own {
			if !known[name] {
				t.Errorf("there is a recipe for %s of %s, which is no op", name, s.name)
			}
		}
	}
	for name := range unordered {
		if !known[name] {
			t.Errorf("%s is no op", name)
		}
	}
}

// Ops with a recipe for one size have a case there. A result in the square of a long dimension is no case.
func TestOwnRecipes(t *testing.T) {
	for _, s := range sizes {
		for _, sp := range ir.Ops() {
			if s.own[sp.Name] == "" {
				continue
			}
			if _, _, err := prepare(sp, ir.F32, s, forward); err != nil {
				t.Errorf("%s of %s: %v", sp.Name, s.name, err)
			}
		}
	}
	square := size{name: "square", letters: map[string]int{"r": 100003}, recipe: "self=r,2 other=r,2"}
	for _, sp := range ir.Ops() {
		if sp.Name != "inner" {
			continue
		}
		if _, _, err := prepare(sp, ir.F32, square, forward); !errors.Is(err, errNoCase) {
			t.Errorf("inner: %v", err)
		}
	}
}

// The test's program is the peer, too, if this variable says how it shall behave.
const behaviour = "BENCH_OPS_PEER"

func TestMain(m *testing.M) {
	if b := os.Getenv(behaviour); b != "" {
		pretend(b, os.Args[len(os.Args)-1])
		return
	}
	os.Exit(m.Run())
}

// pretend answers as a peer whose neg of two equal numbers is right or wrong.
func pretend(behaviour, folder string) {
	os.Stdout.WriteString("ready pretended 1.0\n")
	for {
		var line [100]byte
		n, err := os.Stdin.Read(line[:])
		if err != nil {
			return
		}
		switch request := strings.Fields(string(line[:n])); request[0] {
		case "open":
			if behaviour == "refuses" {
				os.Stdout.WriteString("error NoSuchOp: neg\n")
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, "operands"))
			if err != nil {
				os.Stdout.WriteString("error " + err.Error() + "\n")
				continue
			}
			for i := 3; behaviour == "right" && i < len(data); i += 4 {
				data[i] ^= 0x80
			}
			if err := os.WriteFile(filepath.Join(folder, "results"), data, 0o600); err != nil {
				os.Stdout.WriteString("error " + err.Error() + "\n")
				continue
			}
			os.Stdout.WriteString("ok f32\n")
		case "turn":
			os.Stdout.WriteString("ok 3 1000 100\n")
		default:
			os.Stdout.WriteString("ok\n")
		}
	}
}

func measured(t *testing.T, behaves string) *measurement {
	t.Helper()
	t.Setenv(behaviour, behaves)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parse([]string{"--python", self, "--only", "^neg$", "--dtypes", "f32", "--sizes", "cache", "--passes", "forward", "--threads", "1", "--rounds", "1", "--turn", "1ms"})
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{settings: s, folder: t.TempDir(), progress: io.Discard}
	if err := m.measure(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMeasure(t *testing.T) {
	m := measured(t, "right")
	if len(m.rows) != 1 {
		t.Fatalf("%+v", m.rows)
	}
	if r := m.rows[0]; r.Op != "neg" || r.Category != "pointwise" || r.Eager != 100 || r.Loris <= 0 || r.Ratio != float64(r.Loris)/100 || r.Why != "" {
		t.Errorf("%+v", r)
	}
	var text, list bytes.Buffer
	if err := errors.Join(m.report(&text), m.writeJSON(&list)); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); !strings.Contains(s, "pretended 1.0") || !strings.Contains(s, "neg") {
		t.Error(s)
	}
	var got struct{ Rows []row }
	if err := json.Unmarshal(list.Bytes(), &got); err != nil || len(got.Rows) != 1 || got.Rows[0] != m.rows[0] {
		t.Errorf("%v: %s", err, list.Bytes())
	}
}

// An op that the peer lacks or computes otherwise has no ratio, and says why.
func TestWithoutARatio(t *testing.T) {
	for behaves, want := range map[string]string{"refuses": "NoSuchOp: neg", "wrong": "differs from PyTorch's"} {
		m := measured(t, behaves)
		if r := m.rows[0]; r.Ratio != 0 || r.Loris <= 0 || !strings.Contains(r.Why, want) {
			t.Errorf("%s: %+v", behaves, r)
		}
	}
}

// A row that the file has is not measured again unless its ratio is above --again; a line that was cut
// off is dropped; after --for no row is begun.
func TestKeptRows(t *testing.T) {
	t.Setenv(behaviour, "right")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows")
	had := `{"op":"neg","dtype":"f32","size":"cache","pass":"forward","threads":1,"loris":3,"eager":1,"ratio":3}` + "\n"
	if err := os.WriteFile(path, []byte(had+`{"op":"ab`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags   []string
		measure bool
		cut     bool
	}{
		{nil, false, false},
		{[]string{"--again", "4"}, false, false},
		{[]string{"--again", "2", "--for", "1ns"}, false, true},
		{[]string{"--again", "2"}, true, false},
		{[]string{"--skip", "e", "--again", "0"}, false, false},
	} {
		flags := []string{"--python", self, "--only", "^neg$", "--dtypes", "f32", "--sizes", "cache", "--passes", "forward", "--threads", "1", "--rounds", "1", "--turn", "1ms", "--rows", path, "--quiet"}
		s, err := parse(append(flags, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := run(t.Context(), &text, io.Discard, s); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after, ok := strings.CutPrefix(string(data), had)
		if !ok || strings.Contains(after, `"eager":100`) != c.measure || strings.Contains(text.String(), "there are more") != c.cut {
			t.Errorf("%q: %s\n%s", c.flags, data, &text)
		}
		if err := os.WriteFile(path, []byte(had), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte("no row\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openKept(path); err == nil {
		t.Error("a file of other things is taken")
	}
}

// A recipe that is given takes the place of the op's and of the sizes.
func TestGivenRecipe(t *testing.T) {
	s, err := parse([]string{"--recipe", "mm:self=3,k mat2=k,5"})
	if err != nil {
		t.Fatal(err)
	}
	for _, sp := range ir.Ops() {
		if sp.Name != "mm" {
			continue
		}
		_, roots, err := prepare(sp, ir.F32, s.given["mm"], forward)
		if err != nil || roots[0].Shape() != ir.MakeShape(ir.F32, 3, 5) {
			t.Errorf("%v, %v", roots, err)
		}
	}
	if s.given["mm"].name != "self=3,k mat2=k,5" {
		t.Errorf("%+v", s.given)
	}
}

func TestSummaries(t *testing.T) {
	m := &measurement{}
	for i := range 20 {
		m.rows = append(m.rows, row{Category: "view", Threads: 1, Ratio: 0.1 * float64(i+1)})
	}
	m.rows = append(m.rows, row{Category: "scan", Threads: 1, Why: "no such op"})
	m.sort()
	if m.rows[0].Ratio != 2 || m.rows[20].Ratio != 0 {
		t.Errorf("sorted as %v", m.rows)
	}
	list := m.summaries()
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	if s := list[0]; s.Category != "" || s.Rows != 20 || s.Without != 1 || s.Median != 1.1 || s.P95 != 2 || s.Slower != 9 || s.Slowest != 5 {
		t.Errorf("%+v", s)
	}
	m.worst = 2
	if n := len(m.shown()); n != 2 {
		t.Errorf("%d rows of 2", n)
	}
}

func TestTrust(t *testing.T) {
	m := &measurement{noise: []noise{{1, 1.01, 1.02}}}
	if !m.trusted() {
		t.Error("a quiet machine is not trusted")
	}
	if m.noise = append(m.noise, noise{2, 1, 1.5}); m.trusted() {
		t.Error("a busy machine is trusted")
	}
	if u := unevenness(1); u < 1 {
		t.Errorf("%v", u)
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"--only", "sort", "--dtypes", "f32,i8", "--sizes", "memory", "--turn", "50ms", "--worst", "4"})
	if err != nil || len(s.dtypes) != 2 || len(s.sizes) != 1 || !s.sizes[0].awkward == (s.sizes[0].name != "memory") || s.turn != 50*time.Millisecond || s.worst != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parse(nil); err != nil || len(s.sizes) != usual || s.sizes[usual-1].name != "awkward" {
		t.Errorf("%+v, %v", s.sizes, err)
	}
	if s, err := parse([]string{"--sizes", "short,long"}); err != nil || len(s.sizes) != 2 {
		t.Errorf("%+v, %v", s.sizes, err)
	}
	for _, bad := range [][]string{{"x"}, {"--dtypes", "f31"}, {"--sizes", "big"}, {"--passes", "sideways"}, {"--only", "("}, {"--rounds", "0"}, {"--worst", "-1"}, {"--skip", "("}, {"--for", "-1s"}, {"--recipe", "mm"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ratios.png")
	if err := plotRows(path, []row{{Category: "scan", Ratio: 2}, {Category: "scan", Ratio: 3}, {Category: "view", Ratio: 0.1}, {}}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err := plotRows(path, nil); err == nil {
		t.Error("a plot of nothing")
	}
}
