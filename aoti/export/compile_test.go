package export_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

// compiled exports a sample by the C++ compiler of this machine.
func (s *sample) compiled(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	err := export.Program(context.Background(), &out, s.p, export.Options{Constants: s.constants, Emitter: "c++"})
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Both emitters make packages that compute the same, to 4 units in the last place of the largest: their
// elementary functions err in other ways.
func TestEmittersAgree(t *testing.T) {
	for name, p := range programs(t) {
		if !longtest.Enabled() && !slices.Contains([]string{"mlp", "norm"}, name) {
			continue // the compiler takes a second for each
		}
		t.Run(name, func(t *testing.T) {
			s := sampleOf(t, p, 1)
			r := load(t, s.compiled(t))
			got, err := r.Run(context.Background(), s.in...)
			if err != nil {
				t.Fatal(err)
			}
			want, err := load(t, s.export(t)).Run(context.Background(), s.in...)
			if err != nil {
				t.Fatal(err)
			}
			within(t, got, want, 4)
		})
	}
}

// A size that varies does so in a library that a compiler made.
func TestCompiledSizesVary(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("a compiler runs: only in the long suites, see internal/longtest")
	}
	p := parse(t, `program @p { %x = parameter "x" : f32[9,8] return softmax(exp(%x), -1), sum(%x, [0]) }`)
	o := export.Options{Emitter: "c++", DynamicShapes: []map[int]export.Dim{{0: {Name: "n", Min: 1, Max: 9}}}}
	var pkg bytes.Buffer
	if err := export.Program(context.Background(), &pkg, p, o); errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	for _, n := range []string{"9", "4", "1"} {
		s := sampleOf(t, parse(t, `program @p { %x = parameter "x" : f32[`+n+`,8] return softmax(exp(%x), -1), sum(%x, [0]) }`), 2)
		got, err := r.Run(context.Background(), s.in...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, s.want(t))
	}
}

// Without a compiler, or with one that fails, there is an error that says so, and no package.
func TestCompilersThatFail(t *testing.T) {
	p := programs(t)["pointwise"]
	s := sampleOf(t, p, 1)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho this is no compiler\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var failed *export.CompileError
	for _, c := range []struct {
		o    export.Options
		want string
		is   func(err error) bool
	}{
		{export.Options{Emitter: "c++", Compiler: "no-such-g++ -O9"}, "no-such-g++ is not here", func(err error) bool { return errors.Is(err, exec.ErrNotFound) }},
		{export.Options{Emitter: "c++", Compiler: broken}, "this is no compiler", func(err error) bool { return errors.As(err, &failed) }},
		{export.Options{Emitter: "rust"}, `no Emitter "rust"`, func(err error) bool { return errors.Is(err, ir.ErrArg) }},
		{export.Options{Compiler: "g++"}, "without the Emitter", func(err error) bool { return errors.Is(err, ir.ErrArg) }},
	} {
		if runtime.GOOS == "windows" && c.o.Compiler == broken {
			continue // it has no scripts of this kind
		}
		c.o.Constants = s.constants
		var pkg bytes.Buffer
		if err := export.Program(context.Background(), &pkg, p, c.o); err == nil || !c.is(err) || !strings.Contains(err.Error(), c.want) || pkg.Len() > 0 {
			t.Errorf("%+v: %v, %d bytes", c.o, err, pkg.Len())
		}
	}
}
