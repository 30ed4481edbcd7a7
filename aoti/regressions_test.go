package aoti_test

// Faults that users of AOTInductor reported, by the numbers of their issues.
// Those about the pool alone have their tests in package container.

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// maps returns the files that are mapped and executable or not, without those of
// anonymous memory.
func mapped(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return string(b)
}

// 34058, 159947, 153242: a model needs all of libtorch. Here none is loaded,
// also for a package that was linked with it.
func TestNoLibtorch(t *testing.T) {
	f := open(t, "mlp_linked")
	r := load(t, "mlp_linked")
	if _, err := r.Run(context.Background(), f.list(t, "in")...); err != nil {
		t.Fatal(err)
	}
	for _, lib := range []string{"libtorch", "libc10", "libgomp"} {
		if strings.Contains(mapped(t), lib) {
			t.Errorf("%s is loaded", lib)
		}
	}
}

// 141115, 153980, 153992, 150364: a wrong input is undefined behaviour. Here it is
// an error that names the input, and the next run works.
func TestBadInputs(t *testing.T) {
	f32 := func(dims ...int) aoti.Buffer { return aoti.NewBuffer(ir.F32, dims...) }
	for _, c := range []struct {
		name, fixture string
		inputs        []aoti.Buffer
		want          []string
	}{
		{"none", "mlp", nil, []string{"0 inputs", "1"}},
		{"too many", "mlp", []aoti.Buffer{f32(8, 64), f32(8, 64)}, []string{"2 inputs", "1"}},
		{"nil", "mlp", []aoti.Buffer{nil}, []string{"input 0", "nil"}},
		{"dtype", "mlp", []aoti.Buffer{aoti.NewBuffer(ir.F64, 8, 64)}, []string{"input 0", "dtype", "float32", "float64"}},
		{"rank", "mlp", []aoti.Buffer{f32(8, 64, 1)}, []string{"input 0", "rank", "2", "3"}},
		{"lower rank", "mlp", []aoti.Buffer{f32(512)}, []string{"input 0", "rank", "2", "1"}},
		{"size", "mlp", []aoti.Buffer{f32(8, 63)}, []string{"input 0", "dimension 1", "64", "63"}},
		{"empty", "mlp", []aoti.Buffer{f32(0, 64)}, []string{"input 0", "dimension 0", "8", "0"}},
		{"above the range", "dynamic_batch", []aoti.Buffer{f32(1025, 24)}, []string{"input 0", "dimension 0", "1024", "1025"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, c.fixture)
			r := load(t, c.fixture)
			_, err := r.Run(context.Background(), c.inputs...)
			if err == nil {
				t.Fatal("it ran")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			var bad *pt2.InputError
			if !errors.As(err, &bad) && !errors.Is(err, ir.ErrArg) {
				t.Errorf("%T", err)
			}
			if _, err := r.Run(context.Background(), f.list(t, "in")...); err != nil {
				t.Errorf("the run after it: %v", err)
			}
		})
	}
}

// A library without source is checked by what was compiled into it.
func TestBareLibraryChecksInputs(t *testing.T) {
	for name, want := range map[string]string{
		"mlp":      "unmatched dim value at 1, expected: 64, but got: 63",
		"mlp_2_11": "unmatched dim value at 1, expected: 64, but got: 63",
		"mlp_2_6":  "8×63 and 64×128", // it has no checks, but the product has
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			load(t, name) // or skip
			so := extract(t, name, ".so")
			r, err := aoti.Load(context.Background(), so)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			_, err = r.Run(context.Background(), aoti.NewBuffer(ir.F32, 8, 63))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			outs, err := r.Run(context.Background(), f.list(t, "in")...)
			if err != nil {
				t.Fatal(err)
			}
			if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
				t.Error(o.problem)
			}
		})
	}
}

// extract writes the file of a package with the given end of its name to a
// temporary folder.
func extract(t *testing.T, name, suffix string) string {
	t.Helper()
	p, err := pt2.Open(path(name))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Model("")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range m.Files() {
		if !strings.HasSuffix(file, suffix) {
			continue
		}
		s, err := m.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		data := make([]byte, s.Size)
		if _, err := s.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "model"+suffix)
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return to
	}
	t.Fatalf("%s has no file %q", name, suffix)
	return ""
}

// 189995: load from memory. 141772: temporary files stay behind. Neither the
// folder for them nor the working directory changes.
func TestLoadFromMemory(t *testing.T) {
	load(t, "mlp") // or skip
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, name := range []string{"mlp", "weights_blob", "weights_mmap", "weights_disk", "mlp_2_6"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path(name))
			if err != nil {
				t.Fatal(err)
			}
			r, err := aoti.LoadFrom(context.Background(), bytes.NewReader(data), int64(len(data)), aoti.TempDir(dir))
			if err != nil {
				t.Fatal(err)
			}
			clear(data) // it is read no more
			f := open(t, name)
			outs, err := r.Run(context.Background(), f.list(t, "in")...)
			if err != nil {
				t.Fatal(err)
			}
			if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
				t.Error(o.problem)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v was left behind, %v", left, err)
	}
}

// 169154: each instance costs a copy of the library on disk. Here all share one
// in memory.
func TestInstancesShareOneCopy(t *testing.T) {
	before := strings.Count(mapped(t), "memfd:loris")
	load(t, "mlp", aoti.Instances(1))
	one := strings.Count(mapped(t), "memfd:loris") - before
	load(t, "mlp_2_11", aoti.Instances(8))
	if both := strings.Count(mapped(t), "memfd:loris") - before; both != 2*one || one == 0 {
		t.Errorf("%d mappings for one instance, %d with 8 more of another library", one, both)
	}
}

// 182045: the text of an error is lost. Here it is in the error, whatever the
// generation and whoever threw.
func TestErrorText(t *testing.T) {
	f := open(t, "bounds")
	r := load(t, "bounds")
	ctx := context.Background()
	in := f.list(t, "in")
	low := aoti.FromSlice(make([]float32, 18), 6, 3)
	data, err := aoti.Float32s(low)
	if err != nil {
		t.Fatal(err)
	}
	data[7] = -10
	if _, err := r.Run(ctx, low, in[1]); err == nil || !strings.Contains(err.Error(), "x must stay above -9") {
		t.Errorf("an assertion: %v", err)
	}
	_, err = r.Run(ctx, in[0], aoti.FromSlice([]int64{0, 6, 1}, 3))
	if err == nil || strings.Count(err.Error(), "index out of bounds") != 1 || strings.Contains(err.Error(), ".cpp") {
		t.Errorf("an index, once and without the files of another machine: %v", err)
	}
}

// A check that fails in the last parallel region of a run is the run's error, and
// not the next one's.
func TestErrorInTheLastParallelRegion(t *testing.T) {
	f := open(t, "parallel_bounds")
	r := load(t, "parallel_bounds")
	in := f.list(t, "in")
	bad := make([]int64, 96)
	for range 3 {
		for _, at := range []int{0, 95} {
			bad[at] = 64
			if _, err := r.Run(t.Context(), in[0], aoti.FromSlice(bad, 96)); err == nil || !strings.Contains(err.Error(), "index out of bounds") {
				t.Errorf("index %d: %v", at, err)
			}
			bad[at] = 0
		}
		outs, err := r.Run(t.Context(), in...)
		if err != nil {
			t.Fatal(err)
		}
		if o := compare(t, outs[0], f.tensor(t, "out0"), nil); o.problem != "" {
			t.Error(o.problem)
		}
		outs[0].Release()
	}
}

// 187875, 134946: a run that throws keeps its instance, and the next one hangs.
func TestRunThatThrowsReturnsItsInstance(t *testing.T) {
	f := open(t, "bounds")
	ctx := context.Background()
	for _, instances := range []int{1, 3} {
		before := host.Handles()
		r := load(t, "bounds", aoti.Instances(instances))
		in := f.list(t, "in")
		bad := aoti.FromSlice([]int64{0, 6, 1}, 3)
		for range 5 * instances {
			if _, err := r.Run(ctx, in[0], bad); err == nil {
				t.Fatal("it did not fail")
			}
			outs, err := r.Run(ctx, in...)
			if err != nil {
				t.Fatal(err)
			}
			if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
				t.Error(o.problem)
			}
			outs[0].Release()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n := host.Handles(); n != before {
			t.Errorf("%d handles before, %d after", before, n)
		}
	}
}

// 123745: a host of another version. Libraries of three generations run side by
// side, and the constants of each are replaced.
func TestGenerationsSideBySide(t *testing.T) {
	ctx := context.Background()
	names := []string{"mlp", "mlp_2_11", "mlp_2_6"}
	var runners []*aoti.Runner
	for _, name := range names {
		runners = append(runners, load(t, name, aoti.Instances(2)))
	}
	var wg sync.WaitGroup
	for i, r := range runners {
		wg.Go(func() {
			f := open(t, names[i])
			in := f.list(t, "in")
			for range 20 {
				if err := replaceConstants(ctx, t, r, f, in); err != nil {
					t.Errorf("%s: %v", names[i], err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// replaceConstants swaps in weights of zero, whose outputs are the last bias,
// and swaps back.
func replaceConstants(ctx context.Context, t *testing.T, r *aoti.Runner, f *fixture, in []aoti.Buffer) error {
	was, err := r.ExtractConstants(ctx, aoti.Active, true)
	if err != nil {
		return err
	}
	zero := map[string]aoti.Buffer{}
	for name, b := range was {
		defer b.Release()
		if strings.HasSuffix(name, "weight") {
			zero[name] = aoti.FromSlice(make([]float32, b.Shape().Numel()), b.Shape().Dims()...)
		} else {
			zero[name] = b
		}
	}
	if err := r.Update(ctx, zero, aoti.Inactive); err != nil {
		return err
	}
	if err := r.Swap(ctx); err != nil {
		return err
	}
	outs, err := r.Run(ctx, in...)
	if err != nil {
		return err
	}
	bias := values(t, was["2.bias"])
	for i, x := range values(t, outs[0]) {
		if x != bias[i%len(bias)] {
			return errors.New("the outputs are not those of the new constants")
		}
	}
	outs[0].Release()
	if err := r.Swap(ctx); err != nil {
		return err
	}
	if outs, err = r.Run(ctx, in...); err != nil {
		return err
	}
	if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
		return errors.New(o.problem)
	}
	outs[0].Release()
	return nil
}

// 196027: no metadata. The runner tells what a model takes.
func TestMetadata(t *testing.T) {
	r := load(t, "dynamic_batch")
	in := r.Inputs()
	if len(in) != 1 || in[0].DType != ir.F32 || in[0].Dims[0].Max != 1024 {
		t.Errorf("%v", in)
	}
	if in, out := r.CallSpec(); !strings.Contains(in, "builtins.tuple") || out == "" {
		t.Errorf("%q, %q", in, out)
	}
	if len(r.Constants()) == 0 || r.Device() != "cpu" || r.Name() != "model" {
		t.Errorf("%v on %s: %v", r.Name(), r.Device(), r.Constants())
	}
}

// 165444, 180446: buffers that a model writes, and models that fold when they
// first run, keep their values through a swap of the same constants.
func TestMutatedBuffersArePerInstance(t *testing.T) {
	f := open(t, "counter")
	ctx := context.Background()
	for _, instances := range []int{1, 2} {
		r := load(t, "counter", aoti.Instances(instances))
		was, err := r.ExtractConstants(ctx, aoti.Active, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range f.cases() {
			outs, err := r.Run(ctx, f.list(t, c+"in")...)
			if err != nil {
				t.Fatal(err)
			}
			if instances > 1 {
				continue // any instance may have run
			}
			for k, got := range outs {
				if o := compare(t, got, f.list(t, c+"out")[k], nil); o.problem != "" {
					t.Errorf("run %d, output %d: %s", i, k, o.problem)
				}
			}
		}
		now, err := r.ExtractConstants(ctx, aoti.Active, true)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range now {
			if o := compare(t, b, was[name], nil); o.ours != 0 || o.problem != "" {
				t.Errorf("%s in the shared set changed", name)
			}
		}
	}
}

// Weights that are not in the package must come before the first run.
func TestWithoutWeights(t *testing.T) {
	f := open(t, "weights_none")
	ctx := context.Background()
	for _, c := range []struct {
		name string
		opts []aoti.Option
	}{{"weights_none", nil}, {"weights_disk", []aoti.Option{aoti.WithoutWeights()}}, {"weights_blob", []aoti.Option{aoti.WithoutWeights()}}} {
		t.Run(c.name, func(t *testing.T) {
			r := load(t, c.name, c.opts...)
			_, err := r.Run(ctx, f.list(t, "in")...)
			if !errors.Is(err, container.ErrMissing) || !strings.Contains(err.Error(), "weight") {
				t.Errorf("a run without weights: %v", err)
			}
			constants := stored(t, f)
			delete(constants, "0.bias")
			var bad *container.ConstantError
			if err := r.Update(ctx, constants, aoti.Active); !errors.As(err, &bad) || !strings.Contains(err.Error(), "bias") {
				t.Errorf("an update that lacks one: %v", err)
			}
			if err := r.Update(ctx, stored(t, f), aoti.Active); err != nil {
				t.Fatal(err)
			}
			outs, err := r.Run(ctx, f.list(t, "in")...)
			if err != nil {
				t.Fatal(err)
			}
			if o := compare(t, outs[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
				t.Error(o.problem)
			}
		})
	}
}

// stored returns the constants that lie in a fixture's file.
func stored(t testing.TB, f *fixture) map[string]aoti.Buffer {
	out := map[string]aoti.Buffer{}
	for _, info := range f.file.Tensors() {
		if name, ok := strings.CutPrefix(info.Name, "constant."); ok {
			out[name] = f.tensor(t, info.Name)
		}
	}
	return out
}
