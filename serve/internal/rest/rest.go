// Package rest answers the Open Inference Protocol over HTTP, with Triton's extensions
// for binary tensors, the repository, configurations and statistics.
package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/sharedmemory"
)

// Options change how a Handler works.
type Options struct {
	// Allow returns an error unless the sender of a request may use a part of the
	// interface.
	Allow func(r *http.Request, s inference.Scope) error
	// Generate continues texts; nil is for a server that does not. emit gets pieces of the
	// text as they come, unless it is nil.
	Generate func(ctx context.Context, r *inference.GenerateRequest, emit func(string) error) (*inference.GenerateResponse, error)
	// SharedMemory has the regions that clients register; nil offers none.
	SharedMemory *sharedmemory.Regions
	// MaxBody bounds the body of a request for inference, decoded.
	MaxBody int64
	// NonFinite reads and writes NaN and the infinities in JSON, as Python does.
	NonFinite bool
}

// Handler answers requests below /v2.
type Handler struct {
	service inference.Service
	options Options
}

// New returns a Handler over a service.
func New(service inference.Service, options Options) *Handler {
	return &Handler{service, options}
}

// call is a request that a route matched.
type call struct {
	*Handler
	w              http.ResponseWriter
	r              *http.Request
	model, version string

	// What a request for inference needs, which the next one uses again.
	req     inferCall
	decoder *decoder
	parts   [8][]byte // of the answer
}

var calls = sync.Pool{New: func() any { return &call{decoder: newDecoder()} }}

// end gives the call to a later request. One whose answer panics is left to the collector.
func (c *call) end() {
	c.decoder.forget()
	*c = call{decoder: c.decoder}
	calls.Put(c)
}

// route is one path with what answers it.
type route struct {
	method  string
	pattern string
	scope   inference.Scope
	answer  func(*call) error
}

// routes lists all paths; * stands for a model's name and + for a version.
var routes = []route{
	{"POST", "models/*/infer", inference.ScopeInference, (*call).infer},
	{"POST", "models/*/versions/+/infer", inference.ScopeInference, (*call).infer},
	{"POST", "models/*/generate", inference.ScopeInference, (*call).generate},
	{"POST", "models/*/versions/+/generate", inference.ScopeInference, (*call).generate},
	{"POST", "models/*/generate_stream", inference.ScopeInference, (*call).generateStream},
	{"POST", "models/*/versions/+/generate_stream", inference.ScopeInference, (*call).generateStream},
	{"GET", "health/live", inference.ScopeHealth, (*call).live},
	{"GET", "health/ready", inference.ScopeHealth, (*call).ready},
	{"GET", "", inference.ScopeMetadata, (*call).serverMetadata},
	{"GET", "models/stats", inference.ScopeStatistics, (*call).stats},
	{"GET", "models/*", inference.ScopeMetadata, (*call).modelMetadata},
	{"GET", "models/*/versions/+", inference.ScopeMetadata, (*call).modelMetadata},
	{"GET", "models/*/ready", inference.ScopeHealth, (*call).modelReady},
	{"GET", "models/*/versions/+/ready", inference.ScopeHealth, (*call).modelReady},
	{"GET", "models/*/config", inference.ScopeConfig, (*call).config},
	{"GET", "models/*/versions/+/config", inference.ScopeConfig, (*call).config},
	{"GET", "models/*/stats", inference.ScopeStatistics, (*call).stats},
	{"GET", "models/*/versions/+/stats", inference.ScopeStatistics, (*call).stats},
	{"POST", "repository/index", inference.ScopeMetadata, (*call).index},
	{"POST", "repository/models/*/load", inference.ScopeRepository, (*call).load},
	{"POST", "repository/models/*/unload", inference.ScopeRepository, (*call).unload},
	{"GET", "logging", inference.ScopeLogging, (*call).settings},
	{"POST", "logging", inference.ScopeLogging, (*call).settings},
	{"GET", "trace/setting", inference.ScopeTrace, (*call).settings},
	{"POST", "trace/setting", inference.ScopeTrace, (*call).settings},
	{"GET", "systemsharedmemory/status", inference.ScopeMetadata, (*call).sharedStatus},
	{"GET", "systemsharedmemory/region/*/status", inference.ScopeMetadata, (*call).sharedStatus},
	{"POST", "systemsharedmemory/region/*/register", inference.ScopeSharedMemory, (*call).sharedRegister},
	{"POST", "systemsharedmemory/unregister", inference.ScopeSharedMemory, (*call).sharedUnregister},
	{"POST", "systemsharedmemory/region/*/unregister", inference.ScopeSharedMemory, (*call).sharedUnregister},
	{"GET", "models/*/trace/setting", inference.ScopeTrace, (*call).settings},
	{"POST", "models/*/trace/setting", inference.ScopeTrace, (*call).settings},
}

// Route is a method and a path of the interface, with {model} and {version} in it.
type Route struct {
	Method, Path string
	Scope        inference.Scope
}

// Routes lists all there are, for tests of the rules of access.
func Routes() []Route {
	var all []Route
	for _, rt := range routes {
		path := strings.NewReplacer("*", "{model}", "+", "{version}").Replace("/v2/" + rt.pattern)
		all = append(all, Route{rt.method, strings.TrimSuffix(path, "/"), rt.scope})
	}
	return all
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*call)
	c.Handler, c.w, c.r = h, w, r
	rt, err := c.find()
	if err == nil {
		err = h.options.Allow(r, rt.scope)
	}
	if err == nil {
		err = rt.answer(c)
	}
	if err != nil {
		WriteError(w, err)
	}
	c.end()
}

// find returns the route of a request, and sets model and version.
func (c *call) find() (*route, error) {
	path, escaped := c.r.URL.Path, false
	if raw := c.r.URL.RawPath; raw != "" { // a name with a slash in it
		path, escaped = raw, true
	}
	rest, ok := strings.CutPrefix(path, "/v2")
	if !ok || (rest != "" && rest[0] != '/') {
		return nil, inference.Errorf(inference.NotFound, "there is nothing at %s", c.r.URL.Path)
	}
	rest = strings.Trim(rest, "/")
	other := ""
	for i := range routes {
		rt := &routes[i]
		c.model, c.version = "", ""
		if !c.match(rt.pattern, rest, escaped) {
			continue
		}
		if rt.method == c.r.Method || (rt.method == "GET" && c.r.Method == "HEAD") {
			return rt, nil
		}
		if !strings.Contains(other, rt.method) {
			other = strings.TrimPrefix(other+", "+rt.method, ", ")
		}
	}
	if other != "" {
		c.w.Header().Set("Allow", other)
		return nil, &methodError{c.r.Method, c.r.URL.Path, other}
	}
	return nil, inference.Errorf(inference.NotFound, "there is nothing at %s", c.r.URL.Path)
}

// match reports whether a path has the form of a pattern, and sets model and version
// to what stands at * and +.
func (c *call) match(pattern, path string, escaped bool) bool {
	for {
		want, morePattern, deeper := strings.Cut(pattern, "/")
		got, morePath, more := strings.Cut(path, "/")
		if deeper != more {
			return false
		}
		switch want {
		case "*", "+":
			if got == "" {
				return false
			}
			if escaped {
				plain, err := url.PathUnescape(got)
				if err != nil {
					return false
				}
				got = plain
			}
			if want == "*" {
				c.model = got
			} else {
				c.version = got
			}
		case got:
		default:
			return false
		}
		if !more {
			return true
		}
		pattern, path = morePattern, morePath
	}
}

// methodError says that a path is there, but not for the request's method.
type methodError struct{ method, path, allowed string }

func (e *methodError) Error() string {
	return e.path + " takes " + e.allowed + ", not " + e.method
}

// statuses are the HTTP statuses of the kinds of errors.
var statuses = map[inference.Kind]int{
	inference.Internal:          http.StatusInternalServerError,
	inference.InvalidArgument:   http.StatusBadRequest,
	inference.NotFound:          http.StatusNotFound,
	inference.AlreadyExists:     http.StatusConflict,
	inference.Conflict:          http.StatusConflict,
	inference.Unimplemented:     http.StatusNotImplemented,
	inference.Unauthenticated:   http.StatusUnauthorized,
	inference.PermissionDenied:  http.StatusForbidden,
	inference.ResourceExhausted: http.StatusTooManyRequests,
	inference.Unavailable:       http.StatusServiceUnavailable,
	inference.DeadlineExceeded:  http.StatusGatewayTimeout,
	inference.Canceled:          499, // as nginx says that the client went away
	inference.TooLarge:          http.StatusRequestEntityTooLarge,
}

// WriteError answers with an error, as {"error": "…"}.
func WriteError(w http.ResponseWriter, err error) {
	status := http.StatusMethodNotAllowed
	if _, method := err.(*methodError); !method {
		e := inference.AsError(err)
		status = statuses[e.Kind]
		if e.RetryAfter > 0 {
			seconds := int64((e.RetryAfter + 999_999_999) / 1_000_000_000)
			w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		}
		if e.Kind == inference.Unauthenticated {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
	}
	WriteJSON(w, status, struct {
		Error string `json:"error"`
	}{err.Error()})
}

// WriteJSON answers with a value. The content type is exactly application/json, which
// clients compare.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone gets nothing
}
