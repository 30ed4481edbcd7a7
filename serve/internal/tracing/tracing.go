// Package tracing makes spans of OpenTelemetry of requests for inference, and sends them
// to a collector by OTLP. It takes part in traces of clients by W3C's headers.
package tracing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/loris-ml/loris/serve/internal/answer"
)

// Tracer decides which requests are traced and makes their spans. A nil Tracer traces
// nothing. Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer

	initial settings // of all models, as the server was started

	mu     sync.Mutex
	global settings
	models map[string]override
}

// Options say where spans go.
type Options struct {
	// Endpoint is the URL of the collector, to which /v1/traces is added where it has no
	// path.
	Endpoint string
	// Rate traces one of so many requests, besides those whose clients trace them; 0
	// stands for 1.
	Rate int64
	// Version is that of the server.
	Version string
	// Failed is told when spans cannot be sent; nil ignores that.
	Failed func(error)
}

// New returns a Tracer that sends what it traces to a collector. Nothing is sent before
// the first span.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Rate < 0 {
		return nil, fmt.Errorf("the rate of traces is %d: expected one of 1 or more requests", o.Rate)
	}
	exporter, err := newExporter(ctx, o.Endpoint, o.Failed)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(serviceName(o.Version)...))
	if err != nil {
		return nil, err
	}
	return newTracer(o.Rate, sdk.WithBatcher(exporter), sdk.WithResource(about)), nil
}

func newTracer(rate int64, options ...sdk.TracerProviderOption) *Tracer {
	// Whether a request is traced is decided here, before a span is begun.
	p := sdk.NewTracerProvider(append(options, sdk.WithSampler(sdk.AlwaysSample()))...)
	initial := settings{on: true, rate: max(rate, 1), count: -1}
	return &Tracer{provider: p, tracer: p.Tracer("github.com/loris-ml/loris/serve"), initial: initial, global: initial, models: map[string]override{}}
}

// Close sends the spans that are left, and stops.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// request is a request for inference of which nobody knows yet whether it is traced:
// that depends on its model.
type request struct {
	begin   time.Time
	remote  trace.SpanContext
	http    *http.Request
	header  http.Header // of the answer
	decided bool
	span    trace.Span // nil if it is not traced
	ctx     context.Context
}

type requestKey struct{}

// propagator reads and writes traceparent and tracestate.
var propagator propagation.TraceContext

// Handler has requests for inference that h answers traced.
func (t *Tracer) Handler(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(inferences, lastPart(r.URL.Path)) || !t.active() {
			h.ServeHTTP(w, r)
			return
		}
		ctx := propagator.Extract(context.WithoutCancel(r.Context()), propagation.HeaderCarrier(r.Header))
		q := &request{begin: time.Now(), remote: trace.SpanContextFromContext(ctx), http: r, header: w.Header()}
		aw := &answer.Writer{ResponseWriter: w, Before: func(status int) {
			if status >= http.StatusBadRequest { // of a model that is not known, if nobody has begun the span
				t.start(q, "")
			}
		}}
		h.ServeHTTP(aw, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
		q.end(aw.Status())
	})
}

// inferences are the last parts of the paths whose requests are traced.
var inferences = []string{"infer", "generate", "generate_stream", "ModelInfer", "ModelStreamInfer"}

// lastPart returns what is behind the last slash of a path.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// active reports whether any request may be traced.
func (t *Tracer) active() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.global.on {
		return true
	}
	for _, o := range t.models {
		if o.on != nil && *o.on {
			return true
		}
	}
	return false
}

// start begins the span of a request if it is to be traced, once.
func (t *Tracer) start(q *request, model string) {
	if q.decided {
		return
	}
	q.decided = true
	if !t.sample(model, q.remote) {
		return
	}
	ctx := context.Background()
	if q.remote.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, q.remote)
	}
	q.ctx, q.span = t.tracer.Start(ctx, strings.TrimSpace(lastPart(q.http.URL.Path)+" "+model), trace.WithTimestamp(q.begin), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", q.http.Method), attribute.String("url.path", q.http.URL.Path),
		attribute.String("network.protocol.version", strings.TrimPrefix(q.http.Proto, "HTTP/")), attribute.String("user_agent.original", q.http.UserAgent()),
		attribute.String("client.address", q.http.RemoteAddr),
	))
	// As the draft for answers has it: the client learns by which id to find the trace.
	c := q.span.SpanContext()
	q.header.Set("Traceresponse", fmt.Sprintf("00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags()))
}

// end ends the span of the request, whose answer has a status.
func (q *request) end(status int) {
	span := q.span
	if span == nil {
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	// gRPC has its status behind the answer.
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if code := q.header.Get(name); code != "" {
			span.SetAttributes(attribute.String("rpc.response.status_code", code))
			if code != "0" {
				span.SetStatus(codes.Error, "grpc-status "+code)
			}
		}
	}
	span.End()
}

// Step is a part of an inference, in the order of time.
type Step struct {
	Name string
	Took time.Duration
}

// Inference is one request to a model. A nil Inference is not traced.
type Inference struct {
	tracer *Tracer
	span   trace.Span
	ctx    context.Context
}

// Begin begins the span of an inference, in the trace of its request; nil if that is not
// traced.
func (t *Tracer) Begin(ctx context.Context, model, version string) *Inference {
	if t == nil {
		return nil
	}
	q, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return nil
	}
	if t.start(q, model); q.span == nil {
		return nil
	}
	i := &Inference{tracer: t}
	i.ctx, i.span = t.tracer.Start(q.ctx, "infer", trace.WithAttributes(attribute.String("loris.model", model), attribute.String("loris.version", version)))
	return i
}

// End ends the span. steps are those that came before its end, one directly after the
// other; rows is how many the run had, of which the request's are a part.
func (i *Inference) End(err error, rows int64, weights string, steps ...Step) {
	if i == nil {
		return
	}
	end := time.Now()
	at := end
	for _, s := range steps {
		at = at.Add(-s.Took)
	}
	for _, s := range steps {
		_, span := i.tracer.tracer.Start(i.ctx, s.Name, trace.WithTimestamp(at))
		at = at.Add(s.Took)
		span.End(trace.WithTimestamp(at))
	}
	if err != nil {
		i.span.SetStatus(codes.Error, err.Error())
	} else {
		i.span.SetAttributes(attribute.Int64("loris.batch.rows", rows))
		if weights != "" {
			i.span.SetAttributes(attribute.String("loris.weight_version", weights))
		}
	}
	i.span.End(trace.WithTimestamp(end))
}

// sample decides whether a request to a model is traced: as its client has decided, or by
// the rate.
func (t *Tracer) sample(model string, remote trace.SpanContext) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.models[model]
	s := own.over(t.global)
	switch {
	case !s.on || s.count == 0:
		return false
	case remote.IsValid():
		if !remote.IsSampled() {
			return false
		}
	case s.rate > 1 && rand.Int64N(s.rate) != 0:
		return false
	}
	if s.count > 0 { // of the model's own, or of all
		if own.count != nil {
			*own.count--
		} else {
			t.global.count--
		}
	}
	return true
}
