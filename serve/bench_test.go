package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/loris-ml/loris/aoti"
)

// BenchmarkMLP measures one request after another: what the model takes, what the handler
// adds, and what net/http adds to that.
func BenchmarkMLP(b *testing.B) {
	hs := start(b, Options{Files: []string{fixtures + "mlp.pt2"}})
	data := make([]byte, 8*64*4)
	text := fmt.Sprintf(`{"inputs":[{"name":"arg4_1","shape":[8,64],"datatype":"FP32","parameters":{"binary_data_size":%d}}],"outputs":[{"name":"output0","parameters":{"binary_data":true}}]}`, len(data))
	request := append([]byte(text), data...)
	b.Run("model", func(b *testing.B) {
		m, err := aoti.Load(b.Context(), fixtures+"mlp.pt2")
		if err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		x := aoti.FromSlice(make([]float32, 8*64), 8, 64)
		b.ReportAllocs()
		for b.Loop() {
			out, err := m.Run(b.Context(), x)
			if err != nil {
				b.Fatal(err)
			}
			out[0].Release()
		}
	})
	newRequest := func() *http.Request {
		r, err := http.NewRequest("POST", hs.URL+"/v2/models/mlp/infer", bytes.NewReader(request))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		return r
	}
	b.Run("handler", func(b *testing.B) {
		r := newRequest()
		body := bytes.NewReader(request)
		w := &nowhere{header: http.Header{}}
		b.ReportAllocs()
		for b.Loop() {
			body.Reset(request)
			r.Body = io.NopCloser(body)
			clear(w.header)
			hs.Config.Handler.ServeHTTP(w, r)
			if w.status != 200 {
				b.Fatal(w.status)
			}
		}
	})
	b.Run("http", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Do(newRequest())
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
				b.Fatal(resp.StatusCode, err)
			}
			resp.Body.Close()
		}
	})
}

// nowhere takes an answer and keeps its status alone.
type nowhere struct {
	header http.Header
	status int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) WriteHeader(status int)      { w.status = status }
func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }
