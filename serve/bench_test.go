package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/sanitizer"
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
	newRequest := func(url string) *http.Request {
		r, err := http.NewRequest("POST", url+"/v2/models/mlp/infer", bytes.NewReader(request))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		return r
	}
	b.Run("handler", func(b *testing.B) {
		r := newRequest(hs.URL)
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
	for name, url := range map[string]string{"http": hs.URL, "http alone": bare(b, 8*10*4).URL} {
		benchmarkHTTP(b, name, url, newRequest)
	}
}

// bare is a server that reads a request and answers with as many bytes: what net/http takes.
func bare(b *testing.B, bytes int) *httptest.Server {
	answer := make([]byte, bytes+150)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}))
	b.Cleanup(hs.Close)
	return hs
}

// benchmarkHTTP sends a request again and again over one connection, with as little of a client as
// there can be: what it takes is the server's.
func benchmarkHTTP(b *testing.B, name, url string, newRequest func(url string) *http.Request) {
	b.Run(name, func(b *testing.B) {
		r := newRequest(url)
		var text bytes.Buffer
		if err := r.Write(&text); err != nil {
			b.Fatal(err)
		}
		conn, err := net.Dial("tcp", r.URL.Host)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		answer := bufio.NewReaderSize(conn, 1<<16)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := conn.Write(text.Bytes()); err != nil {
				b.Fatal(err)
			}
			if err := skipAnswer(answer); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// skipAnswer reads an answer of status 200 that says its length.
func skipAnswer(r *bufio.Reader) error {
	length := 0
	for i := 0; ; i++ {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if i == 0 && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
			return fmt.Errorf("%s", line)
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, c := range bytes.TrimSpace(digits) {
				length = 10*length + int(c-'0')
			}
		}
		if len(line) == 2 {
			_, err := r.Discard(length)
			return err
		}
	}
}

// TestHotPathAllocates counts what a request for inference allocates in the handler and below it, the
// run of the model and its outputs included: little enough that it does not grow unseen.
func TestHotPathAllocates(t *testing.T) {
	if sanitizer.Race {
		t.Skip("the race detector drops what is pooled")
	}
	hs := start(t, Options{Files: []string{fixtures + "mlp.pt2"}})
	data := make([]byte, 8*64*4)
	text := fmt.Sprintf(`{"inputs":[{"name":"arg4_1","shape":[8,64],"datatype":"FP32","parameters":{"binary_data_size":%d}}],"outputs":[{"name":"output0","parameters":{"binary_data":true}}]}`, len(data))
	request := append([]byte(text), data...)
	r := httptest.NewRequest("POST", "/v2/models/mlp/infer", nil)
	r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
	r.ContentLength = int64(len(request))
	body := &again{}
	r.Body = body
	w := &nowhere{header: http.Header{}}
	n := testing.AllocsPerRun(200, func() {
		body.Reset(request)
		clear(w.header)
		hs.Config.Handler.ServeHTTP(w, r)
		if w.status != 200 {
			t.Fatal(w.status)
		}
	})
	if n > 10 {
		t.Errorf("%v allocations a request", n)
	}
}

// again is a body that is read more than once.
type again struct{ bytes.Reader }

func (*again) Close() error { return nil }

// nowhere takes an answer and keeps its status alone.
type nowhere struct {
	header http.Header
	status int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) WriteHeader(status int)      { w.status = status }
func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }
