package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
)

// statusWriter remembers the status of an answer, for its span.
type statusWriter struct {
	http.ResponseWriter
	request *request
	tracer  *Tracer
	status  int
}

// WriteHeader passes the status on. A request that failed before its model was known is
// traced as one of no model.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if status >= http.StatusBadRequest {
			w.tracer.start(w.request, "")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the writer's other methods.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush is asked for by gRPC.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// end ends the span of the request.
func (w *statusWriter) end() {
	span := w.request.span
	if span == nil {
		return
	}
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	// gRPC has its status behind the answer.
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if code := w.Header().Get(name); code != "" {
			span.SetAttributes(attribute.String("rpc.response.status_code", code))
			if code != "0" {
				span.SetStatus(codes.Error, "grpc-status "+code)
			}
		}
	}
	span.End()
}
