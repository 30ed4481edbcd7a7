package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

// TestTop shows a session that computes, through the address that `train digits --debug` serves.
func TestTop(t *testing.T) {
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	step := func() {
		t.Helper()
		x := s.With().FromSlice([]float32{1, 2, 3}, 3)
		if _, err := x.Add(x).Float32s(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	at, stop, err := serveReport("127.0.0.1:0", s.Report)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if code := command.Main(t.Context(), newRoot(), []string{"top", "http://" + at + "/debug/vars", "--count", "1"}, strings.NewReader(""), &out, &out); code != command.ExitOK {
		t.Errorf("code %d: %s", code, &out)
	}
	for _, want := range []string{"steps", "runs", "STAGE", "collect", "cpu:0", "compiled ", "first graph"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	f := topFlags{name: "loris"}
	before, err := f.look(t.Context(), "http://"+at+"/debug/vars")
	if err != nil {
		t.Fatal(err)
	}
	step()
	step()
	after, err := f.look(t.Context(), "http://"+at+"/debug/vars")
	if err != nil {
		t.Fatal(err)
	}
	after.at = before.at.Add(2 * time.Second)
	out.Reset()
	if err := after.print(&out, "", before); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out.String()[strings.Index(out.String(), "steps"):]); got[1] != "3" || got[2] != "1.0" {
		t.Errorf("steps %s, %s a second, want 3 and 1.0", got[1], got[2])
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestTopErrors(t *testing.T) {
	bodies := map[string]string{
		"/other": `{"cmdline":["x"],"memstats":{}}`,
		"/text":  "hello",
		"/wrong": `{"loris":{"Steps":"many"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	for path, want := range map[string]string{
		"/other": `no variable "loris" among cmdline, memstats`,
		"/text":  "expected the variables of expvar",
		"/wrong": "not the report of a session",
		"/none":  "404",
	} {
		f := topFlags{name: "loris", interval: time.Millisecond}
		if err := f.run(t.Context(), server.URL+path, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	server.Close()
	f := topFlags{name: "loris", interval: time.Millisecond}
	if err := f.run(t.Context(), server.URL, io.Discard); err == nil || !strings.Contains(err.Error(), "loris top --help") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.run(ctx, server.URL, io.Discard); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
