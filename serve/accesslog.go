package serve

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/loris-ml/loris/serve/internal/answer"
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
		counted := &answer.Writer{ResponseWriter: w}
		h.ServeHTTP(counted, r)
		attrs := []slog.Attr{
			slog.String("id", id), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", counted.Status()),
			slog.Int64("in", r.ContentLength), slog.Int64("out", counted.Bytes), slog.Duration("took", time.Since(begin)), slog.String("from", r.RemoteAddr),
		}
		if _, rest, traced := strings.Cut(w.Header().Get("Traceresponse"), "-"); traced {
			id, _, _ := strings.Cut(rest, "-")
			attrs = append(attrs, slog.String("trace_id", id))
		}
		log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
	})
}
