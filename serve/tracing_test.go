package serve

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// collector keeps the spans that it gets.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	busy  int // how often it answers that it has too much to do
	spans []*tracepb.Span
	names []string // of services
}

func newCollector(t testing.TB) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.busy > 0 {
			c.busy--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Error(err)
		}
		for _, rs := range data.ResourceSpans {
			for _, a := range rs.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					c.names = append(c.names, a.GetValue().GetStringValue())
				}
			}
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

const parentTrace, parentSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// Requests are traced in the trace of their client, or by the rate; settings of the
// protocol say which, and the spans of a request tell its steps.
func TestTraces(t *testing.T) {
	c := newCollector(t)
	c.busy = 1
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	writeProgram(t, dir, "quiet", 1, "2")
	var log strings.Builder
	s, err := New(Options{Models: dir, TraceEndpoint: c.URL, Allow: []string{"trace"}, AccessLog: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewUnstartedServer(s)
	hs.Config.Protocols = new(http.Protocols)
	hs.Config.Protocols.SetHTTP1(true)
	hs.Config.Protocols.SetUnencryptedHTTP2(true)
	hs.Start()
	infer := func(model, body string, header ...string) {
		t.Helper()
		ask(t, "POST", hs.URL+"/v2/models/"+model+"/infer", body, header...)
	}
	set := func(path, body string, want int) string {
		t.Helper()
		code, answer := ask(t, "POST", hs.URL+path, body)
		if code != want {
			t.Errorf("%s %s: %d %s, want %d", path, body, code, answer, want)
		}
		return answer
	}
	if answer := set("/v2/models/quiet/trace/setting", `{"trace_level":["OFF"]}`, 200); !strings.Contains(answer, "OFF") {
		t.Error(answer)
	}
	infer("quiet", oneRow, "traceparent", "00-"+parentTrace+"-"+parentSpan+"-01")
	set("/v2/trace/setting", `{"trace_rate":"1000000000"}`, 200)
	infer("m", oneRow, "traceparent", "00-"+parentTrace+"-"+parentSpan+"-01")
	infer("m", oneRow, "traceparent", "00-"+parentTrace+"-"+parentSpan+"-00")
	infer("m", oneRow)
	infer("m", oneRow, "traceparent", "nonsense")
	set("/v2/trace/setting", `{"trace_rate":null}`, 200)
	infer("m", "{")
	traceGRPC(t, hs.Listener.Addr().String())
	set("/v2/models/m/trace/setting", `{"trace_count":1}`, 200)
	infer("m", oneRow)
	infer("m", oneRow)
	for body, want := range map[string]int{
		`{"trace_level":["TENSORS"]}`: 501, `{"trace_level":["SOMETIMES"]}`: 400, `{"trace_level":[]}`: 400, `{"trace_rate":"0"}`: 400, `{"trace_rate":"x"}`: 400,
		`{"trace_count":"-2"}`: 400, `{"trace_file":"/tmp/trace.json"}`: 501, `{"trace_mode":"triton"}`: 501, `{"log_frequency":"7"}`: 501, `{"trace":1}`: 400,
		`{"trace_file":"","trace_mode":"opentelemetry","log_frequency":"0"}`: 200,
	} {
		set("/v2/trace/setting", body, want)
	}
	hs.Close()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkSpans(t, c)
	if !strings.Contains(log.String(), "trace_id="+parentTrace) {
		t.Error("the log has no trace_id")
	}
}

// traceGRPC sends a request in a trace, and expects to be told of its span.
func traceGRPC(t *testing.T, address string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+parentTrace+"-"+parentSpan+"-01")
	var header metadata.MD
	err = conn.Invoke(ctx, "/inference.GRPCInferenceService/ModelInfer", &inferencepb.ModelInferRequest{
		ModelName: "m", Inputs: []*inferencepb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}}}, RawInputContents: [][]byte{make([]byte, 8)},
	}, &inferencepb.ModelInferResponse{}, grpc.Header(&header))
	if err != nil {
		t.Fatal(err)
	}
	if got := header.Get("traceresponse"); len(got) != 1 || !strings.HasPrefix(got[0], "00-"+parentTrace+"-") {
		t.Errorf("traceresponse is %v", got)
	}
}

func checkSpans(t *testing.T, c *collector) {
	t.Helper()
	byID := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		byID[hex.EncodeToString(s.SpanId)] = s
	}
	got := map[string]int{}
	for _, s := range c.spans {
		path := s.Name
		for p := byID[hex.EncodeToString(s.ParentSpanId)]; p != nil; p = byID[hex.EncodeToString(p.ParentSpanId)] {
			path = p.Name + "/" + path
			if s.StartTimeUnixNano < p.StartTimeUnixNano || s.EndTimeUnixNano > p.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%s is not within its parent's time", path)
			}
		}
		if root := strings.Count(path, "/") == 0; root && hex.EncodeToString(s.TraceId) == parentTrace {
			path = hex.EncodeToString(s.ParentSpanId) + " " + path
		}
		got[path]++
	}
	want := map[string]int{
		parentSpan + " infer m": 1, "infer m": 1, parentSpan + " ModelInfer m": 1, "infer": 1, // the one that could not be read
		"infer m/infer": 2, "ModelInfer m/infer": 1,
	}
	for _, step := range []string{"queue", "gather", "run", "answer"} {
		want["infer m/infer/"+step], want["ModelInfer m/infer/"+step] = 2, 1
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("spans\n%v, want\n%v", got, want)
	}
	for _, name := range c.names {
		if name != "loris" {
			t.Errorf("service.name is %q", name)
		}
	}
}

// Without a collector settings are read, and set to what they are.
func TestTraceSettingsWithoutTraces(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	hs := start(t, Options{Models: dir, Allow: []string{"trace"}})
	for body, want := range map[string]int{`{"trace_level":["OFF"]}`: 200, `{"trace_level":"OFF","trace_rate":"1"}`: 200, `{"trace_level":["TIMESTAMPS"]}`: 501} {
		if code, answer := ask(t, "POST", hs.URL+"/v2/trace/setting", body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	if code, answer := ask(t, "GET", hs.URL+"/v2/models/none/trace/setting", ""); code != 404 {
		t.Error(code, answer)
	}
}

// What is set of all models and taken back is as the server was started.
func TestTraceSettingsTakenBack(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	hs := start(t, Options{Models: dir, TraceEndpoint: newCollector(t).URL, TraceRate: 7, Allow: []string{"trace"}})
	path := hs.URL + "/v2/trace/setting"
	_, initial := ask(t, "GET", path, "")
	if code, answer := ask(t, "POST", path, `{"trace_level":["OFF"],"trace_rate":"3","trace_count":"5"}`); code != 200 || answer == initial {
		t.Fatal(code, answer)
	}
	if code, answer := ask(t, "POST", path, `{"trace_level":null,"trace_rate":null,"trace_count":null}`); code != 200 || answer != initial || !strings.Contains(answer, `"trace_rate":"7"`) {
		t.Errorf("%d %s, not %s", code, answer, initial)
	}
}
