package aoti_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
)

// fixture is a package in testdata with what PyTorch made of it.
type fixture struct {
	name string
	file *safetensors.File
}

func path(name string) string { return filepath.Join("testdata", name+".pt2") }

// open returns the fixture of a name.
func open(t testing.TB, name string) *fixture {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", name+".safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &fixture{name, f}
}

// load loads a fixture's package until the test ends.
func load(t testing.TB, name string, opts ...aoti.Option) *aoti.Runner {
	t.Helper()
	r, err := aoti.Load(context.Background(), path(name), opts...)
	if errors.Is(err, host.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var fileDTypes = map[safetensors.DType]ir.DType{
	"BOOL": ir.Bool, "U8": ir.U8, "I8": ir.I8, "I16": ir.I16, "I32": ir.I32, "I64": ir.I64,
	"F16": ir.F16, "BF16": ir.BF16, "F32": ir.F32, "F64": ir.F64, "C64": ir.C64, "C128": ir.C128,
	"F8_E4M3": ir.F8E4M3FN, "F8_E5M2": ir.F8E5M2,
}

// tensor returns a stored tensor, or nil.
func (f *fixture) tensor(t testing.TB, name string) aoti.Buffer {
	t.Helper()
	info, ok := f.file.Lookup(name)
	if !ok {
		return nil
	}
	data, err := f.file.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	dims := make([]int, len(info.Shape))
	for i, n := range info.Shape {
		dims[i] = int(n)
	}
	b, err := aoti.FromBytes(data, fileDTypes[info.DType], dims...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// list returns the tensors prefix0, prefix1 and so on.
func (f *fixture) list(t testing.TB, prefix string) []aoti.Buffer {
	t.Helper()
	var out []aoti.Buffer
	for {
		b := f.tensor(t, fmt.Sprint(prefix, len(out)))
		if b == nil {
			return out
		}
		out = append(out, b)
	}
}

// cases returns the prefixes of the runs that are stored, in order.
func (f *fixture) cases() []string {
	out := []string{""}
	for i := 1; ; i++ {
		prefix := fmt.Sprintf("case%d.", i)
		if _, ok := f.file.Lookup(prefix + "out0"); !ok {
			return out
		}
		out = append(out, prefix)
	}
}

// values returns the elements as numbers; of complex ones the parts in turn.
func values(t testing.TB, b aoti.Buffer) []float64 {
	t.Helper()
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d := b.Shape().DType()
	size := d.Size()
	read := readers[d]
	if d == ir.C64 || d == ir.C128 {
		size /= 2
	}
	if read == nil {
		t.Fatalf("no values of %v", d)
	}
	out := make([]float64, len(data)/size)
	for i := range out {
		out[i] = read(data[i*size:])
	}
	return out
}

var le = binary.LittleEndian

func readF32(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
func readF64(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }

var readers = map[ir.DType]func([]byte) float64{
	ir.Bool: func(b []byte) float64 { return float64(b[0]) },
	ir.U8:   func(b []byte) float64 { return float64(b[0]) },
	ir.I8:   func(b []byte) float64 { return float64(int8(b[0])) },
	ir.I16:  func(b []byte) float64 { return float64(int16(le.Uint16(b))) },
	ir.I32:  func(b []byte) float64 { return float64(int32(le.Uint32(b))) },
	ir.I64:  func(b []byte) float64 { return float64(int64(le.Uint64(b))) },
	ir.F16:  func(b []byte) float64 { return float64(half.F16ToF32(le.Uint16(b))) },
	ir.BF16: func(b []byte) float64 { return float64(half.BF16ToF32(le.Uint16(b))) },
	ir.F32:  readF32, ir.C64: readF32,
	ir.F64: readF64, ir.C128: readF64,
}

// mantissa are the bits of a float's fraction; 0 for dtypes that must be exact.
var mantissa = map[ir.DType]int{ir.F16: 10, ir.BF16: 7, ir.F32: 23, ir.F64: 52, ir.C64: 23, ir.C128: 52}

// outcome is how far outputs are from PyTorch's and from the truth.
type outcome struct {
	ours, torch float64 // largest errors against float64, or against PyTorch
	problem     string
}

// compare holds an output against PyTorch's and the reference in float64, which
// may be nil. The root mean square of its error is at most 1.3 times PyTorch's or
// two units in the last place of the largest magnitude; its largest error, which
// another order of the sums changes by chance, twice PyTorch's or four units.
func compare(t testing.TB, got, want, ref aoti.Buffer) outcome {
	t.Helper()
	if got.Shape() != want.Shape() {
		return outcome{problem: fmt.Sprintf("%v, want %v", got.Shape(), want.Shape())}
	}
	g, w := values(t, got), values(t, want)
	bits := mantissa[got.Shape().DType()]
	if bits == 0 {
		if !slices.Equal(g, w) {
			return outcome{ours: math.Inf(1), problem: fmt.Sprintf("%v differs from PyTorch's", got.Shape())}
		}
		return outcome{}
	}
	truth := w
	if ref != nil {
		truth = values(t, ref)
	}
	var o outcome
	var largest, ours, torch float64
	for i, x := range truth {
		if math.IsNaN(x) || math.IsInf(x, 0) || math.IsNaN(w[i]) || math.IsInf(w[i], 0) {
			if math.Float64bits(g[i]) != math.Float64bits(w[i]) && !(math.IsNaN(g[i]) && math.IsNaN(w[i])) {
				o.problem = fmt.Sprintf("element %d is %v, PyTorch's %v", i, g[i], w[i])
			}
			continue
		}
		largest = max(largest, math.Abs(x))
		o.torch = max(o.torch, math.Abs(w[i]-x))
		if e := math.Abs(g[i] - x); !(e <= o.ours) {
			o.ours = e
		}
		ours += (g[i] - x) * (g[i] - x)
		torch += (w[i] - x) * (w[i] - x)
	}
	n := float64(len(truth))
	ours, torch = math.Sqrt(ours/n), math.Sqrt(torch/n)
	_, exp := math.Frexp(largest)
	unit := math.Ldexp(1, exp-1-bits)
	if allowed := max(2*o.torch, 4*unit); !(o.ours <= allowed) && o.problem == "" {
		o.problem = fmt.Sprintf("largest error %.3g, PyTorch's is %.3g, allowed %.3g", o.ours, o.torch, allowed)
	}
	if allowed := max(1.3*torch, 2*unit); !(ours <= allowed) && len(truth) > 0 && o.problem == "" {
		o.problem = fmt.Sprintf("root mean square error %.3g, PyTorch's is %.3g, allowed %.3g", ours, torch, allowed)
	}
	return o
}

// fixtures returns the names of all that are there.
func fixtures(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "*.pt2"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for i, p := range all {
		all[i] = strings.TrimSuffix(filepath.Base(p), ".pt2")
	}
	slices.Sort(all)
	return all
}

// refused are the packages that must not load, with what the error says.
var refused = map[string]string{
	"collectives":     "_c10d_functional::all_gather_into_tensor",
	"custom_proxy":    "loris::scaled",
	"custom_shim":     "aoti_torch_cpu_scaled",
	"exported":        "torch.export.save",
	"proxy_refused":   "linalg",
	"tensor_parallel": "aoti_torch_cpu__c10d_functional_all_reduce_",
}

// TestFixtures runs every package and prints a line for each.
func TestFixtures(t *testing.T) {
	fmt.Printf("%-24s %-7s %7s %10s %10s %9s %9s\n", "package", "torch", "symbols", "error", "PyTorch's", "load", "run")
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			if _, ok := refused[name]; ok {
				t.Skip("a package that is refused; see TestRefused")
			}
			runFixture(t, name)
		})
	}
}

func runFixture(t *testing.T, name string) {
	f := open(t, name)
	begun := time.Now()
	r := load(t, name, options(name)...)
	loaded := time.Since(begun)
	if c := stored(t, f); len(c) > 0 {
		if err := r.Update(context.Background(), c, aoti.Active); err != nil {
			t.Fatal(err)
		}
	}
	if seed, err := strconv.ParseUint(f.file.Metadata()["seed"], 10, 64); err == nil {
		host.SetSeed(seed)
	}
	worst := outcome{}
	var fastest time.Duration = math.MaxInt64
	for _, c := range f.cases() {
		inputs := f.list(t, c+"in")
		begun := time.Now()
		outs, err := r.Run(context.Background(), inputs...)
		fastest = min(fastest, time.Since(begun))
		if err != nil {
			t.Errorf("%srun: %v", c, err)
			continue
		}
		want := f.list(t, c+"out")
		if len(outs) != len(want) {
			t.Errorf("%srun: %d outputs, want %d", c, len(outs), len(want))
			continue
		}
		for i, got := range outs {
			o := compare(t, got, want[i], f.tensor(t, fmt.Sprintf("%sref%d", c, i)))
			if o.problem != "" {
				t.Errorf("%soutput %d: %s", c, i, o.problem)
			}
			worst.ours, worst.torch = max(worst.ours, o.ours), max(worst.torch, o.torch)
			got.Release()
		}
	}
	symbols := strings.Count(f.file.Metadata()["symbols"], ",") + 1
	fmt.Printf("%-24s %-7s %7d %10.3g %10.3g %9v %9v\n", name, f.file.Metadata()["torch"], symbols,
		worst.ours, worst.torch, loaded.Round(10*time.Microsecond), fastest.Round(100*time.Nanosecond))
}

// options are what a fixture needs.
func options(name string) []aoti.Option {
	if name == "several" {
		return []aoti.Option{aoti.ModelName("model")}
	}
	return nil
}

// TestRefused: packages that this host cannot run are refused when they are
// loaded, by name.
func TestRefused(t *testing.T) {
	for _, name := range slices.SortedFunc(maps(refused), cmp.Compare) {
		if _, err := os.Stat(path(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r, err := aoti.Load(context.Background(), path(name))
			if err == nil {
				r.Close()
				t.Fatal("it was loaded")
			}
			if errors.Is(err, host.ErrNoLibraries) {
				t.Skip(err)
			}
			if !strings.Contains(err.Error(), refused[name]) {
				t.Errorf("%v, want %q", err, refused[name])
			}
			t.Log(err)
		})
	}
}

func maps(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
