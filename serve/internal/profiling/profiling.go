// Package profiling answers with profiles of the process, as `go tool pprof` and `go tool
// trace` read them. Unlike net/http/pprof it adds nothing to the default ServeMux of a
// program that imports the server.
package profiling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/rest"
)

// Paths are those that the Handler answers, for tests of the rules of access.
func Paths() []string {
	all := []string{"/debug/pprof/profile", "/debug/pprof/trace"}
	for _, name := range []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		all = append(all, "/debug/pprof/"+name)
	}
	return all
}

// maxSeconds bounds how long a profile goes on.
const maxSeconds = 300

// Handler answers requests for profiles of who may use the scope profiling.
func Handler(allow func(*http.Request, inference.Scope) error) http.Handler {
	mux := http.NewServeMux()
	var busy sync.Mutex // one profile of the processor, or one trace, at a time
	over := func(seconds string, start func(io.Writer) error, stop func()) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text := r.FormValue("seconds")
			if text == "" {
				text = seconds
			}
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n > 0 && n <= maxSeconds) {
				rest.WriteError(w, inference.Errorf(inference.InvalidArgument, "seconds: expected a number up to %d, got %q", maxSeconds, text))
				return
			}
			if !busy.TryLock() {
				rest.WriteError(w, inference.Errorf(inference.Conflict, "another profile is being taken"))
				return
			}
			defer busy.Unlock()
			begin(w)
			if err := start(w); err != nil {
				w.Header().Del("Content-Disposition")
				rest.WriteError(w, inference.Errorf(inference.Conflict, "%w", err))
				return
			}
			defer stop()
			wait(r.Context(), time.Duration(n*float64(time.Second)))
		}
	}
	mux.HandleFunc("GET /debug/pprof/profile", over("30", pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", over("1", trace.Start, trace.Stop))
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			rest.WriteError(w, inference.Errorf(inference.NotFound, "there is no profile %q", r.PathValue("name")))
			return
		}
		debug, err := strconv.Atoi(r.FormValue("debug"))
		if err != nil && !errors.Is(err, strconv.ErrSyntax) || debug < 0 {
			rest.WriteError(w, inference.Errorf(inference.InvalidArgument, "debug: expected a small number, got %q", r.FormValue("debug")))
			return
		}
		begin(w)
		if debug > 0 {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Del("Content-Disposition")
		}
		_ = p.WriteTo(w, debug) // fails if the client is gone
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := allow(r, inference.ScopeProfiling); err != nil {
			rest.WriteError(w, err)
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			rest.WriteError(w, inference.Errorf(inference.NotFound, "there is nothing at %s; profiles are below /debug/pprof", r.URL.Path))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "profile"))
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
