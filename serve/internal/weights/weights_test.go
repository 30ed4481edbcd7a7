package weights

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
)

var ctx = context.Background()

// text is the model x*w+b, which has one value for w and for b in each good set, so
// that an answer to 1 tells which set it came from: 2v.
const text = `program @run {
  %x = parameter "x" : f32[4]
  %w = parameter "w" : f32[4]
  %b = parameter "b" : f32[4]
  %0 = add(mul(%x, %w), %b)
  return %0
}`

func same(n int, v float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func open(t testing.TB, o Options) *Sets {
	t.Helper()
	p, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	device, err := ir.ParseDevice("cpu")
	if err != nil {
		t.Fatal(err)
	}
	program := &container.Program{Run: p, Device: device}
	for _, name := range []string{"w", "b"} {
		program.Constants = append(program.Constants, container.ProgramConstant{
			Name: name, Type: backend.ConstantParameter, Value: aoti.FromSlice(same(4, 1), 4),
		})
	}
	c, err := container.New(ctx, program.Compile, container.Config{Instances: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(ctx, c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// file returns a safetensors file; a value is that of all elements.
func file(t testing.TB, metadata map[string]string, values map[string]float32) []byte {
	t.Helper()
	var tensors []safetensors.Tensor
	for name, v := range values {
		var data []byte
		for range 4 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		tensors = append(tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int64{4}, Data: data})
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func version(t testing.TB, v float32) []byte {
	return file(t, nil, map[string]float32{"w": v, "b": v})
}

// run returns the set of a run and the value of its elements, which must be one.
func run(t testing.TB, s *Sets, x float32) (name string, y float32) {
	t.Helper()
	outs, name, err := s.Run(ctx, []backend.Buffer{aoti.FromSlice(same(4, x), 4)})
	if err != nil {
		t.Error(err)
		return "", 0
	}
	defer releaseOuts(outs)
	v, err := aoti.Float32s(outs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v {
		if e != v[0] {
			t.Errorf("a torn run: %v", v)
		}
	}
	return name, v[0]
}

func names(s *Sets) string {
	var out []string
	for _, e := range s.List() {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func TestUpdates(t *testing.T) {
	s := open(t, Options{Source: "package", Keep: 3})
	expect := func(name string, y float32) {
		t.Helper()
		if n, got := run(t, s, 1); n != name || got != y {
			t.Errorf("a run computes %v with %q, want %v with %q", got, n, y, name)
		}
	}
	expect(Initial, 2)
	data := version(t, 3)
	sum := sha256.Sum256(data)
	u, err := s.Update(ctx, bytes.NewReader(data), Update{Name: "a", SHA256: hex.EncodeToString(sum[:]), Source: "upload"})
	if err != nil || u.Name != "a" || !u.Active || u.Tensors != 2 || u.Bytes != 32 {
		t.Fatalf("%+v, %v", u, err)
	}
	expect("a", 6)
	if u, err = s.Update(ctx, bytes.NewReader(version(t, 4)), Update{KeepActive: true}); err != nil || u.Active || len(u.Name) != 16 {
		t.Fatalf("%+v, %v", u, err)
	}
	expect("a", 6)
	if previous, _, err := s.Activate(ctx, u.Name); err != nil || previous != "a" {
		t.Fatalf("%q, %v", previous, err)
	}
	expect(u.Name, 8)
	// What a partial update leaves out is of the active set, not of what was inactive.
	if _, err := s.Update(ctx, bytes.NewReader(file(t, nil, map[string]float32{"b": 1})), Update{Name: "p", Partial: true}); err != nil {
		t.Fatal(err)
	}
	expect("p", 5)
	if got, want := names(s), "a "+u.Name+" p"; got != want {
		t.Errorf("three are kept: %s, want %s", got, want)
	}
	if _, err := s.Update(ctx, bytes.NewReader(version(t, 9)), Update{Name: "c", Check: true}); err != nil {
		t.Fatal(err)
	}
	expect("p", 5)
	if err := s.Drop(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if got, want := names(s), u.Name+" p"; got != want {
		t.Errorf("sets %s, want %s", got, want)
	}
	if got := s.List()[0]; got.Bytes != 32 || got.SHA256 == "" || got.Made.IsZero() {
		t.Errorf("%+v", got)
	}
	if v := s.c.Versions(); len(v) != 2 {
		t.Errorf("the container has %v", v)
	}
}

func kind(err error) inference.Kind { return inference.AsError(err).Kind }

// What is refused changes nothing.
func TestRefusals(t *testing.T) {
	s := open(t, Options{})
	good := version(t, 2)
	short := good[:len(good)-1]
	long := append(bytes.Clone(good), 0)
	for name, tt := range map[string]struct {
		file []byte
		u    Update
		kind inference.Kind
		text string
	}{
		"cut short":          {short, Update{}, inference.InvalidArgument, "ends too early"},
		"empty":              {nil, Update{}, inference.InvalidArgument, "ends too early"},
		"too long":           {long, Update{}, inference.InvalidArgument, "bytes follow"},
		"no safetensors":     {[]byte("PK\x03\x04aaaaaaaaaaaaaaaaa"), Update{}, inference.InvalidArgument, "file of weights"},
		"another digest":     {good, Update{SHA256: "00"}, inference.InvalidArgument, "sha256"},
		"a tensor less":      {file(t, nil, map[string]float32{"w": 1}), Update{}, inference.InvalidArgument, `"b"`},
		"an unknown tensor":  {file(t, nil, map[string]float32{"w": 1, "b": 1, "z": 1}), Update{}, inference.InvalidArgument, `"z"`},
		"a name that exists": {good, Update{Name: Initial}, inference.AlreadyExists, Initial},
		"a bad name":         {good, Update{Name: "a/b"}, inference.InvalidArgument, "a/b"},
		"another shape": {func() []byte {
			var b bytes.Buffer
			if err := safetensors.Write(&b, []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}}, nil); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}(), Update{Partial: true}, inference.InvalidArgument, "f32[1]"},
	} {
		_, err := s.Update(ctx, bytes.NewReader(tt.file), tt.u)
		if err == nil || kind(err) != tt.kind || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"activate": func() error { _, _, err := s.Activate(ctx, "x"); return err }(),
		"drop":     s.Drop(ctx, "x"),
		"canary":   s.SetTraffic(Traffic{Canary: "x", Percent: 1}),
	} {
		if kind(err) != inference.NotFound || !strings.Contains(err.Error(), Initial) {
			t.Errorf("%s what is not there: %v", name, err)
		}
	}
	if err := s.Drop(ctx, Initial); kind(err) != inference.Conflict {
		t.Errorf("drop the active set: %v", err)
	}
	if n, y := run(t, s, 1); n != Initial || y != 2 || names(s) != Initial || len(s.c.Versions()) != 1 {
		t.Errorf("after all that %s computes %v; there are %s", n, y, names(s))
	}
}

// While one changes the weights another is told so.
func TestOneChangeAtATime(t *testing.T) {
	s := open(t, Options{})
	r, w := io.Pipe()
	done := make(chan error, 1)
	data := version(t, 2)
	go func() {
		_, err := s.Update(ctx, r, Update{Name: "slow"})
		done <- err
	}()
	if _, err := w.Write(data[:20]); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"update":   func() error { _, err := s.Update(ctx, bytes.NewReader(data), Update{}); return err }(),
		"activate": func() error { _, _, err := s.Activate(ctx, Initial); return err }(),
		"drop":     s.Drop(ctx, Initial),
		"traffic":  s.SetTraffic(Traffic{}),
	} {
		if kind(err) != inference.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, _ := run(t, s, 1); n != Initial {
		t.Errorf("a run computes with %s", n)
	}
	if _, err := w.Write(data[20:]); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n, _ := run(t, s, 1); n != "slow" {
		t.Errorf("a run computes with %s", n)
	}
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.safetensors")
	write := func(metadata map[string]string, values map[string]float32) {
		t.Helper()
		if err := (func() error {
			f, err := safetensors.Parse(file(t, metadata, values))
			if err != nil {
				return err
			}
			var all []safetensors.Tensor
			for _, info := range f.Tensors() {
				data, err := f.Bytes(info.Name)
				if err != nil {
					return err
				}
				all = append(all, safetensors.Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape, Data: data})
			}
			return safetensors.WriteFile(path, all, metadata)
		})(); err != nil {
			t.Fatal(err)
		}
	}
	in, out := []string{"x"}, []string{"y"}
	if g, err := ReadGolden(path, in, out); g != nil || err != nil {
		t.Errorf("no file: %v, %v", g, err)
	}
	for name, tt := range map[string]struct {
		metadata map[string]string
		values   map[string]float32
	}{
		"no input":       {nil, map[string]float32{"y": 1}},
		"too much":       {nil, map[string]float32{"x": 1, "z": 1}},
		"bad tolerance":  {map[string]string{"atol": "-1"}, map[string]float32{"x": 1}},
		"no number":      {map[string]string{"rtol": "x"}, map[string]float32{"x": 1}},
		"NaN is neither": {map[string]string{"rtol": "nan"}, map[string]float32{"x": 1}},
	} {
		write(tt.metadata, tt.values)
		if _, err := ReadGolden(path, in, out); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(map[string]string{"atol": "0.5"}, map[string]float32{"x": 1, "y": 4})
	g, err := ReadGolden(path, in, out)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Golden: g})
	if _, err := s.Update(ctx, bytes.NewReader(version(t, 2.25)), Update{Name: "near"}); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]float32{"far": 2.5, "nan": float32(math.NaN()), "inf": float32(math.Inf(1))} {
		for _, check := range []bool{false, true} {
			_, err := s.Update(ctx, bytes.NewReader(version(t, v)), Update{Name: name, Check: check})
			if kind(err) != inference.InvalidArgument || !strings.Contains(err.Error(), "golden") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n, _ := run(t, s, 1); n != "near" || names(s) != "initial near" || len(s.c.Versions()) != 2 {
		t.Errorf("a run computes with %s; there are %s", n, names(s))
	}
}

func TestTraffic(t *testing.T) {
	s := open(t, Options{})
	for i, name := range []string{"canary", "same", "other"} {
		if _, err := s.Update(ctx, bytes.NewReader(version(t, []float32{5, 1, 2}[i])), Update{Name: name, KeepActive: true}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(tr Traffic) {
		t.Helper()
		if err := s.SetTraffic(tr); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []Traffic{{Canary: "canary", Percent: 101}, {Canary: "canary", Percent: -1}, {Canary: "canary", Percent: math.NaN()}, {Percent: 5}, {Canary: Initial}, {Shadow: Initial}} {
		if err := s.SetTraffic(bad); kind(err) != inference.InvalidArgument {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	set(Traffic{Canary: "canary", Percent: 25})
	seen := map[string]int{}
	for range 1000 {
		n, y := run(t, s, 1)
		if y != map[string]float32{Initial: 2, "canary": 10}[n] {
			t.Fatalf("%s computes %v", n, y)
		}
		seen[n]++
	}
	if n := seen["canary"]; n < 150 || n > 350 || seen[Initial] != 1000-n {
		t.Errorf("runs by set: %v", seen)
	}
	if err := s.Drop(ctx, "canary"); kind(err) != inference.Conflict {
		t.Errorf("drop a canary: %v", err)
	}
	for _, tt := range []struct {
		shadow string
		want   ShadowReport
	}{{"same", ShadowReport{Compared: 1}}, {"other", ShadowReport{Compared: 1, Different: 1, MaxAbs: 2}}} {
		set(Traffic{Shadow: tt.shadow})
		if n, y := run(t, s, 1); n != Initial || y != 2 {
			t.Errorf("beside a shadow %s computes %v", n, y)
		}
		s.shadow.done.Wait()
		if tr, r := s.Traffic(); r != tt.want || tr.Shadow != tt.shadow {
			t.Errorf("shadow %q has shown %+v, want %+v", tr.Shadow, r, tt.want)
		}
	}
	if _, _, err := s.Activate(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	if tr, _ := s.Traffic(); tr.Shadow != "" {
		t.Errorf("the active set is a shadow: %+v", tr)
	}
}

// Runs beside updates, activations, drops and changing traffic compute what the set
// that they name computes.
func TestChaos(t *testing.T) {
	s := open(t, Options{Keep: 3})
	var values sync.Map
	values.Store(Initial, float32(1))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var runs atomic.Int64
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n, y := run(t, s, 1)
				v, _ := values.Load(n)
				if want, _ := v.(float32); y != 2*want {
					t.Errorf("%q computes %v, want %v", n, y, 2*want)
					return
				}
				runs.Add(1)
			}
		})
	}
	for i, end := 2, time.Now().Add(300*time.Millisecond); time.Now().Before(end) && !t.Failed(); i++ {
		name := fmt.Sprint("v", i)
		values.Store(name, float32(i))
		var err error
		_, err = s.Update(ctx, bytes.NewReader(version(t, float32(i))), Update{Name: name, KeepActive: i%3 == 0})
		switch {
		case err == nil && i%3 == 0:
			err = s.SetTraffic(Traffic{Canary: name, Percent: 50, Shadow: name})
		case err == nil && i%5 == 0:
			_, _, err = s.Activate(ctx, s.List()[0].Name)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for runs.Load() == 0 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wg.Wait()
	if n := len(s.List()); n > 5 || len(s.c.Versions()) != n {
		t.Errorf("%d sets are left, and in the container %v", n, s.c.Versions())
	}
	t.Logf("%d runs", runs.Load())
}

func TestClosed(t *testing.T) {
	s := open(t, Options{})
	if err := s.c.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Update(ctx, bytes.NewReader(version(t, 1)), Update{})
	if kind(err) != inference.Unavailable {
		t.Errorf("%v", err)
	}
	if _, _, err := s.Run(ctx, []backend.Buffer{aoti.FromSlice(same(4, 1), 4)}); !errors.Is(err, container.ErrClosed) {
		t.Errorf("%v", err)
	}
}
