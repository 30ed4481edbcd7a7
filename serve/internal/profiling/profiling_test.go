package profiling

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Every profile comes in its format, one of the processor at a time, and what is asked
// for wrongly is refused.
func TestProfiles(t *testing.T) {
	hs := httptest.NewServer(Handler(func(*http.Request, inference.Scope) error { return nil }))
	defer hs.Close()
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get(hs.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, path := range Paths() {
		begins := "\x1f\x8b" // gzip, as pprof has it
		if strings.HasSuffix(path, "/trace") {
			begins = "go 1."
		}
		if code, text := get(path + "?seconds=0.01"); code != 200 || !strings.HasPrefix(text, begins) {
			t.Errorf("%s: %d %.20q", path, code, text)
		}
	}
	if code, text := get("/debug/pprof/goroutine?debug=1"); code != 200 || !strings.HasPrefix(text, "goroutine profile:") {
		t.Errorf("%d %.20q", code, text)
	}
	for path, want := range map[string]int{
		"/debug/pprof/nothing": 404, "/debug": 404, "/debug/pprof/profile?seconds=x": 400, "/debug/pprof/profile?seconds=-1": 400,
		"/debug/pprof/trace?seconds=1e9": 400, "/debug/pprof/heap?debug=-1": 400,
	} {
		if code, text := get(path); code != want || !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s: %d %q, want %d", path, code, text, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	codes := make(chan int)
	for _, path := range []string{"profile", "trace"} {
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, hs.URL+"/debug/pprof/"+path+"?seconds=60", nil)
			if err != nil {
				codes <- 0
				return
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				codes <- 0
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body) // one is given up
			resp.Body.Close()
			codes <- resp.StatusCode
		}()
	}
	if code := <-codes; code != 409 {
		t.Errorf("of two at once the first answer is %d", code)
	}
	cancel()
	<-codes
}
