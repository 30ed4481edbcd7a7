package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
)

const fixtures = "../../../aoti/testdata/"

func openFixture(t testing.TB, name string, o Options) *Model {
	t.Helper()
	m, err := Open(context.Background(), fixtures+name+".pt2", o)
	if errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// What a package says of itself, and what its first runs show.
func TestDescribes(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  int64
		fixed bool
		note  string
		io    string
	}{
		{"mlp", 8, true, "", "arg4_1 FP32 [8, 64] -> output0 FP32 [-1 10]"},
		{"dynamic_batch", 1024, false, "", "arg4_1 FP32 [s31 in 0..1024, 24] -> output0 FP32 [-1 6]"},
		{"dynamic_ranges", 16, false, "", "arg2_1 FP32 [s21 in 0..16, s50 in 0..64, 8]; arg3_1 FP32 [s21 in 0..16, s50 in 0..64]; arg4_1 FP32 [s21 in 0..16, 2*s50 in 4..128] -> output0 FP32 [-1 5]; output1 FP32 [-1 -1]"},
		{"structure", 0, false, "", "arg0_1 FP32 [3, 4]; arg1_1 FP32 [4]; arg2_1 FP32 [3, 4]; arg3_1 FP32 [2]; scale FP32 [] -> sum FP32 [3 4]; output1 FP32 [3 4]; output2 FP32 [3 4]"},
		{"counter", 0, false, "has a state", "arg4_1 FP32 [5, 4] -> output0 FP32 [5 4]; output1 INT64 []"},
		{"quantised_linear", 9, true, "", "arg28_1 FP32 [9, 32] -> output0 FP32 [-1 10]; output1 FP32 [-1 32]"}, // writes into its input
		{"batch_norm_train", 0, false, "depends on other rows", "arg7_1 FP32 [3, 2, 6, 6] -> output0 FP32 [3 4 4 4]"},
		{"mlp_2_6", 0, false, "not known", "arg4_1  [] -> output0  []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openFixture(t, c.name, Options{})
			if m.Rows != c.rows || m.FixedRows != c.fixed {
				t.Errorf("rows %d, fixed %v; want %d, %v", m.Rows, m.FixedRows, c.rows, c.fixed)
			}
			if !strings.Contains(m.Note, c.note) || (c.note == "" && m.Note != "") {
				t.Errorf("note %q, want %q", m.Note, c.note)
			}
			var in, out []string
			for i := range m.Inputs {
				in = append(in, fmt.Sprintf("%s %s %s", m.Inputs[i].Name, m.Inputs[i].Datatype, m.Inputs[i].text()))
			}
			for _, o := range m.Outputs {
				out = append(out, fmt.Sprintf("%s %s %v", o.Name, o.Datatype, o.Shape))
			}
			if got := strings.Join(in, "; ") + " -> " + strings.Join(out, "; "); got != c.io {
				t.Errorf("%s\nwant %s", got, c.io)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"complex_output": "complex64", "exported": "torch.export", "proxy_refused": "linalg_ldl_factor", "missing": "no such file",
	} {
		m, err := Open(context.Background(), fixtures+name+".pt2", Options{})
		if errors.Is(err, aoti.ErrNoLibraries) {
			t.Skip(err)
		}
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// A model with a state starts from it, whatever was run to learn its outputs.
func TestStateIsFresh(t *testing.T) {
	m := openFixture(t, "counter", Options{})
	f := openTensors(t, "counter")
	for run := range 2 {
		w := caseWork(t, m, f, run)
		r, err := m.Run(context.Background(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := int64(binary.LittleEndian.Uint64(r.Outputs[0][1].Data)), int64(run+1); got != want {
			t.Errorf("run %d: the counter is %d, want %d", run, got, want)
		}
		r.Release()
	}
}

func openTensors(t *testing.T, name string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(fixtures + name + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// caseWork returns the stored inputs of a fixture's case.
func caseWork(t *testing.T, m *Model, f *safetensors.File, n int) *Work {
	t.Helper()
	r := &inference.Request{}
	for i := range m.Inputs {
		name := fmt.Sprintf("in%d", i)
		info, ok := f.Lookup(fmt.Sprintf("case%d.%s", n, name))
		if !ok {
			info, ok = f.Lookup(name)
		}
		if !ok {
			t.Fatalf("no input %d of case %d in %v", i, n, f.Tensors())
		}
		data, err := f.Bytes(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		in := inference.Tensor{Name: name, Datatype: m.Inputs[i].Datatype, Data: data}
		for _, d := range info.Shape {
			in.Shape = append(in.Shape, int64(d))
		}
		r.Inputs = append(r.Inputs, in)
	}
	w, err := m.Bind(r)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A row's bits do not depend on the batch that it came in: every fixture that takes
// rows, in batches of many sizes, cut in many ways.
func TestRowsDoNotDependOnTheirBatch(t *testing.T) {
	all, err := filepath.Glob(fixtures + "*.pt2")
	if err != nil || len(all) == 0 {
		t.Fatal("no fixtures", err)
	}
	batched := 0
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".pt2")
		m, err := Open(context.Background(), path, Options{})
		if errors.Is(err, aoti.ErrNoLibraries) {
			t.Skip(err)
		}
		if err != nil {
			continue // TestRefuses has them
		}
		if m.Rows != 0 {
			batched++
			t.Run(name, func(t *testing.T) { checkRows(t, m) })
		}
		if err := m.Close(); err != nil {
			t.Error(name, err)
		}
	}
	if batched < 15 {
		t.Errorf("only %d fixtures take batches", batched)
	}
}

func checkRows(t *testing.T, m *Model) {
	n := int64(33)
	if m.Rows > 0 {
		n = min(n, m.Rows)
	}
	p := prober{m: m, rows: n, other: 8}
	if !p.example() {
		t.Fatal("no example")
	}
	rows := make([]*Work, n)
	for i := range rows {
		rows[i] = p.arranged(1, func(int64) int64 { return int64(i) })
		rows[i].Rows = 1
	}
	ctx := context.Background()
	want := make([][]byte, n) // all outputs of each row, run alone
	for i, w := range rows {
		want[i] = runRows(t, ctx, m, []*Work{w})[0]
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int64{2, 3, 4, 7, 8, 16, 31, 32, 33} {
		if size > n {
			continue
		}
		order := r.Perm(int(n))[:size]
		var works []*Work
		for _, i := range order {
			works = append(works, rows[i])
		}
		for j, got := range runRows(t, ctx, m, works) {
			if !bytes.Equal(got, want[order[j]]) {
				t.Errorf("row %d of %d differs from the row alone", j, size)
			}
		}
	}
}

func runRows(t *testing.T, ctx context.Context, m *Model, works []*Work) [][]byte {
	t.Helper()
	r, err := m.Run(ctx, works...)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for j := range works {
		var row []byte
		for _, o := range r.Outputs[j] {
			if o.Shape[0] != works[j].Rows {
				t.Fatalf("output %s of %d rows: shape %v", o.Name, works[j].Rows, o.Shape)
			}
			row = append(row, o.Data...)
		}
		all = append(all, row)
		r.Release()
	}
	return all
}

func TestBind(t *testing.T) {
	m := openFixture(t, "structure", Options{})
	f := openTensors(t, "structure")
	good := func() *inference.Request {
		r := &inference.Request{}
		w := caseWork(t, m, f, 0)
		for i, name := range []string{"ARGS[0][0]", "INPUT__1", "arg2_1", "ARGS[1][unused]", "KWARGS[scale]"} {
			in := w.Inputs[i]
			in.Name = name
			r.Inputs = append(r.Inputs, in)
		}
		return r
	}
	if _, err := m.Bind(good()); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*inference.Request){
		`there is no input "nobody"`:                func(r *inference.Request) { r.Inputs[0].Name = "nobody" },
		`is given twice`:                            func(r *inference.Request) { r.Inputs[1].Name = "in0" },
		`got 4: "scale" missing`:                    func(r *inference.Request) { r.Inputs = r.Inputs[:4] },
		`expected FP32, got INT32`:                  func(r *inference.Request) { r.Inputs[0].Datatype = inference.Int32 },
		`models take no BYTES`:                      func(r *inference.Request) { r.Inputs[0].Datatype = inference.Bytes },
		`expected shape [3, 4], got [4 3]`:          func(r *inference.Request) { r.Inputs[0].Shape = []int64{4, 3} },
		`expected shape [3, 4], got [12]`:           func(r *inference.Request) { r.Inputs[0].Shape = []int64{12} },
		`expected the elements of FP32[3 4], got 4`: func(r *inference.Request) { r.Inputs[0].Data = r.Inputs[0].Data[:4] },
	} {
		r := good()
		change(r)
		_, err := m.Bind(r)
		if err == nil || !strings.Contains(err.Error(), what) || inference.AsError(err).Kind != inference.InvalidArgument {
			t.Errorf("%v, want %s", err, what)
		}
	}
	for name, want := range map[string]int{"sum": 0, "RESULT[sum]": 0, "output1": 1, "RESULT[parts][1][0]": 2, "OUTPUT__2": 2, "out0": 0} {
		if i, err := m.FindOutput(name); err != nil || i != want {
			t.Errorf("output %s: %d, %v", name, i, err)
		}
	}
}

func TestRaw(t *testing.T) {
	m := openFixture(t, "dynamic_batch", Options{})
	raw := func(n int) (*Work, error) {
		return m.Bind(&inference.Request{Raw: true, Inputs: []inference.Tensor{{Data: make([]byte, n)}}})
	}
	w, err := raw(5 * 24 * 4)
	if err != nil || !slices.Equal(w.Inputs[0].Shape, []int64{5, 24}) || w.Rows != 5 {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := raw(100); err == nil || !strings.Contains(err.Error(), "100 bytes") {
		t.Error(err)
	}
}

// Data at an address that no element can have is copied.
func TestUnaligned(t *testing.T) {
	m := openFixture(t, "dynamic_batch", Options{})
	data := make([]byte, 2*24*4+1)
	for i := range data {
		data[i] = byte(i) & 0x3f
	}
	at := func(off int) []byte {
		room := make([]byte, len(data)+8)
		return room[off : off+copy(room[off:], data[:192])]
	}
	work := func(d []byte) *Work {
		return &Work{Rows: 2, Inputs: []inference.Tensor{{Name: "in0", Datatype: inference.FP32, Shape: []int64{2, 24}, Data: d}}}
	}
	ctx := context.Background()
	want := runRows(t, ctx, m, []*Work{work(at(0))})
	for _, off := range []int{1, 2, 3} {
		if got := runRows(t, ctx, m, []*Work{work(at(off))}); !bytes.Equal(got[0], want[0]) {
			t.Errorf("offset %d: another result", off)
		}
	}
}

// A lazy program: what the file of weights has are constants, the rest are inputs.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	path, weights := filepath.Join(dir, "model.lir"), filepath.Join(dir, "weights.safetensors")
	text := `program @affine {
  %x = parameter "x" : f32[4,2]
  %w = parameter "w" : f32[2,3]
  %y = matmul(%x, %w) : f32[4,3]
  return %y
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	values := floats(1, 2, 3, 4, 5, 6)
	if err := safetensors.WriteFile(weights, []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{2, 3}, Data: values}}, nil); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	m, err := Open(ctx, path, Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Rows != 4 || !m.FixedRows || len(m.Inputs) != 1 {
		t.Errorf("rows %d, inputs %v, note %q", m.Rows, m.Inputs, m.Note)
	}
	w, err := m.Bind(&inference.Request{Inputs: []inference.Tensor{{Name: "x", Datatype: inference.FP32, Shape: []int64{1, 2}, Data: floats(1, 10)}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := runRows(t, ctx, m, []*Work{w, w}); !bytes.Equal(got[0], floats(41, 52, 63)) || !bytes.Equal(got[1], got[0]) {
		t.Errorf("got %v", got)
	}
}

func floats(v ...float32) (b []byte) {
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}
