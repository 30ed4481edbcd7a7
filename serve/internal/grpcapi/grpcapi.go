// Package grpcapi answers gRPC for an inference.Service: the service of the Open
// Inference Protocol with Triton's extensions, the standard health service and
// reflection. Its handlers are for the ServeMux that answers REST, too; HTTP/2 is
// the server's business.
package grpcapi

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
	"github.com/loris-ml/loris/serve/internal/sharedmemory"
)

// Options say how messages are taken.
type Options struct {
	// MaxMessage bounds the bytes of a message, decompressed; 0 does not.
	MaxMessage int
	// Authorize returns an *inference.Error for a caller who may not use a scope;
	// nil lets everybody.
	Authorize func(r *http.Request, scope inference.Scope) error
	// SharedMemory has the regions that clients register; nil offers none.
	SharedMemory *sharedmemory.Regions
}

// serviceName is the name of the inference service.
const serviceName = "inference.GRPCInferenceService"

// Register returns the handlers, to which further services can be added.
func Register(srv inference.Service, o Options) *Registrar {
	r := newRegistrar(o)
	s := &server{srv}
	AddUnary(r, serviceName, "ServerLive", inference.ScopeHealth, s.serverLive)
	AddUnary(r, serviceName, "ServerReady", inference.ScopeHealth, s.serverReady)
	AddUnary(r, serviceName, "ModelReady", inference.ScopeHealth, s.modelReady)
	AddUnary(r, serviceName, "ServerMetadata", inference.ScopeMetadata, s.serverMetadata)
	AddUnary(r, serviceName, "ModelMetadata", inference.ScopeMetadata, s.modelMetadata)
	AddUnary(r, serviceName, "ModelConfig", inference.ScopeConfig, s.modelConfig)
	AddUnary(r, serviceName, "ModelStatistics", inference.ScopeStatistics, s.modelStatistics)
	AddUnary(r, serviceName, "RepositoryIndex", inference.ScopeMetadata, s.repositoryIndex)
	AddUnary(r, serviceName, "RepositoryModelLoad", inference.ScopeRepository, s.load)
	AddUnary(r, serviceName, "RepositoryModelUnload", inference.ScopeRepository, s.unload)
	AddUnary(r, serviceName, "LogSettings", inference.ScopeLogging, s.logSettings)
	AddUnary(r, serviceName, "TraceSetting", inference.ScopeTrace, s.traceSetting)
	r.add(serviceName, "ModelInfer", inference.ScopeInference, s.modelInferHandler(o, r.options))
	r.add(serviceName, "ModelStreamInfer", inference.ScopeInference, connect.NewBidiStreamHandler(procedure(serviceName, "ModelStreamInfer"), s.modelStreamInfer, r.options...))
	addSharedMemory(r, o.SharedMemory)
	addHealth(r, srv)
	addReflection(r)
	return r
}

// Registrar has handlers with common options. It is an http.Handler.
type Registrar struct {
	handlers  map[string]http.Handler // by path; a mux takes longer than they do
	services  []string                // those that have methods
	methods   []Method
	authorize func(r *http.Request, scope inference.Scope) error
	options   []connect.HandlerOption
	errors    *connect.ErrorWriter
}

func newRegistrar(o Options) *Registrar {
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(o.MaxMessage),
		compression(o.MaxMessage),
		// Most clients offer to take compressed answers, and few gain by it: numbers
		// of models hardly shrink, and gzip is slower than the network in the machine.
		connect.WithCompressMinBytes(math.MaxInt),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, v any) error {
			return connect.NewError(connect.CodeInternal, fmt.Errorf("panic in %s: %v", spec.Procedure, v))
		}),
	}
	return &Registrar{handlers: map[string]http.Handler{}, authorize: o.Authorize, options: options, errors: connect.NewErrorWriter(options...)}
}

// ServeHTTP answers a call, or with 404 that there is no such method.
func (r *Registrar) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if h, ok := r.handlers[req.URL.Path]; ok {
		h.ServeHTTP(w, req)
		return
	}
	http.NotFound(w, req)
}

func procedure(service, method string) string { return "/" + service + "/" + method }

// AddUnary adds a method with one request and one answer.
func AddUnary[Req, Res any](r *Registrar, service, method string, scope inference.Scope, fn func(context.Context, *Req) (*Res, error)) {
	path := procedure(service, method)
	r.add(service, method, scope, connect.NewUnaryHandler(path, func(ctx context.Context, in *connect.Request[Req]) (*connect.Response[Res], error) {
		out, err := fn(ctx, in.Msg)
		if err != nil {
			return nil, status(err)
		}
		return connect.NewResponse(out), nil
	}, r.options...))
}

// AddClientStream adds a method with several requests and one answer.
func AddClientStream[Req, Res any](r *Registrar, service, method string, scope inference.Scope, fn func(context.Context, *connect.ClientStream[Req]) (*Res, error)) {
	path := procedure(service, method)
	r.add(service, method, scope, connect.NewClientStreamHandler(path, func(ctx context.Context, in *connect.ClientStream[Req]) (*connect.Response[Res], error) {
		out, err := fn(ctx, in)
		if err != nil {
			return nil, status(err)
		}
		return connect.NewResponse(out), nil
	}, r.options...))
}

// Names returns the services that have been added.
func (r *Registrar) Names() []string { return r.services }

// Method is a method with its scope.
type Method struct {
	Path  string
	Scope inference.Scope
}

// Methods lists all methods, for tests of the rules of access.
func (r *Registrar) Methods() []Method { return r.methods }

// add adds a handler for those who may use the scope.
func (r *Registrar) add(service, method string, scope inference.Scope, h http.Handler) {
	if !slices.Contains(r.services, service) {
		r.services = append(r.services, service)
	}
	r.handle(service, method, scope, h)
}

// handle is add of a method that reflection does not list.
func (r *Registrar) handle(service, method string, scope inference.Scope, h http.Handler) {
	r.methods = append(r.methods, Method{procedure(service, method), scope})
	r.handlers[procedure(service, method)] = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.authorize != nil {
			if err := r.authorize(req, scope); err != nil {
				_ = r.errors.Write(w, req, status(err)) // fails if the client is gone
				return
			}
		}
		h.ServeHTTP(w, req)
	})
}

// server answers the inference service.
type server struct{ inference.Service }

func (s *server) serverLive(context.Context, *inferencepb.ServerLiveRequest) (*inferencepb.ServerLiveResponse, error) {
	return &inferencepb.ServerLiveResponse{Live: s.Live()}, nil
}

func (s *server) serverReady(context.Context, *inferencepb.ServerReadyRequest) (*inferencepb.ServerReadyResponse, error) {
	return &inferencepb.ServerReadyResponse{Ready: s.Ready()}, nil
}

func (s *server) modelReady(_ context.Context, r *inferencepb.ModelReadyRequest) (*inferencepb.ModelReadyResponse, error) {
	ready, err := s.ModelReady(r.GetName(), r.GetVersion())
	if err != nil {
		// One that is not there is not ready, as clients of Triton expect after an unload.
		if k := inference.AsError(err).Kind; k != inference.NotFound && k != inference.Unavailable {
			return nil, err
		}
	}
	return &inferencepb.ModelReadyResponse{Ready: ready}, nil
}
