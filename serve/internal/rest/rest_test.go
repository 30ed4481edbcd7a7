package rest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// echo is a service whose only model returns its inputs.
type echo struct {
	inference.Service
	last *inference.Request
	err  error
	log  []string
}

func (e *echo) Live() bool                         { return true }
func (e *echo) Ready() bool                        { return false }
func (e *echo) Metadata() inference.ServerMetadata { return inference.ServerMetadata{Name: "echo"} }

func (e *echo) Infer(_ context.Context, r *inference.Request) (*inference.Response, error) {
	if e.err != nil {
		return nil, e.err
	}
	last := *r // which the caller uses again
	last.Inputs, last.Outputs = slices.Clone(r.Inputs), slices.Clone(r.Outputs)
	for i := range last.Inputs {
		last.Inputs[i].Shape = slices.Clone(r.Inputs[i].Shape)
	}
	e.last = &last
	resp := &inference.Response{Model: r.Model, Version: "1", ID: r.ID}
	for _, t := range r.Inputs {
		t.Data = bytes.Clone(t.Data)
		t.Parameters = nil
		if r.Raw {
			t.Name, t.Datatype, t.Shape = "x", inference.Uint8, []int64{int64(len(t.Data))}
		}
		resp.Outputs = append(resp.Outputs, t)
	}
	return resp, nil
}

func (e *echo) Index(ready bool) ([]inference.IndexEntry, error) {
	e.log = append(e.log, fmt.Sprint("index ", ready))
	return nil, nil
}

func (e *echo) Load(_ context.Context, name string, p inference.Parameters) error {
	e.log = append(e.log, fmt.Sprint("load ", name, p))
	return e.err
}

func allow(*http.Request, inference.Scope) error { return nil }

func newEcho(o Options) (*echo, *Handler) {
	e := &echo{}
	o.Allow = allow
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	return e, New(e, o)
}

func do(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func infer(inputs string) string { return `{"inputs":[` + inputs + `]}` }

// What a model gets of JSON, and what comes back of the same.
func TestElements(t *testing.T) {
	for _, c := range []struct{ datatype, shape, data, want string }{
		{"FP32", "[2,2]", "[[1,2.5],[-3e-7,4]]", "[1,2.5,-3e-07,4]"},
		{"FP32", "[2,2]", "[1,2.5,1e-7,16777217]", "[1,2.5,1e-07,16777216]"},
		{"FP64", "[3]", "[0.1,1e300,5e-324]", "[0.1,1e+300,5e-324]"},
		{"INT64", "[3]", "[9223372036854775807,-9223372036854775808,9007199254740993]", "[9223372036854775807,-9223372036854775808,9007199254740993]"},
		{"UINT64", "[1]", "[18446744073709551615]", "[18446744073709551615]"},
		{"INT8", "[2]", "[-128,127]", "[-128,127]"},
		{"UINT16", "[2]", "[0,65535]", "[0,65535]"},
		{"INT32", "[1,2]", "[[-1,2]]", "[-1,2]"},
		{"BOOL", "[4]", "[true,false,1,0]", "[true,false,true,false]"},
		{"BYTES", "[2]", `["aé",""]`, `["aé",""]`},
		{"FP32", "[0,3]", "[]", "[]"},
		{"FP32", "[]", "[7]", "[7]"},
	} {
		_, h := newEcho(Options{})
		w := do(h, "POST", "/v2/models/m/infer", infer(fmt.Sprintf(`{"data":%s,"name":"x","shape":%s,"datatype":%q}`, c.data, c.shape, c.datatype)))
		var got struct {
			Outputs []struct{ Data json.RawMessage }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			continue
		}
		if string(got.Outputs[0].Data) != c.want {
			t.Errorf("%s %s: %s, want %s", c.datatype, c.data, got.Outputs[0].Data, c.want)
		}
		if ct := w.Header().Get("Content-Type"); ct != "application/json" {
			t.Errorf("content type %q", ct)
		}
	}
}

// Bad requests, each with words of the answer.
func TestRefusals(t *testing.T) {
	tensor := func(datatype, shape, rest string) string {
		return infer(fmt.Sprintf(`{"name":"x","shape":%s,"datatype":%q%s}`, shape, datatype, rest))
	}
	deep := strings.Repeat("[", 200)
	for _, c := range []struct{ body, want string }{
		{``, "expected an object"},
		{`{"inputs":`, "byte 10"},
		{`{}`, "no inputs"},
		{infer(``) + `x`, "more follows"},
		{tensor("FP33", "[1]", `,"data":[1]`), `got "FP33"`},
		{tensor("FP32", "[-1]", `,"data":[1]`), "size -1"},
		{tensor("FP32", "[2]", `,"data":[1]`), "expected 2 elements for FP32[2], got 1"},
		{tensor("FP32", "[2]", `,"data":[1,2,3]`), "got more"},
		{tensor("FP32", "[1]", ``), "no data"},
		{tensor("FP32", "[1]", `,"data":1`), "expected an array"},
		{tensor("FP32", "[1]", `,"data":["1"]`), `expected FP32, got "1"`},
		{tensor("FP32", "[1]", `,"data":[1e39]`), "expected FP32, got 1e39"},
		{tensor("FP32", "[1]", `,"data":[null]`), "got null"},
		{tensor("FP32", "[1]", `,"data":[NaN]`), "expected a number"},
		{tensor("INT8", "[1]", `,"data":[128]`), "expected INT8, got 128"},
		{tensor("UINT8", "[1]", `,"data":[-1]`), "expected UINT8, got -1"},
		{tensor("INT64", "[1]", `,"data":[1.5]`), "expected INT64, got 1.5"},
		{tensor("FP16", "[1]", `,"data":[1]`), "send it as binary"},
		{tensor("FP32", "[4611686018427387904,8]", `,"data":[1]`), "no number of elements"},
		{tensor("FP32", "[4611686018427387904]", `,"data":[1]`), "got 1"},
		{tensor("FP32", "[1]", `,"data":`+deep), "nested too deeply"},
		{tensor("FP32", "[1]", `,"parameters":{"binary_data_size":4}`), "only 0 bytes are left"},
		{tensor("FP32", "[1]", `,"parameters":{"binary_data_size":-4}`), "expected a number of bytes"},
		{tensor("FP32", "[1]", `,"parameters":{"a":{}}`), `parameter "a"`},
		{tensor("FP32", "[1]", `,"parameters":{"a":1e999}`), "too large"},
		{infer(`{"shape":[1],"datatype":"FP32","data":[1]}`), "no name"},
		{infer(`{"name":"x","datatype":"FP32","data":[1]}`), "no shape"},
	} {
		_, h := newEcho(Options{})
		w := do(h, "POST", "/v2/models/m/infer", c.body)
		var got struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 400 || !strings.Contains(got.Error, c.want) {
			t.Errorf("%.100s: %d %s, want %s", c.body, w.Code, w.Body, c.want)
		}
		if ct := w.Header().Get("Content-Type"); ct != "application/json" {
			t.Errorf("content type %q", ct)
		}
	}
}

func binaryBody(data []byte) (body, length string) {
	text := fmt.Sprintf(`{"id":"7","parameters":{"binary_data_output":true},"inputs":[{"name":"x","shape":[%d],"datatype":"UINT8","parameters":{"binary_data_size":%d}}]}`, len(data), len(data))
	return text + string(data), fmt.Sprint(len(text))
}

func TestBinary(t *testing.T) {
	data := bytes.Repeat([]byte{1, 2, 3}, 1000)
	body, length := binaryBody(data)
	squeeze := func(z io.WriteCloser, b *bytes.Buffer) string {
		_, _ = io.WriteString(z, body)
		z.Close()
		return b.String()
	}
	var b1, b2 bytes.Buffer
	for name, c := range map[string]struct {
		body   string
		header []string
	}{
		"plain":   {body, nil},
		"gzip":    {squeeze(gzip.NewWriter(&b1), &b1), []string{"Content-Encoding", "gzip", "Accept-Encoding", "gzip"}},
		"deflate": {squeeze(zlib.NewWriter(&b2), &b2), []string{"Content-Encoding", "deflate", "Accept-Encoding", "deflate"}},
	} {
		e, h := newEcho(Options{})
		w := do(h, "POST", "/v2/models/m/versions/3/infer", c.body, append(c.header, headerJSONLength, length)...)
		var r io.Reader = w.Body
		var err error
		switch w.Header().Get("Content-Encoding") {
		case "gzip":
			r, err = gzip.NewReader(w.Body)
		case "deflate":
			r, err = zlib.NewReader(w.Body)
		}
		if want := strings.TrimPrefix(name, "plain"); w.Header().Get("Content-Encoding") != want || w.Code != 200 || err != nil {
			t.Fatalf("%s: %d %q %v", name, w.Code, w.Header(), err)
		}
		answer, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		fmt.Sscan(w.Header().Get(headerJSONLength), &n)
		want := fmt.Sprintf(`{"model_name":"m","model_version":"1","id":"7","outputs":[{"name":"x","datatype":"UINT8","shape":[%d],"parameters":{"binary_data_size":%d}}]}`, len(data), len(data))
		if string(answer[:n]) != want || !bytes.Equal(answer[n:], data) {
			t.Errorf("%s: %s, %d bytes follow", name, answer[:n], len(answer)-n)
		}
		if e.last.Version != "3" {
			t.Errorf("version %q", e.last.Version)
		}
	}
}

func TestBinaryRefusals(t *testing.T) {
	body, length := binaryBody([]byte("abc"))
	for _, c := range []struct{ body, length, want string }{
		{body, "1000", "but the body has"},
		{body, "-1", "expected a number of bytes"},
		{body + "x", length, "1 bytes follow"},
		{body[:len(body)-1], length, "only 2 bytes are left"},
		{strings.Replace(body, `size":3`, `size":2`, 1), length, "bytes"},
		{strings.Replace(body, `size":3`, `size":9223372036854775807`, 1), fmt.Sprint(len(body) - 3 + 18), "only 3 bytes"},
	} {
		_, h := newEcho(Options{})
		if w := do(h, "POST", "/v2/models/m/infer", c.body, headerJSONLength, c.length); w.Code != 400 || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%d %s, want %s", w.Code, w.Body, c.want)
		}
	}
}

func TestRaw(t *testing.T) {
	_, h := newEcho(Options{})
	w := do(h, "POST", "/v2/models/m/infer", "abc", headerJSONLength, "0")
	if w.Code != 200 || !strings.HasSuffix(w.Body.String(), "}]}abc") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestLimits(t *testing.T) {
	_, h := newEcho(Options{MaxBody: 10_000})
	long := infer(`{"name":"x","shape":[1],"datatype":"INT8","data":[1]}`) + strings.Repeat(" ", 10_000)
	if w := do(h, "POST", "/v2/models/m/infer", long); w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var b bytes.Buffer // a small body that becomes a large one
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20))
	z.Close()
	if w := do(h, "POST", "/v2/models/m/infer", b.String(), "Content-Encoding", "gzip"); w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(h, "POST", "/v2/models/m/infer", "{}", "Content-Encoding", "br"); w.Code != 400 || !strings.Contains(w.Body.String(), "gzip") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/v2/models/m/infer", io.LimitReader(strings.NewReader(long), 5000)) // chunked
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestNaN(t *testing.T) {
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	text := `{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}}]}`
	header := []string{headerJSONLength, fmt.Sprint(len(text))}
	_, h := newEcho(Options{})
	if w := do(h, "POST", "/v2/models/m/infer", text+string(nan), header...); w.Code != 400 || !strings.Contains(w.Body.String(), "--json-nan") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	_, h = newEcho(Options{NonFinite: true})
	if w := do(h, "POST", "/v2/models/m/infer", text+string(nan), header...); !strings.Contains(w.Body.String(), `"data":[NaN]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(h, "POST", "/v2/models/m/infer", infer(`{"name":"x","shape":[2],"datatype":"FP32","data":[-Infinity,NaN]}`)); !strings.Contains(w.Body.String(), `[-Infinity,NaN]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRoutes(t *testing.T) {
	e, h := newEcho(Options{})
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/v2/health/live", "", 200, `{"live":true,"ready":false}`},
		{"GET", "/v2/health/ready", "", 503, `{"live":true,"ready":false}`},
		{"GET", "/v2", "", 200, `"name":"echo"`},
		{"GET", "/v2/", "", 200, `"name":"echo"`},
		{"GET", "/v2/nothing", "", 404, "there is nothing at /v2/nothing"},
		{"GET", "/v2x", "", 404, "nothing"},
		{"GET", "/v2/models//infer", "", 404, "nothing"},
		{"GET", "/v2/models/m/infer", "", 405, "takes POST, not GET"},
		{"DELETE", "/v2/logging", "", 405, "takes GET, POST, not DELETE"},
		{"POST", "/v2/repository/index", "", 200, "[]"},
		{"POST", "/v2/repository/index", `{"ready":true}`, 200, "[]"},
		{"POST", "/v2/repository/index", `{"ready":1}`, 400, "true or false"},
		{"POST", "/v2/repository/models/a%2Fb/load", `{"parameters":{"config":"{}"}}`, 200, "{}"},
		{"POST", "/v2/repository/models/a/unload", `{"parameters":{"unload_dependents":true}}`, 501, "unload_dependents"},
	} {
		w := do(h, c.method, c.path, c.body)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %q %s", c.method, c.path, w.Code, w.Header(), w.Body)
		}
	}
	if got := strings.Join(e.log, "; "); got != "index false; index true; load a/bmap[config:{}]" {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	for kind, status := range statuses {
		e, h := newEcho(Options{})
		e.err = &inference.Error{Kind: kind, Msg: "so", RetryAfter: 1500 * time.Millisecond}
		w := do(h, "POST", "/v2/repository/models/a/load", "")
		if w.Code != status || w.Body.String() != `{"error":"so"}` || w.Header().Get("Retry-After") != "2" {
			t.Errorf("kind %d: %d %q %s", kind, w.Code, w.Header(), w.Body)
		}
	}
}

func TestNobodyPassesTheRules(t *testing.T) {
	for _, rt := range Routes() {
		denied := inference.Errorf(inference.PermissionDenied, "no")
		var asked inference.Scope
		h := New(nil, Options{Allow: func(_ *http.Request, s inference.Scope) error { asked = s; return denied }})
		path := strings.NewReplacer("{model}", "m", "{version}", "1").Replace(rt.Path)
		if w := do(h, rt.Method, path, ""); w.Code != 403 || asked != rt.Scope {
			t.Errorf("%s %s: %d, asked for %q", rt.Method, path, w.Code, asked)
		}
	}
}

// FuzzInfer feeds the decoder bodies and lengths of their JSON: whatever comes, tensors
// have the bytes that their shapes say, and the answer of what was read is JSON.
func FuzzInfer(f *testing.F) {
	body, _ := binaryBody([]byte("abc"))
	f.Add([]byte(body), len(body)-3)
	f.Add([]byte(infer(`{"name":"x","shape":[2,1],"datatype":"FP64","data":[[1],[-2e5]]}`)), -1)
	f.Add([]byte(infer(`{"name":"x","shape":[1],"datatype":"BYTES","data":["\ud800"]}`)), -1)
	f.Add([]byte("abc"), 0)
	_, h := newEcho(Options{})
	f.Fuzz(func(t *testing.T, data []byte, length int) {
		c := &call{Handler: h, decoder: newDecoder()}
		req, err := c.decode(data, length)
		if err != nil || req.raw {
			return
		}
		resp := &inference.Response{Model: "m", Outputs: req.Inputs}
		for _, in := range req.Inputs {
			n, ok := inference.NumElements(in.Shape)
			if size := int64(in.Datatype.Size()); !ok || (size > 0 && int64(len(in.Data)) != n*size) {
				t.Fatalf("%s%v has %d bytes", in.Datatype, in.Shape, len(in.Data))
			}
		}
		text, err := appendResponse(nil, req, resp, false)
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q is no JSON", text)
		}
	})
}
