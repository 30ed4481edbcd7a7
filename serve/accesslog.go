package serve

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// logged writes a line for each request, with an id that the client gets, too: its own
// X-Request-Id if it sent one.
func logged(log *slog.Logger, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		id := r.Header.Get("X-Request-Id")
		if id == "" || len(id) > 128 {
			id = rand.Text()
		}
		w.Header().Set("X-Request-Id", id)
		counted := &countedWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(counted, r)
		attrs := []slog.Attr{
			slog.String("id", id), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", counted.status),
			slog.Int64("in", r.ContentLength), slog.Int64("out", counted.bytes), slog.Duration("took", time.Since(begin)), slog.String("from", r.RemoteAddr),
		}
		if _, rest, traced := strings.Cut(w.Header().Get("Traceresponse"), "-"); traced {
			id, _, _ := strings.Cut(rest, "-")
			attrs = append(attrs, slog.String("trace_id", id))
		}
		log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
	})
}

// countedWriter remembers the status and the size of an answer.
type countedWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader passes the status on.
func (w *countedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write passes bytes on.
func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController find the writer's other methods.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush is asked for by gRPC.
func (w *countedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }
