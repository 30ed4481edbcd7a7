package grpcapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// fake is a service that notes what it was asked and answers what a test says.
type fake struct {
	mu       sync.Mutex
	ready    bool
	infer    func(context.Context, *inference.Request) (*inference.Response, error)
	released int
	loads    []inference.Parameters
	unloads  []string
	set      map[string]any
	err      error // of all calls that can fail but Infer
}

func (f *fake) Live() bool { return true }
func (f *fake) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}
func (f *fake) setReady(r bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = r
}
func (f *fake) Metadata() inference.ServerMetadata {
	return inference.ServerMetadata{Name: "loris", Version: "1", Extensions: []string{"statistics"}}
}
func (f *fake) ModelReady(name, _ string) (bool, error) { return name == "m", f.err }
func (f *fake) ModelMetadata(name, _ string) (*inference.ModelMetadata, error) {
	return &inference.ModelMetadata{
		Name: name, Versions: []string{"1", "2"}, Platform: "p", Properties: map[string]string{"k": "v"},
		Inputs:  []inference.TensorMetadata{{Name: "x", Datatype: inference.FP32, Shape: []int64{-1, 4}}},
		Outputs: []inference.TensorMetadata{{Name: "y", Datatype: inference.Int64, Shape: []int64{-1}}},
	}, f.err
}
func (f *fake) ModelConfig(name, _ string) ([]byte, error) {
	return []byte(`{"name":"` + name + `","max_batch_size":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[4]}],"dynamic_batching":{"max_queue_delay_microseconds":100},"of_our_own":1}`), f.err
}
func (f *fake) Statistics(name, version string) ([]inference.ModelStatistics, error) {
	s := inference.ModelStatistics{Name: name, Version: version, InferenceCount: 3, ExecutionCount: 2, BatchStats: []inference.BatchStatistics{{BatchSize: 2}}}
	s.InferenceStats.Success = inference.Duration{Count: 3, NS: 7}
	return []inference.ModelStatistics{s}, f.err
}
func (f *fake) Infer(ctx context.Context, r *inference.Request) (*inference.Response, error) {
	return f.infer(ctx, r)
}
func (f *fake) Index(ready bool) ([]inference.IndexEntry, error) {
	all := []inference.IndexEntry{{Name: "m", Version: "1", State: inference.StateReady}}
	if !ready {
		all = append(all, inference.IndexEntry{Name: "n", State: inference.StateUnavailable, Reason: "unloaded"})
	}
	return all, f.err
}
func (f *fake) Load(_ context.Context, _ string, p inference.Parameters) error {
	f.loads = append(f.loads, p)
	return f.err
}
func (f *fake) Unload(_ context.Context, name string) error {
	f.unloads = append(f.unloads, name)
	return f.err
}
func (f *fake) Settings(inference.SettingsKind, string) (map[string]any, error) {
	return map[string]any{"log_info": true, "log_verbose_level": int64(2), "log_file": "f", "trace_level": []string{"a", "b"}, "none": nil}, f.err
}
func (f *fake) Set(kind inference.SettingsKind, model string, v map[string]any) (map[string]any, error) {
	f.set = v
	return f.Settings(kind, model)
}

// releaseFunc is a function as a Releaser.
type releaseFunc func()

func (fn releaseFunc) Release() { fn() }

// echo answers with the inputs, in memory that is overwritten when it is released.
func (f *fake) echo(_ context.Context, r *inference.Request) (*inference.Response, error) {
	out := &inference.Response{Model: r.Model, Version: "7", ID: r.ID, Parameters: r.Parameters}
	for _, t := range r.Inputs {
		t.Data = append([]byte(nil), t.Data...)
		out.Outputs = append(out.Outputs, t)
		out.Hold(releaseFunc(func() {
			f.mu.Lock()
			f.released++
			f.mu.Unlock()
			for i := range t.Data {
				t.Data[i] = 0xee
			}
		}))
	}
	return out, nil
}

// listen serves the handlers on HTTP/1.1 and h2c, and returns a connection of
// grpc-go to them and their address.
func listen(t testing.TB, f *fake, o Options) (*grpc.ClientConn, string) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: Register(f, o), Protocols: &protocols}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	return conn, l.Addr().String()
}
