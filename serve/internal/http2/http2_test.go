package http2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// transport is net/http's client over one server.
func transport(t testing.TB) *http.Client {
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &h2c}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestBodies sends bodies larger than the windows, many at once over one connection, and reads answers
// that are as large.
func TestBodies(t *testing.T) {
	_, addresses := servers(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/whole") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(err)
			}
			_, _ = w.Write(body)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	cl := transport(t)
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + g)}, 1+g*150_000)
			resp, err := cl.Post("http://"+addresses[0]+[]string{"/whole", "/stream"}[g%2], "", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes came back of %d: %v", len(got), len(body), err)
			}
		})
	}
	wg.Wait()
}

// TestDuplex answers while the request comes.
func TestDuplex(t *testing.T) {
	_, addresses := servers(t, handler)
	in, out := io.Pipe()
	r, err := http.NewRequest(http.MethodPost, "http://"+addresses[0]+"/echo", in)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	p := make([]byte, 5)
	for i := range 20 {
		word := fmt.Sprintf("%05d", i)
		_, _ = io.WriteString(out, word)
		if _, err := io.ReadFull(resp.Body, p); err != nil || string(p) != word {
			t.Fatalf("%q came back of %q: %v", p, word, err)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q behind the end: %v", rest, err)
	}
}

// TestClientGoes cancels the requests of a client that resets them, or goes away, while a handler runs
// where the connection is read.
func TestClientGoes(t *testing.T) {
	begun, got := make(chan struct{}, 1), make(chan error, 1)
	_, addresses := servers(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/whole/wait" {
			return
		}
		begun <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		got <- r.Context().Err()
	})
	for name, end := range map[string]func(c *client){
		"reset": func(c *client) { _ = c.WriteRSTStream(1, http2.ErrCodeCancel) },
		"gone":  func(c *client) { _ = c.Close() },
	} {
		c := dial(t, addresses[0])
		_ = c.WriteSettings()
		c.head(1, true, "GET", "/whole/wait")
		<-begun
		end(c)
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the request ended with %v", name, err)
		}
		if name == "reset" {
			c.head(3, true, "GET", "/whole/next")
			if all := c.answers(1); !strings.Contains(all[3], ":status=200") {
				t.Errorf("the next request got %v", all)
			}
		}
	}
}

// TestAtOnce has a request answered while another of the connection runs, whichever came first.
func TestAtOnce(t *testing.T) {
	release := make(chan struct{})
	_, addresses := servers(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/whole/wait" {
			<-release
		}
	})
	c := dial(t, addresses[0])
	_ = c.WriteSettings()
	for id := uint32(1); id < 300; id += 4 {
		c.head(id, true, "GET", "/whole/wait")
		time.Sleep(100 * time.Microsecond)
		c.head(id+2, true, "GET", "/whole")
		if all := c.answers(1); all[id+2] == "" {
			t.Fatalf("got %v", all)
		}
		release <- struct{}{}
		if all := c.answers(1); all[id] == "" {
			t.Fatalf("got %v", all)
		}
	}
}

// TestStop answers what is in flight and what is on its way, and says that the connection ends.
func TestStop(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	own, addresses := servers(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/whole/wait" {
			close(begun)
			<-finish
		}
	})
	idle, c := dial(t, addresses[0]), dial(t, addresses[0])
	_ = idle.WriteSettings()
	_ = c.WriteSettings()
	c.head(1, true, "GET", "/whole/wait")
	<-begun
	own.Stop()
	c.head(3, true, "GET", "/whole")
	time.AfterFunc(2*lastRequests, func() { close(finish) })
	all := c.answers(3)
	if !strings.Contains(all[1], "end") || !strings.Contains(all[3], "end") || all[0] != "NO_ERRORNO_ERROR" {
		t.Errorf("got %v", all)
	}
	if all := idle.answers(1); all[0] != "NO_ERRORNO_ERROR" {
		t.Errorf("the idle connection got %v", all)
	}
}

// TestSlowClients ends connections that say nothing, and requests whose body does not come.
func TestSlowClients(t *testing.T) {
	_, addresses := servers(t, handler, func(s *http.Server) {
		s.ReadTimeout, s.IdleTimeout = 60*time.Millisecond, 150*time.Millisecond
	})
	for name, begin := range map[string]func(c *client){
		"nothing":      func(c *client) {},
		"settings":     func(c *client) { _ = c.WriteSettings() },
		"half a frame": func(c *client) { c.silent = true; _, _ = c.Write([]byte{0, 0}) },
		"whole": func(c *client) {
			_ = c.WriteSettings()
			c.head(1, false, "POST", "/whole")
			_ = c.WriteData(1, false, []byte("begin"))
		},
		"stream": func(c *client) { _ = c.WriteSettings(); c.head(1, false, "POST", "/x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, addresses[0])
			begin(c)
			all := c.answers(1 << 30)
			if all[0] != "end" {
				t.Errorf("got %v", all)
			}
			want := map[string]string{"whole": "reset CANCEL", "stream": "i/o timeout"}[name]
			if !strings.Contains(all[1], want) {
				t.Errorf("the request got %q", all[1])
			}
		})
	}
}

// TestTooMany refuses the streams beyond the number that was announced, and goes on.
func TestTooMany(t *testing.T) {
	release := make(chan struct{})
	_, addresses := servers(t, func(http.ResponseWriter, *http.Request) { <-release })
	c := dial(t, addresses[0])
	_ = c.WriteSettings()
	for i := range uint32(maxStreams + 10) {
		c.head(2*i+1, true, "GET", "/x")
	}
	refused := c.answers(10)
	for id, text := range refused {
		if id < 2*maxStreams || text != " reset REFUSED_STREAM" {
			t.Errorf("stream %d: %q", id, text)
		}
	}
	// One that is reset counts until its handler has returned.
	_ = c.WriteRSTStream(1, http2.ErrCodeCancel)
	c.head(2*maxStreams+101, true, "GET", "/x")
	if all := c.answers(1); all[2*maxStreams+101] != " reset REFUSED_STREAM" {
		t.Errorf("got %v", all)
	}
	close(release)
	if all := c.answers(maxStreams - 1); len(all) != maxStreams-1 {
		t.Errorf("%d answers", len(all))
	}
}

// TestPanicWhileReading ends a connection whose frames cannot be handled, and no other.
func TestPanicWhileReading(t *testing.T) {
	logged := make(lines, 1)
	_, addresses := servers(t, handler, func(s *http.Server) { s.ErrorLog = log.New(logged, "", 0) })
	c := dial(t, addresses[0])
	_ = c.WriteSettings()
	c.head(1, true, "GET", "/fault")
	if got := c.answers(1); got[0] != "INTERNAL_ERROR" {
		t.Errorf("it ended with %v", got)
	}
	if text := <-logged; !strings.Contains(text, "panic reading frames of 127.0.0.1") || !strings.Contains(text, "a fault") {
		t.Errorf("the log has %q", text)
	}
	c = dial(t, addresses[0])
	_ = c.WriteSettings()
	c.head(1, true, "GET", "/x")
	if got := c.answers(1); !strings.Contains(got[1], ":status=200") {
		t.Errorf("the next connection got %v", got)
	}
}

// FuzzFrames sends bytes behind the preface, and then no more: nothing that comes ends the process, and
// the connection ends.
func FuzzFrames(f *testing.F) {
	c := &client{}
	for _, send := range []func(){
		func() { c.head(1, true, "GET", "/x") },
		func() { headers(c, 1) },
		func() { c.head(1, false, "POST", "/whole"); _ = c.WriteData(1, true, []byte("hello")) },
		func() {
			c.head(1, false, "POST", "/echo")
			_ = c.WriteDataPadded(1, true, []byte("hello"), make([]byte, 7))
			_ = c.WritePing(false, [8]byte{})
		},
		func() {
			c.head(3, true, "GET", "/large")
			_ = c.WriteWindowUpdate(3, 1<<20)
			_ = c.WriteRSTStream(3, 8)
		},
	} {
		var out bytes.Buffer
		c.Framer, c.enc = http2.NewFramer(&out, nil), hpack.NewEncoder(&c.block)
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		send()
		f.Add(out.Bytes())
	}
	_, addresses := servers(f, handler, func(s *http.Server) { s.ErrorLog = log.New(panics{}, "", 0) })
	f.Fuzz(func(t *testing.T, text []byte) {
		c := dial(t, addresses[0])
		defer c.Close()
		_, _ = c.Write(text) // fails where the server has refused it already
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays open", text)
		}
	})
}

// lines is what a log writes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// panics ends the process where a log tells of a panic.
type panics struct{}

func (panics) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panic reading")) {
		panic(string(p))
	}
	return len(p), nil
}
