package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/internal/access"
	"github.com/loris-ml/loris/serve/internal/grpcapi"
	"github.com/loris-ml/loris/serve/internal/http1"
	"github.com/loris-ml/loris/serve/internal/http2"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/metrics"
	"github.com/loris-ml/loris/serve/internal/page"
	"github.com/loris-ml/loris/serve/internal/profiling"
	"github.com/loris-ml/loris/serve/internal/repository"
	"github.com/loris-ml/loris/serve/internal/rest"
	"github.com/loris-ml/loris/serve/internal/sharedmemory"
	"github.com/loris-ml/loris/serve/internal/tracing"
	"github.com/loris-ml/loris/serve/internal/weightsapi"
)

// Server answers requests for models. It is an http.Handler; gRPC needs HTTP/2.
type Server struct {
	options    Options
	repository *repository.Repository
	handler    http.Handler
	admin      http.Handler
	tracer     *tracing.Tracer
	// sharedMemory is nil where clients may share none.
	sharedMemory *sharedmemory.Regions
}

// New returns a Server that has loaded no model: it is live, and not ready before Load.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	files, weights, err := o.files()
	if err != nil {
		return nil, err
	}
	rules, err := access.New(o.Allow, o.TokenFile, access.OIDC(o.OIDC))
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, admin: profiling.Handler(rules.Allow)}
	if o.TraceEndpoint != "" {
		failed := func(err error) { o.Log.Warn("spans were lost", "error", err) }
		s.tracer, err = tracing.New(context.Background(), tracing.Options{Endpoint: o.TraceEndpoint, Rate: o.TraceRate, Version: o.Version, Failed: failed})
		if err != nil {
			return nil, err
		}
	}
	ro := repository.Options{
		Dir: o.Models, Files: files, Weights: weights, AllowDigests: o.AllowDigests, Log: o.Log, Level: o.Level, Version: o.Version,
		UpdateWeights: o.AllowWeightUpdate, Tracer: s.tracer, MemoryBudget: o.MemoryBudget, LoadWait: o.LoadWait,
	}
	if file, single := singleModel(o.Models); o.ModelName != "" && single {
		ro.Single = o.ModelName
		if file != "" {
			ro.Dir, ro.Single, files[o.ModelName] = "", "", file
			if w := filepath.Join(o.Models, "weights.safetensors"); isThere(w) {
				weights[o.ModelName] = w
			}
		}
	}
	if o.Mode == ModeExplicit {
		ro.Selected = append([]string{}, o.Load...)
	}
	r, err := repository.New(ro)
	if err != nil {
		return nil, err
	}
	if o.AllowClientSharedMemory {
		if s.sharedMemory, err = sharedmemory.New(o.MaxBody); err != nil {
			return nil, err
		}
	}
	service := s.sharedMemory.Service(r)
	mux := http.NewServeMux()
	services := grpcapi.Register(service, grpcapi.Options{MaxMessage: int(o.MaxBody), Authorize: rules.Allow, SharedMemory: s.sharedMemory})
	weightsapi.Register(mux, services, r, weightsapi.Options{Authorize: rules.Allow, Dir: o.WeightsDir})
	restHandler := rest.New(service, rest.Options{Allow: rules.Allow, Generate: r.Generate, SharedMemory: s.sharedMemory, MaxBody: o.MaxBody, NonFinite: o.JSONNaN})
	metricsHandler := metrics.Handler(r, rules.Allow, o.TritonMetrics)
	pageHandler := page.Handler(r, rules.Allow, time.Second)
	s.repository = r
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch path := req.URL.Path; {
		case isWeights(mux, req):
			mux.ServeHTTP(w, req)
		case strings.HasPrefix(path, "/v2"):
			restHandler.ServeHTTP(w, req)
		case !o.NoPage && (path == "/" || strings.HasPrefix(path, "/page/")):
			pageHandler.ServeHTTP(w, req)
		case path == "/metrics":
			metricsHandler.ServeHTTP(w, req)
		case strings.Count(path, "/") == 2: // /package.Service/Method
			services.ServeHTTP(w, req)
		default:
			rest.WriteError(w, inference.Errorf(inference.NotFound, "there is nothing at %s; the protocol begins at /v2", path))
		}
	})
	s.handler = s.tracer.Handler(s.handler)
	if o.AccessLog {
		s.handler = logged(o.Log, s.handler)
	}
	return s, nil
}

// isWeights reports whether a request is about weights. A path that is looks like one of
// a model's, whose name may be "weights".
func isWeights(mux *http.ServeMux, r *http.Request) bool {
	if !strings.Contains(r.URL.Path, "/weights") {
		return false
	}
	_, pattern := mux.Handler(r)
	return pattern != ""
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Load loads the selected models and warms them up. Its error joins those of all that
// could not be loaded; the others are served, but the server is not ready.
func (s *Server) Load(ctx context.Context) error { return s.repository.Start(ctx) }

// Close unloads the models when their last request is answered, or returns the error of
// ctx if that ends before. Spans that are left are sent.
func (s *Server) Close(ctx context.Context) error {
	return errors.Join(s.repository.Close(ctx), s.tracer.Close(ctx), s.sharedMemory.Close())
}

// Run listens, loads the models and serves until ctx ends. Then it becomes unready,
// answers the requests in flight within DrainTimeout, and returns nil.
func Run(ctx context.Context, o Options) error {
	s, err := New(o)
	if err != nil {
		return err
	}
	o = s.options
	tlsConfig, err := tlsFromFiles(o.CertFile, o.KeyFile, o.CAFile)
	if err != nil {
		return err
	}
	var servers []httpServing
	listeners := s.listeners()
	failed := make(chan error, len(listeners))
	var running sync.WaitGroup
	defer func() {
		for _, hs := range servers {
			hs.Close()
		}
		running.Wait()
	}()
	for _, at := range listeners {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", at.address)
		if err != nil {
			return err
		}
		hs := httpServer(at.handler, o.Log)
		o.Log.Info("listening", "address", l.Addr().String(), "tls", tlsConfig != nil)
		if tlsConfig != nil {
			hs.TLSConfig = tlsConfig
			servers = append(servers, hs)
			running.Go(func() { failed <- hs.ServeTLS(l, "", "") })
			continue
		}
		plain := &http1.Server{HTTP: hs, Plain: isPlain, HTTP2: &http2.Server{HTTP: hs, Whole: isWhole}}
		servers = append(servers, plain)
		running.Go(func() { failed <- plain.Serve(l) })
	}
	return s.until(ctx, servers, failed)
}

// httpServing is what of an http.Server ends it.
type httpServing interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// isPlain reports whether the answers to a path are written at once: all of REST but streams of text.
func isPlain(path string) bool {
	return strings.HasPrefix(path, "/v2") && !strings.HasSuffix(path, "/generate_stream")
}

// isWhole reports whether requests for a path are answered when all of them is there.
func isWhole(path string) bool {
	return strings.HasSuffix(path, "/ModelInfer") || strings.HasPrefix(path, "/v2") && strings.HasSuffix(path, "/infer")
}

// listener is an address with what answers there.
type listener struct {
	address string
	handler http.Handler
}

func (s *Server) listeners() []listener {
	all := []listener{{s.options.HTTPAddress, s}}
	if s.options.GRPCAddress != "" {
		all = append(all, listener{s.options.GRPCAddress, s})
	}
	if s.options.AdminAddress != "" {
		all = append(all, listener{s.options.AdminAddress, s.admin})
	}
	return all
}

// until loads the models, waits for the end and drains.
func (s *Server) until(ctx context.Context, servers []httpServing, failed <-chan error) error {
	err := s.Load(ctx)
	if err != nil && (!s.options.KeepGoing || ctx.Err() != nil) {
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err == nil {
		s.options.Log.Info("ready")
	}
	if s.options.Mode == ModePoll {
		polling, stop := context.WithCancel(ctx)
		defer stop()
		go s.repository.Poll(polling, s.options.PollInterval)
	}
	select {
	case err := <-failed:
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}
	s.options.Log.Info("stopping: unready, and waiting for requests in flight", "at most", s.options.DrainTimeout)
	s.repository.Stop()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.DrainTimeout)
	defer cancel()
	for _, hs := range servers {
		if err := hs.Shutdown(drain); err != nil {
			return fmt.Errorf("requests in flight were cut off after %v: %w", s.options.DrainTimeout, err)
		}
	}
	return s.Close(drain)
}

// httpServer returns a server with bounds on what slow or idle clients hold.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: h, Protocols: &protocols, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 5 * time.Minute, IdleTimeout: 10 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
