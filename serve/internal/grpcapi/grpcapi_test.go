package grpcapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

var ctx = context.Background()

// invoke calls a method of the inference service.
func invoke(t testing.TB, conn *grpc.ClientConn, method string, in, out proto.Message, opts ...grpc.CallOption) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return conn.Invoke(ctx, procedure(serviceName, method), in, out, opts...)
}

func TestDescriptions(t *testing.T) {
	f := &fake{ready: true}
	conn, _ := listen(t, f, Options{})
	for _, tt := range []struct {
		method  string
		in, out proto.Message
		want    string // in the text of the answer
	}{
		{"ServerLive", &inferencepb.ServerLiveRequest{}, &inferencepb.ServerLiveResponse{}, "live:true"},
		{"ServerReady", &inferencepb.ServerReadyRequest{}, &inferencepb.ServerReadyResponse{}, "ready:true"},
		{"ModelReady", &inferencepb.ModelReadyRequest{Name: "m"}, &inferencepb.ModelReadyResponse{}, "ready:true"},
		{"ServerMetadata", &inferencepb.ServerMetadataRequest{}, &inferencepb.ServerMetadataResponse{}, `name:"loris" version:"1" extensions:"statistics"`},
		{"ModelMetadata", &inferencepb.ModelMetadataRequest{Name: "m"}, &inferencepb.ModelMetadataResponse{},
			`name:"m" versions:"1" versions:"2" platform:"p" inputs:{name:"x" datatype:"FP32" shape:-1 shape:4} outputs:{name:"y" datatype:"INT64" shape:-1} properties:{key:"k" value:"v"}`},
		{"ModelConfig", &inferencepb.ModelConfigRequest{Name: "m"}, &inferencepb.ModelConfigResponse{},
			`config:{name:"m" max_batch_size:8 input:{name:"x" data_type:TYPE_FP32 dims:4} dynamic_batching:{max_queue_delay_microseconds:100}}`},
		{"ModelStatistics", &inferencepb.ModelStatisticsRequest{Name: "m", Version: "1"}, &inferencepb.ModelStatisticsResponse{},
			`name:"m" version:"1" inference_count:3 execution_count:2 inference_stats:{success:{count:3 ns:7}`},
		{"RepositoryIndex", &inferencepb.RepositoryIndexRequest{Ready: true}, &inferencepb.RepositoryIndexResponse{}, `models:{name:"m" version:"1" state:"READY"}`},
		{"RepositoryIndex", &inferencepb.RepositoryIndexRequest{}, &inferencepb.RepositoryIndexResponse{}, `reason:"unloaded"`},
		{"LogSettings", &inferencepb.LogSettingsRequest{}, &inferencepb.LogSettingsResponse{}, `uint32_param:2`},
		{"TraceSetting", &inferencepb.TraceSettingRequest{}, &inferencepb.TraceSettingResponse{}, `value:"a" value:"b"`},
		{"SystemSharedMemoryStatus", &inferencepb.SystemSharedMemoryStatusRequest{}, &inferencepb.SystemSharedMemoryStatusResponse{}, ""},
		{"CudaSharedMemoryStatus", &inferencepb.CudaSharedMemoryStatusRequest{}, &inferencepb.CudaSharedMemoryStatusResponse{}, ""},
		{"SystemSharedMemoryUnregister", &inferencepb.SystemSharedMemoryUnregisterRequest{}, &inferencepb.SystemSharedMemoryUnregisterResponse{}, ""},
		{"CudaSharedMemoryUnregister", &inferencepb.CudaSharedMemoryUnregisterRequest{}, &inferencepb.CudaSharedMemoryUnregisterResponse{}, ""},
	} {
		if err := invoke(t, conn, tt.method, tt.in, tt.out); err != nil {
			t.Errorf("%s: %v", tt.method, err)
			continue
		}
		got := strings.ReplaceAll(fmt.Sprint(tt.out), "  ", " ")
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.method, got, tt.want)
		}
	}
}

func TestControl(t *testing.T) {
	f := &fake{}
	conn, _ := listen(t, f, Options{})
	load := &inferencepb.RepositoryModelLoadRequest{ModelName: "m", Parameters: map[string]*inferencepb.ModelRepositoryParameter{
		"config":      {ParameterChoice: &inferencepb.ModelRepositoryParameter_StringParam{StringParam: "{}"}},
		"file:1/m.pt": {ParameterChoice: &inferencepb.ModelRepositoryParameter_BytesParam{BytesParam: []byte{1, 2}}},
	}}
	if err := invoke(t, conn, "RepositoryModelLoad", load, &inferencepb.RepositoryModelLoadResponse{}); err != nil {
		t.Fatal(err)
	}
	if want := []inference.Parameters{{"config": "{}", "file:1/m.pt": "AQI="}}; !reflect.DeepEqual(f.loads, want) {
		t.Errorf("loaded with %v", f.loads)
	}
	unload := &inferencepb.RepositoryModelUnloadRequest{ModelName: "m"}
	if err := invoke(t, conn, "RepositoryModelUnload", unload, &inferencepb.RepositoryModelUnloadResponse{}); err != nil || len(f.unloads) != 1 {
		t.Errorf("unloaded %v: %v", f.unloads, err)
	}
	trace := &inferencepb.TraceSettingRequest{Settings: map[string]*inferencepb.TraceSettingRequest_SettingValue{
		"one": {Value: []string{"1"}}, "two": {Value: []string{"1", "2"}}, "clear": {},
	}}
	if err := invoke(t, conn, "TraceSetting", trace, &inferencepb.TraceSettingResponse{}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"one": "1", "two": []string{"1", "2"}, "clear": nil}; !reflect.DeepEqual(f.set, want) {
		t.Errorf("set %v", f.set)
	}
	log := &inferencepb.LogSettingsRequest{Settings: map[string]*inferencepb.LogSettingsRequest_SettingValue{
		"b": {ParameterChoice: &inferencepb.LogSettingsRequest_SettingValue_BoolParam{BoolParam: true}},
		"u": {ParameterChoice: &inferencepb.LogSettingsRequest_SettingValue_Uint32Param{Uint32Param: 3}},
		"s": {ParameterChoice: &inferencepb.LogSettingsRequest_SettingValue_StringParam{StringParam: "x"}},
	}}
	if err := invoke(t, conn, "LogSettings", log, &inferencepb.LogSettingsResponse{}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"b": true, "u": int64(3), "s": "x"}; !reflect.DeepEqual(f.set, want) {
		t.Errorf("set %v", f.set)
	}
	for name, err := range map[string]error{
		"another repository": invoke(t, conn, "RepositoryIndex", &inferencepb.RepositoryIndexRequest{RepositoryName: "x"}, &inferencepb.RepositoryIndexResponse{}),
		"register":           invoke(t, conn, "SystemSharedMemoryRegister", &inferencepb.SystemSharedMemoryRegisterRequest{Name: "r"}, &inferencepb.SystemSharedMemoryRegisterResponse{}),
		"register for CUDA":  invoke(t, conn, "CudaSharedMemoryRegister", &inferencepb.CudaSharedMemoryRegisterRequest{Name: "r"}, &inferencepb.CudaSharedMemoryRegisterResponse{}),
	} {
		if grpcstatus.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every kind of error has its code, and every method returns what its call returned.
func TestStatuses(t *testing.T) {
	f := &fake{}
	conn, _ := listen(t, f, Options{})
	for kind, want := range map[inference.Kind]codes.Code{
		inference.Internal: codes.Internal, inference.InvalidArgument: codes.InvalidArgument, inference.NotFound: codes.NotFound,
		inference.AlreadyExists: codes.AlreadyExists, inference.Conflict: codes.Aborted, inference.Unimplemented: codes.Unimplemented,
		inference.Unauthenticated: codes.Unauthenticated, inference.PermissionDenied: codes.PermissionDenied,
		inference.ResourceExhausted: codes.ResourceExhausted, inference.Unavailable: codes.Unavailable,
		inference.DeadlineExceeded: codes.DeadlineExceeded, inference.Canceled: codes.Canceled, inference.TooLarge: codes.ResourceExhausted,
	} {
		e := inference.Errorf(kind, "because of ünïcode")
		e.RetryAfter = 1500 * time.Millisecond
		f.err = e
		f.infer = func(context.Context, *inference.Request) (*inference.Response, error) { return nil, e }
		for method, io := range map[string][2]proto.Message{
			"ModelReady":            {&inferencepb.ModelReadyRequest{}, &inferencepb.ModelReadyResponse{}},
			"ModelMetadata":         {&inferencepb.ModelMetadataRequest{}, &inferencepb.ModelMetadataResponse{}},
			"ModelConfig":           {&inferencepb.ModelConfigRequest{}, &inferencepb.ModelConfigResponse{}},
			"ModelStatistics":       {&inferencepb.ModelStatisticsRequest{}, &inferencepb.ModelStatisticsResponse{}},
			"RepositoryIndex":       {&inferencepb.RepositoryIndexRequest{}, &inferencepb.RepositoryIndexResponse{}},
			"RepositoryModelLoad":   {&inferencepb.RepositoryModelLoadRequest{}, &inferencepb.RepositoryModelLoadResponse{}},
			"RepositoryModelUnload": {&inferencepb.RepositoryModelUnloadRequest{}, &inferencepb.RepositoryModelUnloadResponse{}},
			"LogSettings":           {&inferencepb.LogSettingsRequest{}, &inferencepb.LogSettingsResponse{}},
			"TraceSetting":          {&inferencepb.TraceSettingRequest{}, &inferencepb.TraceSettingResponse{}},
			"ModelInfer":            {&inferencepb.ModelInferRequest{}, &inferencepb.ModelInferResponse{}},
		} {
			var trailer metadata.MD
			err := invoke(t, conn, method, io[0], io[1], grpc.Trailer(&trailer))
			if method == "ModelReady" && (kind == inference.NotFound || kind == inference.Unavailable) {
				if err != nil { // it is not ready
					t.Errorf("%s: %v", method, err)
				}
				continue
			}
			if s := grpcstatus.Convert(err); s.Code() != want || s.Message() != e.Msg {
				t.Errorf("%s: %v, want %v", method, err, want)
			}
			if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "1500" {
				t.Errorf("%s: %v", method, trailer)
			}
		}
	}
	f.infer = func(context.Context, *inference.Request) (*inference.Response, error) { panic("boom") }
	err := invoke(t, conn, "ModelInfer", &inferencepb.ModelInferRequest{}, &inferencepb.ModelInferResponse{})
	if grpcstatus.Code(err) != codes.Internal || !strings.Contains(err.Error(), "boom") {
		t.Errorf("a panic: %v", err)
	}
}

// Every method of every service belongs to a scope, and one who may not use it is
// told so.
func TestScopes(t *testing.T) {
	var asked inference.Scope
	conn, _ := listen(t, &fake{}, Options{Authorize: func(_ *http.Request, s inference.Scope) error {
		asked = s
		return inference.Errorf(inference.PermissionDenied, "no")
	}})
	methods := inferencepb.File_inference_service_proto.Services().ByName("GRPCInferenceService").Methods()
	special := map[string]inference.Scope{
		"ServerLive": inference.ScopeHealth, "ServerReady": inference.ScopeHealth, "ModelReady": inference.ScopeHealth,
		"ModelConfig": inference.ScopeConfig, "ModelStatistics": inference.ScopeStatistics,
		"RepositoryModelLoad": inference.ScopeRepository, "RepositoryModelUnload": inference.ScopeRepository,
		"LogSettings": inference.ScopeLogging, "TraceSetting": inference.ScopeTrace,
		"ServerMetadata": inference.ScopeMetadata, "ModelMetadata": inference.ScopeMetadata, "RepositoryIndex": inference.ScopeMetadata,
		"SystemSharedMemoryStatus": inference.ScopeMetadata, "CudaSharedMemoryStatus": inference.ScopeMetadata,
		"SystemSharedMemoryRegister": inference.ScopeSharedMemory, "SystemSharedMemoryUnregister": inference.ScopeSharedMemory,
		"CudaSharedMemoryRegister": inference.ScopeSharedMemory, "CudaSharedMemoryUnregister": inference.ScopeSharedMemory,
	}
	for i := range methods.Len() {
		name := string(methods.Get(i).Name())
		want, ok := special[name]
		if !ok {
			want = inference.ScopeInference
		}
		asked = ""
		err := invoke(t, conn, name, &inferencepb.ServerLiveRequest{}, &inferencepb.ServerLiveResponse{})
		if grpcstatus.Code(err) != codes.PermissionDenied || asked != want {
			t.Errorf("%s: %v, for scope %q, want %q", name, err, asked, want)
		}
	}
}

func TestHealth(t *testing.T) {
	f := &fake{}
	conn, _ := listen(t, f, Options{})
	health := healthpb.NewHealthClient(conn)
	check := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, service := range []string{"", serviceName} {
			r, err := health.Check(ctx, &healthpb.HealthCheckRequest{Service: service})
			if err != nil || r.Status != want {
				t.Errorf("%q: %v, %v; want %v", service, r, err, want)
			}
		}
	}
	check(healthpb.HealthCheckResponse_NOT_SERVING)
	watched, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	w, err := health.Watch(watched, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING} {
		if r, err := w.Recv(); err != nil || r.Status != want {
			t.Fatalf("watch %d: %v, %v", i, r, err)
		}
		f.setReady(true)
	}
	check(healthpb.HealthCheckResponse_SERVING)
	if _, err := health.Check(ctx, &healthpb.HealthCheckRequest{Service: "x"}); grpcstatus.Code(err) != codes.NotFound {
		t.Errorf("a service that is not there: %v", err)
	}
}

func TestReflection(t *testing.T) {
	conn, _ := listen(t, &fake{}, Options{})
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		out, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	list := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	services := list.GetListServicesResponse().GetService()
	for _, want := range []string{serviceName, healthName} {
		found := false
		for _, s := range services {
			found = found || s.Name == want
		}
		if !found {
			t.Errorf("%s is not among %v", want, services)
		}
	}
	for _, s := range services {
		r := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: s.Name}})
		if len(r.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("%s: %v", s.Name, r)
		}
	}
}

func TestTooLarge(t *testing.T) {
	f := &fake{}
	f.infer = f.echo
	conn, _ := listen(t, f, Options{MaxMessage: 1 << 16})
	in := &inferencepb.ModelInferRequest{
		Inputs:           []*inferencepb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "UINT8", Shape: []int64{1 << 20}}},
		RawInputContents: [][]byte{make([]byte, 1<<20)},
	}
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
		if err := invoke(t, conn, "ModelInfer", in, &inferencepb.ModelInferResponse{}, opts...); grpcstatus.Code(err) != codes.ResourceExhausted {
			t.Errorf("%d options: %v", len(opts), err)
		}
	}
}

// A client that goes away cancels its request.
func TestCancellation(t *testing.T) {
	f := &fake{}
	began, ended := make(chan struct{}), make(chan error, 1)
	f.infer = func(ctx context.Context, _ *inference.Request) (*inference.Response, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	conn, _ := listen(t, f, Options{})
	ctx, cancel := context.WithCancel(ctx)
	go func() { <-began; cancel() }()
	err := conn.Invoke(ctx, procedure(serviceName, "ModelInfer"), &inferencepb.ModelInferRequest{}, &inferencepb.ModelInferResponse{})
	if grpcstatus.Code(err) != codes.Canceled {
		t.Errorf("the client: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server: %v", err)
	}
}

// HTTP/1.1 and broken frames are refused, and the server goes on.
func TestBrokenFrames(t *testing.T) {
	f := &fake{ready: true}
	conn, addr := listen(t, f, Options{})
	for _, body := range []string{"", "\x00", "\x00\x00\x00\x00\x05ab", "\x01\x00\x00\x00\x02ab", "\xff\xff\xff\xff\xff", "\x00\x00\x00\x00\x02\xff\xff"} {
		r, err := http.Post("http://"+addr+procedure(serviceName, "ModelInfer"), "application/grpc", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		r.Body.Close()
	}
	if err := invoke(t, conn, "ServerReady", &inferencepb.ServerReadyRequest{}, &inferencepb.ServerReadyResponse{}); err != nil {
		t.Error(err)
	}
}
