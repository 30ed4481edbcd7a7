package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve"
	"github.com/loris-ml/loris/serve/client"
)

// start serves models as the command does, and returns the host and port.
func start(t testing.TB, o serve.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.HTTPAddress = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, o) }()
	for {
		select {
		case err := <-ended:
			stop()
			if errors.Is(err, aoti.ErrNoLibraries) {
				t.Skip(err)
			}
			t.Fatal(err)
		case <-time.After(2 * time.Millisecond):
		}
		resp, err := http.Get("http://" + o.HTTPAddress + "/v2/health/ready")
		if err != nil {
			continue
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode == http.StatusOK {
			break
		}
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return o.HTTPAddress
}

// each runs a test over both protocols.
func each(t *testing.T, host string, o client.Options, test func(*testing.T, *client.Client)) {
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			c, err := client.New(scheme+"://"+host, o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			test(t, c)
		})
	}
}

// write makes a repository of programs: by name, the text of version 1.
func write(t testing.TB, programs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		path := filepath.Join(dir, name, "1")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "model.lir"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const sumAndDifference = `program @simple {
  %x = parameter "x" : f32[4,2]
  %y = parameter "y" : f32[4,2]
  %0 = add(%x, %y)
  %1 = sub(%x, %y)
  return %0, %1
}
`

func TestInfer(t *testing.T) {
	host := start(t, serve.Options{Models: write(t, map[string]string{"simple": sumAndDifference})})
	x, y := []float32{1, 2, 3, 4, 5, 6, 7, 8}, []float32{10, 20, 30, 40, 50, 60, 70, 80}
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		in := &client.Request{Model: "simple", ID: "a\"b", Inputs: []client.Tensor{client.FromSlice("x", x, 4, 2), client.FromSlice("y", y, 4, 2)}}
		r, err := c.Infer(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if r.Model != "simple" || r.Version != "1" || r.ID != in.ID || len(r.Outputs) != 2 {
			t.Errorf("answer %+v", r)
		}
		sum, err := client.Slice[float32](&r.Outputs[0])
		if err != nil || !reflect.DeepEqual(sum, []float32{11, 22, 33, 44, 55, 66, 77, 88}) || !reflect.DeepEqual(r.Outputs[0].Shape, []int64{4, 2}) {
			t.Errorf("sum %v %v, %v", r.Outputs[0].Shape, sum, err)
		}
		r.Release()
		in.Outputs, in.Version, in.Parameters = []string{"OUTPUT__1"}, "1", map[string]any{"priority": int64(0), "timeout": int64(1e9)}
		r, err = c.Infer(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		difference, err := client.Slice[float32](r.Output("OUTPUT__1"))
		if err != nil || len(r.Outputs) != 1 || difference[7] != -72 {
			t.Errorf("difference %v, %v", difference, err)
		}
		if r.Output("OUTPUT__0") != nil {
			t.Error("an output came that was not asked for")
		}
	})
}

// TestConcurrent holds the answers of many requests at once, whose memory is pooled.
func TestConcurrent(t *testing.T) {
	host := start(t, serve.Options{Models: write(t, map[string]string{"simple": sumAndDifference})})
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 50 {
					v := float32(100*g + i)
					x := []float32{v, v, v, v, v, v, v, v}
					r, err := c.Infer(t.Context(), &client.Request{Model: "simple", Inputs: []client.Tensor{client.FromSlice("x", x, 4, 2), client.FromSlice("y", x, 4, 2)}})
					if err != nil {
						t.Error(err)
						return
					}
					sum, err := client.Slice[float32](&r.Outputs[0])
					if err != nil {
						t.Error(err)
						return
					}
					for _, s := range sum {
						if s != 2*v {
							t.Errorf("%v + %v = %v", v, v, s)
						}
					}
					r.Release()
				}
			})
		}
		wg.Wait()
	})
}

// TestDatatypes sends the bits of each datatype through a program that returns them.
func TestDatatypes(t *testing.T) {
	dtypes := map[string]client.Tensor{
		"bool": client.FromSlice("x", []bool{true, false, true}, 3),
		"u8":   client.FromSlice("x", []uint8{0, 1, 255}, 3),
		"i8":   client.FromSlice("x", []int8{-128, 1, 127}, 3),
		"i16":  client.FromSlice("x", []int16{-32768, 1, 32767}, 3),
		"i32":  client.FromSlice("x", []int32{math.MinInt32, 1, math.MaxInt32}, 3),
		"i64":  client.FromSlice("x", []int64{math.MinInt64, 1, math.MaxInt64}, 3),
		"f32":  client.FromSlice("x", []float32{-1.5, 0, float32(math.Inf(1))}, 3),
		"f64":  client.FromSlice("x", []float64{-1.5, 0, math.Inf(-1)}, 3),
		"f16":  {Name: "x", Datatype: "FP16", Shape: []int64{3}, Data: []byte{0, 0x3c, 0, 0, 0, 0x7c}},
		"bf16": {Name: "x", Datatype: "BF16", Shape: []int64{3}, Data: []byte{0x80, 0x3f, 0, 0, 0x80, 0x7f}},
	}
	programs := map[string]string{}
	for d := range dtypes {
		programs[d] = fmt.Sprintf("program @same {\n  %%x = parameter \"x\" : %s[3]\n  return %%x\n}\n", d)
	}
	host := start(t, serve.Options{Models: write(t, programs)})
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		for d, x := range dtypes {
			r, err := c.Infer(t.Context(), &client.Request{Model: d, Inputs: []client.Tensor{x}})
			if err != nil {
				t.Errorf("%s: %v", d, err)
				continue
			}
			if y := r.Outputs[0]; y.Datatype != x.Datatype || !bytes.Equal(y.Data, x.Data) {
				t.Errorf("%s: got %s %v, sent %s %v", d, y.Datatype, y.Data, x.Datatype, x.Data)
			}
			r.Release()
		}
	})
}

func TestControl(t *testing.T) {
	dir := write(t, map[string]string{"simple": sumAndDifference})
	host := start(t, serve.Options{Models: dir, Allow: []string{"model-repository"}})
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		ctx := t.Context()
		if ready, err := c.Ready(ctx); !ready || err != nil {
			t.Errorf("ready %v, %v", ready, err)
		}
		m, err := c.Metadata(ctx, "simple", "1")
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != "simple" || m.Versions[0] != "1" || len(m.Inputs) != 2 || m.Inputs[1].Name != "y" || m.Inputs[1].Datatype != "FP32" ||
			!reflect.DeepEqual(m.Inputs[1].Shape, []int64{-1, 2}) || len(m.Outputs) != 2 {
			t.Errorf("metadata %+v", m)
		}
		if err := errors.Join(c.Unload(ctx, "simple"), c.Load(ctx, "simple"), c.Load(ctx, "simple")); err != nil {
			t.Error(err)
		}
	})
}

// weights is a safetensors file of w and b, as the program scale has them.
func weights(t testing.TB, w, b float32) []byte {
	t.Helper()
	var all []safetensors.Tensor
	for name, v := range map[string]float32{"w": w, "b": b} {
		x := client.FromSlice(name, []float32{v, v}, 2)
		all = append(all, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: x.Shape, Data: x.Data})
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, all, nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestWeights(t *testing.T) {
	dir := t.TempDir()
	model, first := filepath.Join(dir, "scale.lir"), filepath.Join(dir, "first.safetensors")
	const scale = "program @scale {\n  %x = parameter \"x\" : f32[2]\n  %w = parameter \"w\" : f32[2]\n  %b = parameter \"b\" : f32[2]\n  %0 = add(mul(%x, %w), %b)\n  return %0\n}\n"
	for path, data := range map[string][]byte{model: []byte(scale), first: weights(t, 1, 0)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := start(t, serve.Options{Files: []string{model}, Weights: []string{first}, AllowWeightUpdate: true, Allow: []string{"weights"}})
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		ctx := t.Context()
		expect := func(set string, y float32) {
			t.Helper()
			r, err := c.Infer(ctx, &client.Request{Model: "scale", Inputs: []client.Tensor{client.FromSlice("x", []float32{3, 3}, 2)}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if got, err := client.Slice[float32](&r.Outputs[0]); err != nil || got[0] != y || r.Parameters["weight_version"] != set {
				t.Errorf("got %v of %v, %v; want %v of %s", got, r.Parameters, err, y, set)
			}
		}
		name := strings.ReplaceAll(t.Name(), "/", "-")
		u, err := c.UpdateWeights(ctx, "scale", name, bytes.NewReader(weights(t, 2, 1)))
		if err != nil || u.Name != name || u.Tensors != 2 || u.Bytes != 16 {
			t.Fatalf("update %+v, %v", u, err)
		}
		expect(name, 7)
		if err := c.ActivateWeights(ctx, "scale", "initial"); err != nil {
			t.Fatal(err)
		}
		expect("initial", 3)
		refused(t, http.StatusNotFound, "absent", func() error { return c.ActivateWeights(ctx, "scale", "absent") })
		refused(t, http.StatusBadRequest, "", func() error {
			_, err := c.UpdateWeights(ctx, "scale", "cut", bytes.NewReader(weights(t, 2, 1)[:100]))
			return err
		})
		expect("initial", 3)
	})
}

func TestRefusals(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("secret all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := start(t, serve.Options{Models: write(t, map[string]string{"simple": sumAndDifference}), TokenFile: tokens})
	x := client.FromSlice("x", make([]float32, 8), 4, 2)
	request := func(model string, inputs ...client.Tensor) *client.Request {
		return &client.Request{Model: model, Inputs: inputs}
	}
	each(t, host, client.Options{}, func(t *testing.T, c *client.Client) {
		refused(t, http.StatusUnauthorized, "", func() error { _, err := c.Metadata(t.Context(), "simple", ""); return err })
	})
	each(t, host, client.Options{Token: "secret"}, func(t *testing.T, c *client.Client) {
		for _, tt := range []struct {
			status int
			says   string
			in     *client.Request
		}{
			{http.StatusNotFound, "absent", request("absent", x)},
			{http.StatusBadRequest, `"y"`, request("simple", x)},
			{http.StatusBadRequest, "z", request("simple", x, client.FromSlice("z", make([]float32, 8), 4, 2))},
		} {
			refused(t, tt.status, tt.says, func() error { _, err := c.Infer(t.Context(), tt.in); return err })
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Infer(gone, request("simple", x)); !errors.Is(err, context.Canceled) {
			t.Errorf("a request whose context has ended: %v", err)
		}
	})
}

// refused calls fn, whose error must be the server's.
func refused(t *testing.T, status int, says string, fn func() error) {
	t.Helper()
	err := fn()
	var e *client.Error
	if !errors.As(err, &e) || e.Status != status || !strings.Contains(e.Message, says) {
		t.Errorf("got %v, want status %d and %q", err, status, says)
	}
}

// TestMistakes are those that are found before anything is sent.
func TestMistakes(t *testing.T) {
	for _, address := range []string{"", "localhost:8080", "ftp://localhost", "http://", "http://localhost?x=1"} {
		if _, err := client.New(address, client.Options{}); err == nil {
			t.Errorf("the address %q was taken", address)
		}
	}
	each(t, "127.0.0.1:1", client.Options{}, func(t *testing.T, c *client.Client) {
		for _, bad := range []client.Tensor{
			client.FromSlice("x", []float32{1, 2}, 3), client.FromSlice("x", []float32{1, 2}, -1, -2), {Name: "x", Datatype: "FLOAT", Shape: []int64{1}, Data: []byte{1, 2, 3, 4}},
		} {
			if _, err := c.Infer(t.Context(), &client.Request{Model: "m", Inputs: []client.Tensor{bad}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		var none context.Context
		_, ofInfer := c.Infer(none, &client.Request{Model: "m"})
		_, ofReady := c.Ready(none)
		_, ofMetadata := c.Metadata(none, "m", "")
		_, ofUpdate := c.UpdateWeights(none, "m", "w", strings.NewReader(""))
		for name, err := range map[string]error{
			"Infer": ofInfer, "Ready": ofReady, "Metadata": ofMetadata, "UpdateWeights": ofUpdate,
			"Load": c.Load(none, "m"), "Unload": c.Unload(none, "m"), "ActivateWeights": c.ActivateWeights(none, "m", "w"),
		} {
			if err == nil {
				t.Errorf("%s took a context that is nil", name)
			}
		}
		_, err := c.Infer(t.Context(), &client.Request{Model: "m", Parameters: map[string]any{"p": []int{1}}, Inputs: []client.Tensor{client.FromSlice("x", []float32{1}, 1)}})
		if err == nil || !strings.Contains(err.Error(), `"p"`) {
			t.Errorf("a parameter that is a list: %v", err)
		}
	})
}

// TestDamagedAnswers has a server that answers with what cannot be right.
func TestDamagedAnswers(t *testing.T) {
	const good = `{"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}`
	for _, tt := range []struct{ name, text, tail, length string }{
		{"no length", good, "", ""},
		{"length beyond the end", good, "", "9999"},
		{"length that is no number", good, "12345678", "x"},
		{"fewer bytes", good, "1234", fmt.Sprint(len(good))},
		{"more bytes", good, "123456789", fmt.Sprint(len(good))},
		{"shape of another size", strings.Replace(good, "[2]", "[3]", 1), "12345678", fmt.Sprint(len(good))},
		{"negative size", strings.Replace(good, ":8}", ":-8}", 1), "", fmt.Sprint(len(good) + 1)},
		{"JSON that ends", good[:40], "", "40"},
		{"data as JSON", `{"outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[1]}]}`, "", ""},
	} {
		hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tt.length != "" {
				w.Header().Set("Inference-Header-Content-Length", tt.length)
			}
			_, _ = w.Write([]byte(tt.text + tt.tail))
		}))
		c, err := client.New(hs.URL, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Infer(t.Context(), &client.Request{Model: "m", Inputs: []client.Tensor{client.FromSlice("x", []float32{1}, 1)}})
		if err == nil {
			t.Errorf("%s: the answer was taken: %+v", tt.name, r)
		}
		hs.Close()
	}
}
