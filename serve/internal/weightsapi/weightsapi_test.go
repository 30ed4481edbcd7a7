package weightsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/grpcapi"
	"github.com/loris-ml/loris/serve/internal/inference"
	weightspb "github.com/loris-ml/loris/serve/internal/pb/weights"
	"github.com/loris-ml/loris/serve/internal/weights"
)

var ctx = context.Background()

// models has the model "m", x*w, in version 1.
type models struct {
	sets *weights.Sets
	uses int
}

func (m *models) Weights(_ context.Context, model, version string) (*weights.Sets, func(), error) {
	if model != "m" || version != "" && version != "1" {
		return nil, nil, inference.Errorf(inference.NotFound, "no model %q in version %q", model, version)
	}
	m.uses++
	return m.sets, func() { m.uses-- }, nil
}

func newModels(t testing.TB) *models {
	t.Helper()
	p, err := graph.Parse(`program @run {
  %x = parameter "x" : f32[2]
  %w = parameter "w" : f32[2]
  %0 = mul(%x, %w)
  return %0
}`)
	if err != nil {
		t.Fatal(err)
	}
	device, err := ir.ParseDevice("cpu")
	if err != nil {
		t.Fatal(err)
	}
	program := &container.Program{Run: p, Device: device, Constants: []container.ProgramConstant{
		{Name: "w", Type: backend.ConstantParameter, Value: aoti.FromSlice([]float32{1, 1}, 2)},
	}}
	c, err := container.New(ctx, program.Compile, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &models{}
	if m.sets, err = weights.New(ctx, c, weights.Options{Source: "package"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.uses != 0 {
			t.Errorf("%d uses of the model were not ended", m.uses)
		}
		m.sets.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// file is a safetensors file of w.
func file(t testing.TB, v byte) []byte {
	t.Helper()
	var b bytes.Buffer
	err := safetensors.Write(&b, []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{2}, Data: bytes.Repeat([]byte{0, 0, v, 0x40}, 2)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func serve(t testing.TB, m *models, o Options) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	services := grpcapi.Register(nil, grpcapi.Options{MaxMessage: 1 << 20, Authorize: o.Authorize})
	Register(mux, services, m, o)
	mux.Handle("/loris.v1.Weights/", services)
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// do sends a request and returns the status and the answer.
func do(t testing.TB, s *httptest.Server, method, path, contentType string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" && a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%s %s: content type %q", method, path, got)
	}
	return a.StatusCode, string(text)
}

func TestHTTP(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{"b.safetensors": file(t, 2), "bad": []byte("x")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, newModels(t), Options{Dir: dir})
	const octets, text = "application/octet-stream", "application/json"
	for _, tt := range []struct {
		method, path, contentType string
		body                      []byte
		status                    int
		want                      string
	}{
		{"GET", "weights", "", nil, 200, `"constants":[{"name":"w","datatype":"FP32","shape":[2],"folded":false}]`},
		{"POST", "weights?weight_version=a", octets, file(t, 1), 200, `{"weight_version":"a","active":true,"updated":1,"bytes":8,"update_ns":`},
		{"POST", "weights?weight_version=a", octets, file(t, 1), 409, `there is a set of weights \"a\"`},
		{"POST", "weights?weight_version=k&activate=false", octets, file(t, 1), 200, `"active":false`},
		{"POST", "weights?check=true&partial=1", octets, file(t, 1), 200, `"active":false`},
		{"POST", "weights?check=perhaps", octets, file(t, 1), 400, `perhaps`},
		{"POST", "weights?wieght_version=a", octets, file(t, 1), 400, `wieght_version`},
		{"POST", "weights", octets, file(t, 1)[:30], 400, `error`},
		{"POST", "weights", "text/plain", nil, 400, `text/plain`},
		{"POST", "weights", text, []byte(`{}`), 400, `source`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"file:b.safetensors","weight_version":"b","activate":true}}`), 200, `"weight_version":"b","active":true`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"file:none"}}`), 404, `none`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"file:../b.safetensors"}}`), 400, `error`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"file:bad"}}`), 400, `error`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"s3://b/k"}}`), 501, `s3://`},
		{"POST", "weights", text, []byte(`{"parameters":{"source":"file:bad","partial":3}}`), 400, `partial`},
		{"POST", "weights/activate", text, []byte(`{"weight_version":"a"}`), 200, `{"active":"a","previous":"b"`},
		{"POST", "weights/activate", text, []byte(`{"weight_version":"z"}`), 404, `\"z\"`},
		{"POST", "weights/activate", text, []byte(`{"weight_version":"a"} 1`), 400, `error`},
		{"POST", "weights/activate", text, []byte(`{"version":"a"}`), 400, `version`},
		{"POST", "weights/traffic", text, []byte(`{"canary":"k","canary_percent":10,"shadow":"b"}`), 200, `{"canary":"k","canary_percent":10,"shadow":"b","shadow_report":{"compared":0`},
		{"POST", "weights/traffic", text, []byte(`{"canary":"k","canary_percent":110}`), 400, `110`},
		{"GET", "weights", "", nil, 200, `"traffic":{"canary":"k"`},
		{"DELETE", "weights/k", "", nil, 409, `the canary`},
		{"DELETE", "weights/initial", "", nil, 200, `{}`},
		{"DELETE", "weights/initial", "", nil, 404, `initial`},
		{"PUT", "weights", "", nil, 405, ``},
	} {
		for _, model := range []string{"/v2/models/m/"} {
			status, got := do(t, s, tt.method, model+tt.path, tt.contentType, tt.body)
			if status != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("%s %s: %d %s; want %d with %s", tt.method, tt.path, status, got, tt.status, tt.want)
			}
		}
	}
	var all struct {
		Active   string
		Versions []struct{ Name, Source, SHA256 string }
	}
	status, got := do(t, s, "GET", "/v2/models/m/versions/1/weights", "", nil)
	if err := json.Unmarshal([]byte(got), &all); err != nil || status != 200 || all.Active != "a" || fmt.Sprint(all.Versions[2].Source) != "file:b.safetensors" {
		t.Errorf("%d %s, %v", status, got, err)
	}
	if status, got := do(t, s, "GET", "/v2/models/x/weights", "", nil); status != 404 {
		t.Errorf("a model that is not there: %d %s", status, got)
	}
}

// Nobody without the right comes to any route.
func TestScopes(t *testing.T) {
	asked := 0
	s := serve(t, newModels(t), Options{Authorize: func(_ *http.Request, scope inference.Scope) error {
		if scope == inference.ScopeWeights {
			asked++
		}
		return inference.Errorf(inference.Unauthenticated, "who are you?")
	}})
	for i, r := range Routes() {
		path := strings.NewReplacer("{model}", "m", "{version}", "1", "{weights}", "a").Replace(r.Path)
		if status, got := do(t, s, r.Method, path, "", nil); status != 401 || asked != i+1 {
			t.Errorf("%s %s: %d %s", r.Method, path, status, got)
		}
	}
	asked = 0
	conn := dial(t, s)
	methods := weightspb.File_weights_weights_proto.Services().ByName("Weights").Methods()
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		err := conn.Invoke(ctx, "/"+serviceName+"/"+name, &weightspb.GetWeightsRequest{}, &weightspb.GetWeightsResponse{})
		if grpcstatus.Code(err) != codes.Unauthenticated || asked != i+1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func dial(t testing.TB, s *httptest.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(s.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// upload streams messages to UpdateWeights.
func upload(t testing.TB, conn *grpc.ClientConn, messages ...*weightspb.UpdateWeightsRequest) (*weightspb.UpdateWeightsResponse, error) {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/"+serviceName+"/UpdateWeights")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil {
			break // the answer says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	out := &weightspb.UpdateWeightsResponse{}
	return out, stream.RecvMsg(out)
}

func header(h *weightspb.UpdateWeightsRequest_Header) *weightspb.UpdateWeightsRequest {
	return &weightspb.UpdateWeightsRequest{Part: &weightspb.UpdateWeightsRequest_Header_{Header: h}}
}

func chunk(b []byte) *weightspb.UpdateWeightsRequest {
	return &weightspb.UpdateWeightsRequest{Part: &weightspb.UpdateWeightsRequest_Chunk{Chunk: b}}
}

func TestGRPC(t *testing.T) {
	s := serve(t, newModels(t), Options{})
	conn := dial(t, s)
	data := file(t, 1)
	a := &weightspb.UpdateWeightsRequest_Header{ModelName: "m", ModelVersion: "1", WeightVersion: "a"}
	u, err := upload(t, conn, header(a), chunk(nil), chunk(data[:3]), chunk(data[3:]))
	if err != nil || !u.Active || u.WeightVersion != "a" || u.Updated != 1 || u.Bytes != 8 {
		t.Fatalf("%v, %v", u, err)
	}
	b := proto.Clone(a).(*weightspb.UpdateWeightsRequest_Header)
	b.WeightVersion, b.NoActivate = "b", true
	if u, err = upload(t, conn, header(b), chunk(data)); err != nil || u.Active {
		t.Fatalf("%v, %v", u, err)
	}
	c := proto.Clone(a).(*weightspb.UpdateWeightsRequest_Header)
	c.WeightVersion = "c"
	for name, tt := range map[string]struct {
		messages []*weightspb.UpdateWeightsRequest
		code     codes.Code
	}{
		"no messages":   {nil, codes.InvalidArgument},
		"no header":     {[]*weightspb.UpdateWeightsRequest{chunk(data)}, codes.InvalidArgument},
		"two headers":   {[]*weightspb.UpdateWeightsRequest{header(c), header(c)}, codes.InvalidArgument},
		"cut short":     {[]*weightspb.UpdateWeightsRequest{header(c), chunk(data[:20])}, codes.InvalidArgument},
		"taken":         {[]*weightspb.UpdateWeightsRequest{header(a), chunk(data)}, codes.AlreadyExists},
		"another model": {[]*weightspb.UpdateWeightsRequest{header(&weightspb.UpdateWeightsRequest_Header{ModelName: "x"})}, codes.NotFound},
		"too large":     {[]*weightspb.UpdateWeightsRequest{header(c), chunk(make([]byte, 2<<20))}, codes.ResourceExhausted},
	} {
		if _, err := upload(t, conn, tt.messages...); grpcstatus.Code(err) != tt.code {
			t.Errorf("%s: %v, want %v", name, err, tt.code)
		}
	}
	call := func(method string, in, out proto.Message, code codes.Code) {
		t.Helper()
		if err := conn.Invoke(ctx, "/"+serviceName+"/"+method, in, out); grpcstatus.Code(err) != code {
			t.Errorf("%s: %v, want %v", method, err, code)
		}
	}
	traffic := &weightspb.SetTrafficResponse{}
	call("SetTraffic", &weightspb.SetTrafficRequest{ModelName: "m", Traffic: &weightspb.Traffic{Canary: "b", CanaryPercent: 5}}, traffic, codes.OK)
	if traffic.Traffic.GetCanary() != "b" || traffic.Traffic.GetCanaryPercent() != 5 {
		t.Errorf("%v", traffic)
	}
	active := &weightspb.ActivateWeightsResponse{}
	call("ActivateWeights", &weightspb.ActivateWeightsRequest{ModelName: "m", WeightVersion: "b"}, active, codes.OK)
	call("ActivateWeights", &weightspb.ActivateWeightsRequest{ModelName: "m", WeightVersion: "z"}, active, codes.NotFound)
	call("DropWeights", &weightspb.DropWeightsRequest{ModelName: "m", WeightVersion: "b"}, &weightspb.DropWeightsResponse{}, codes.Aborted)
	call("DropWeights", &weightspb.DropWeightsRequest{ModelName: "m", WeightVersion: "initial"}, &weightspb.DropWeightsResponse{}, codes.OK)
	get := &weightspb.GetWeightsResponse{}
	call("GetWeights", &weightspb.GetWeightsRequest{ModelName: "m"}, get, codes.OK)
	if get.Active != "b" || len(get.Sets) != 2 || get.Sets[1].GetBytes() != 8 || len(get.Constants) != 1 || active.Previous != "a" || get.Traffic.GetCanary() != "" {
		t.Errorf("%v, %v", get, active)
	}
}
