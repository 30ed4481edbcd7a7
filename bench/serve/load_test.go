package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/serve"
)

var errWrong = errors.New("wrong")

// TestLoops holds what loops count against what was called.
func TestLoops(t *testing.T) {
	for name, load := range map[string]func(caller) *measured{
		"closed": func(c caller) *measured { return closedLoop(t.Context(), c, 4, 20*time.Millisecond) },
		"open":   func(c caller) *measured { return openLoop(t.Context(), c, 2000, 20*time.Millisecond) },
	} {
		var n, failed atomic.Int64
		m := load(func(context.Context, int) error {
			if n.Add(1)%3 == 0 {
				failed.Add(1)
				return errWrong
			}
			return nil
		})
		if m.Requests+m.Failed != int(n.Load()) || m.Failed != int(failed.Load()) || m.Requests == 0 || m.err != errWrong && m.Failed > 0 {
			t.Errorf("%s: counted %d and %d failed of %d and %d", name, m.Requests, m.Failed, n.Load(), failed.Load())
		}
		if m.P50 > m.P99 || m.P99 > m.Max {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// 40 requests are due, however long the first ones take.
	begun := make(chan struct{}, 100)
	release := make(chan struct{})
	go func() {
		for range 40 {
			<-begun
		}
		close(release)
	}()
	m := openLoop(t.Context(), func(context.Context, int) error { begun <- struct{}{}; <-release; return nil }, 2000, 20*time.Millisecond)
	if m.Requests != 40 {
		t.Errorf("%d requests were sent while none was answered, want 40", m.Requests)
	}
}

func TestSummary(t *testing.T) {
	var one, two times
	for i := range 50 {
		one.add(time.Duration(2*i), nil)
		two.add(time.Duration(2*i+1), nil)
	}
	two.add(0, errWrong)
	m := summary([]times{one, two}, time.Second)
	if m.Requests != 100 || m.Failed != 1 || m.P50 != 50 || m.P99 != 99 || m.Max != 99 || m.Rate != 100 || m.err != errWrong {
		t.Errorf("%+v", m)
	}
}

// TestModel calls a served package and compares its answers with those that it has, and with wrong ones.
func TestModel(t *testing.T) {
	m, err := openModel("../../aoti/testdata", "mlp")
	if err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(serve.Options{Files: []string{m.file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); errors.Is(err, aoti.ErrNoLibraries) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewUnstartedServer(s)
	hs.Config.Protocols = new(http.Protocols)
	hs.Config.Protocols.SetHTTP1(true)
	hs.Config.Protocols.SetUnencryptedHTTP2(true)
	hs.Start()
	defer hs.Close()
	for _, scheme := range []string{"http://", "grpc://"} {
		c, call, err := infers(scheme+strings.TrimPrefix(hs.URL, "http://"), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := call(t.Context(), 0); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		m.want[3]++
		if err := call(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "element 3") {
			t.Errorf("%s: a wrong answer gave %v", scheme, err)
		}
		m.want[3]--
		c.Close()
	}
	w, err := wireREST(hs.URL, m)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second on the same connection
		if err := w(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	m.want[3]++
	if err := w(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "element 3") {
		t.Errorf("a wrong answer gave %v", err)
	}
	m.want[3]--
	m.name = "none"
	if w, err = wireREST(hs.URL, m); err != nil {
		t.Fatal(err)
	}
	if err := w(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a model that is not there gave %v", err)
	}
}

// TestEcho holds that the server of the comparison gives the answers of the one that it repeats.
func TestEcho(t *testing.T) {
	var asked atomic.Int64
	of := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("X-Path", r.URL.Path)
		w.Header().Set(http.TrailerPrefix+"X-End", "yes")
		_, _ = io.Copy(w, r.Body)
	}))
	defer of.Close()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- echo(ctx, []string{host, strings.TrimPrefix(of.URL, "http://")}) }()
	for i := 0; i < 3; {
		resp, err := http.Post("http://"+host+"/a/b", "", strings.NewReader("hello"))
		if err != nil { // it does not listen yet
			time.Sleep(time.Millisecond)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "hello" || resp.Header.Get("X-Path") != "/a/b" || resp.Trailer.Get("X-End") != "yes" {
			t.Errorf("answer %d: %q, %v, %v, %v", i, body, resp.Header, resp.Trailer, err)
		}
		i++
	}
	if asked.Load() != 1 {
		t.Errorf("the other server was asked %d times", asked.Load())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	rows := []row{
		{Model: "mlp", System: "loris", Protocol: "REST", Workers: 4, measured: measured{Requests: 10, Rate: 1234.4, P50: 56_700, P99: 2_340_000}},
		{Model: "mlp", System: "peer", Protocol: "gRPC", Workers: 4, measured: measured{Requests: 10, Failed: 2, Rate: 100, P50: 56_700_000, P99: 2_340_000_000}},
		{Model: "mlp", System: "loris", Protocol: "REST", Due: 50, measured: measured{Rate: 50}},
	}
	var b strings.Builder
	printTable(&b, rows)
	const want = `| model | load | loris REST | peer gRPC |
|---|---|--:|--:|
| mlp | closed, 4 | 1234/s 56µs 2.34ms | 100/s 57ms 2.3s (2 failed) |
| mlp | open, 50/s | 50/s 0µs 0µs | – |
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if due := halfOfPeers(rows); due != 50 {
		t.Errorf("half of the peers' rate is %v", due)
	}
}
