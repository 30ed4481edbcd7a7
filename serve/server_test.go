package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/safetensors"
)

const fixtures = "../aoti/testdata/"

// start returns a server with its models loaded.
func start(t testing.TB, o Options) *httptest.Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, s)
}

func startServer(t testing.TB, s *Server) *httptest.Server {
	t.Helper()
	if err := s.Load(t.Context()); errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	} else if err != nil && !s.options.KeepGoing {
		t.Fatal(err)
	}
	hs := httptest.NewUnstartedServer(s)
	hs.Config.Protocols = new(http.Protocols)
	hs.Config.Protocols.SetHTTP1(true)
	hs.Config.Protocols.SetUnencryptedHTTP2(true)
	hs.Start()
	t.Cleanup(func() {
		hs.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return hs
}

// ask sends a request and returns the status and the body.
func ask(t testing.TB, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// writeProgram writes a model that multiplies by a factor, as a version of a repository.
func writeProgram(t testing.TB, dir, name string, version int, factor string) {
	t.Helper()
	text := fmt.Sprintf("program @scale {\n  %%x = parameter \"x\" : f32[4,2]\n  %%y = mul(%%x, %s) : f32[4,2]\n  return %%y\n}\n", factor)
	path := filepath.Join(dir, name, fmt.Sprint(version))
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "model.lir"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const oneRow = `{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`

// What a package computes through the server is what PyTorch computed with it, by JSON and
// by binary tensors, for all cases of the fixture.
func TestInferFixture(t *testing.T) {
	hs := start(t, Options{Files: []string{fixtures + "dynamic_batch.pt2"}})
	f, err := safetensors.Open(fixtures + "dynamic_batch.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, prefix := range []string{"", "case1.", "case2."} {
		in, ref := tensor(t, f, prefix+"in0"), tensor(t, f, prefix+"ref0")
		rows := len(in) / 24 / 4
		text := fmt.Sprintf(`{"inputs":[{"name":"INPUT__0","shape":[%d,24],"datatype":"FP32","parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}`, rows, len(in))
		code, answer := ask(t, "POST", hs.URL+"/v2/models/dynamic_batch/infer", text+string(in), "Inference-Header-Content-Length", fmt.Sprint(len(text)))
		if code != 200 {
			t.Fatal(code, answer)
		}
		got := []byte(answer[len(answer)-rows*6*4:])
		near(t, got, ref)

		numbers, err := json.Marshal(float32s(in))
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Sprintf(`{"inputs":[{"name":"arg4_1","shape":[%d,24],"datatype":"FP32","data":%s}],"outputs":[{"name":"OUTPUT__0"}]}`, rows, numbers)
		code, answer = ask(t, "POST", hs.URL+"/v2/models/dynamic_batch/versions/1/infer", text)
		var parsed struct {
			Outputs []struct {
				Name  string
				Shape []int
				Data  []float32
			}
		}
		if err := json.Unmarshal([]byte(answer), &parsed); err != nil || code != 200 {
			t.Fatal(code, answer, err)
		}
		var again []byte
		for _, v := range parsed.Outputs[0].Data {
			again = binary.LittleEndian.AppendUint32(again, math.Float32bits(v))
		}
		if !bytes.Equal(again, got) || parsed.Outputs[0].Name != "OUTPUT__0" || parsed.Outputs[0].Shape[0] != rows {
			t.Errorf("JSON: %v", parsed)
		}
	}
}

func tensor(t *testing.T, f *safetensors.File, name string) []byte {
	t.Helper()
	b, err := f.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func float32s(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// near compares floats with PyTorch's results in double precision.
func near(t *testing.T, got, ref []byte) {
	t.Helper()
	for i, v := range float32s(got) {
		want := math.Float64frombits(binary.LittleEndian.Uint64(ref[8*i:]))
		if math.Abs(float64(v)-want) > 1e-5 {
			t.Fatalf("element %d: %v, want %v", i, v, want)
		}
	}
}

// Many clients at once get what each of them gets alone.
func TestConcurrentClients(t *testing.T) {
	hs := start(t, Options{Files: []string{fixtures + "dynamic_batch.pt2"}})
	request := func(client, rows int) string {
		var data []string
		for i := range rows * 24 {
			data = append(data, fmt.Sprint((i*7+client*13)%11))
		}
		return fmt.Sprintf(`{"inputs":[{"name":"in0","shape":[%d,24],"datatype":"FP32","data":[%s]}]}`, rows, strings.Join(data, ","))
	}
	url := hs.URL + "/v2/models/dynamic_batch/infer"
	want := map[int]string{}
	for c := range 8 {
		_, want[c] = ask(t, "POST", url, request(c, 1+c%3))
	}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for range 50 {
				if code, got := ask(t, "POST", url, request(c, 1+c%3)); code != 200 || got != want[c] {
					t.Errorf("client %d: %d %s, alone %s", c, code, got, want[c])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"neither files":   {},
		"there are none":  {Models: "x", Mode: "sometimes"},
		"mode explicit":   {Models: "x", Load: []string{"m"}},
		"files of weight": {Files: []string{"a.pt2"}, Weights: []string{"a", "b"}},
		"two models":      {Files: []string{"a.pt2", "b/a.pt2"}},
		"no scope":        {Files: []string{"a.pt2"}, Allow: []string{"everything"}},
		"no sha256":       {Files: []string{"a.pt2"}, AllowDigests: []string{"12"}},
		"its key":         {Files: []string{"a.pt2"}, CertFile: "x"},
		"no issuer":       {Files: []string{"a.pt2"}, OIDC: OIDC{Audience: "x"}},
		"expected https":  {Files: []string{"a.pt2"}, OIDC: OIDC{Issuer: "http://example.com", Audience: "x"}},
		"need an audienc": {Files: []string{"a.pt2"}, OIDC: OIDC{Issuer: "https://example.com"}},
		"expected a URL":  {Files: []string{"a.pt2"}, OIDC: OIDC{Issuer: "example.com", Audience: "x"}},
		"for traces":      {Files: []string{"a.pt2"}, TraceEndpoint: "localhost:4318"},
		"1 or more":       {Files: []string{"a.pt2"}, TraceEndpoint: "http://localhost", TraceRate: -1},
		"no endpoint":     {Files: []string{"a.pt2"}, TraceRate: 2},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A server that is told to stop answers what it has, and its port is free afterwards.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	ctx, stop := context.WithCancel(t.Context())
	address := freeAddress(t)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Models: dir, HTTPAddress: address}) }()
	url := "http://" + address
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := http.Get(url + "/v2/health/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not become ready")
		}
	}
	r, w := io.Pipe() // a request whose body comes slowly
	slow := make(chan string, 1)
	go func() {
		resp, err := http.Post(url+"/v2/models/m/infer", "application/json", r)
		if err != nil {
			slow <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		slow <- string(text)
	}()
	if _, err := io.WriteString(w, oneRow[:20]); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the server reads it
	stop()
	time.Sleep(50 * time.Millisecond) // and is stopping
	_, _ = io.WriteString(w, oneRow[20:])
	w.Close()
	if got := <-slow; !strings.Contains(got, `"data":[2,4]`) {
		t.Errorf("the request in flight got %s", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if resp, err := http.Get(url + "/v2/health/live"); err == nil {
		resp.Body.Close()
		t.Error("it still answers")
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	hs := httptest.NewServer(http.NotFoundHandler())
	defer hs.Close()
	return hs.Listener.Addr().String()
}

// What cannot be loaded, and a port that is taken, ends Run with an error that says so.
func TestRunFails(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "bad", 1, "nonsense(")
	err := Run(t.Context(), Options{Models: dir, HTTPAddress: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), `load model "bad" version 1`) {
		t.Error(err)
	}
	hs := httptest.NewServer(http.NotFoundHandler())
	defer hs.Close()
	err = Run(t.Context(), Options{Models: dir, HTTPAddress: hs.Listener.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}
