package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// handler answers as paths say, with what it got.
func handler(w http.ResponseWriter, r *http.Request) {
	if r.Context().Value(http.ServerContextKey) == nil {
		w.Header().Set("Here", "yes") // net/http's requests have a server
	}
	switch r.URL.Path {
	case "/v2/unread":
	case "/v2/panic":
		panic("the handler panics")
	case "/v2/short":
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("short"))
		return
	case "/v2/nothing":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/v2/close":
		w.Header().Set("Connection", "close")
	case "/v2/large":
		w.Header().Set("Content-Length", "300000")
		for range 3 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 100000))
		}
		return
	case "/v2/pieces":
		w.Header().Set("Content-Length", "100000")
		w.Header().Set("Content-Type", "text/two\r\nlines: x")
		for range 1000 {
			_, _ = w.Write(bytes.Repeat([]byte("y"), 100))
		}
		return
	default:
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %v %q %v %d", r.Method, r.RequestURI, r.Host, r.Header, body, err, r.ContentLength)
		return
	}
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprint(w, "teapot")
}

// servers starts the server, and one of net/http beside it, with the same handler.
func servers(t testing.TB, h http.HandlerFunc, settings ...func(*http.Server)) (own *Server, addresses [2]string) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	quiet := log.New(io.Discard, "", 0)
	own = &Server{
		HTTP: &http.Server{Handler: h, Protocols: &protocols, ErrorLog: quiet, ReadTimeout: time.Minute, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute},
		Plain: func(path string) bool {
			if path == "/fault" {
				panic("a fault")
			}
			return strings.HasPrefix(path, "/v2")
		},
	}
	for _, set := range settings {
		set(own.HTTP)
	}
	other := &http.Server{Handler: h, Protocols: &protocols, ErrorLog: quiet}
	ended := make(chan error, 2)
	for i, serve := range []func(net.Listener) error{own.Serve, other.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = l.Addr().String()
		go func() { ended <- serve(l) }()
	}
	t.Cleanup(func() {
		own.Close()
		other.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("Serve returned %v", err)
			}
		}
	})
	return own, addresses
}

// exchange sends pieces over one connection and returns the answers, without what differs by nature,
// and how many of them were given here.
func exchange(t testing.TB, address string, pieces ...string) (answers []string, here int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for _, p := range pieces {
			if _, err := io.WriteString(conn, p); err != nil {
				return // refused: the answer says why
			}
			time.Sleep(3 * time.Millisecond)
		}
		closeWrite(conn)
	}()
	in := bufio.NewReader(conn)
	for {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers, here
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Header.Get("Here") != "" {
			here++
		}
		resp.Header.Del("Date")
		resp.Header.Del("Here")
		length := resp.ContentLength
		if length < 0 { // this server says the length where net/http sends chunks
			length = int64(len(body))
		}
		resp.Header.Del("Content-Length")
		answers = append(answers, fmt.Sprintf("%d %v %v %d %s %v", resp.StatusCode, resp.Header, resp.Close, length, body, err != nil))
	}
}

// TestLikeNetHTTP sends the same bytes to both servers.
func TestLikeNetHTTP(t *testing.T) {
	_, addresses := servers(t, handler)
	const host = "Host: a.example:80\r\n"
	get := "GET /v2/models HTTP/1.1\r\n" + host + "\r\n"
	post := "POST /v2/x HTTP/1.1\r\n" + host + "content-length: 5\r\nX-a:  b \r\nX-A: c\r\nConnection: keep-alive\r\n\r\nhello"
	for name, c := range map[string]struct {
		pieces []string
		here   int
	}{
		"get":                   {[]string{get}, 1},
		"post":                  {[]string{post}, 1},
		"delete":                {[]string{"DELETE /v2/x HTTP/1.1\r\n" + host + "\r\n"}, 1},
		"post without a length": {[]string{"POST /v2/x HTTP/1.1\r\n" + host + "\r\n"}, 1},
		"three in one piece":    {[]string{get + post + get}, 3},
		"one after the other":   {[]string{get, post, post, get}, 4},
		"the body later":        {[]string{post[:len(post)-5], "hel", "lo", get}, 2},
		"a head in pieces":      {[]string{get, post[:20], post[20:]}, 1},
		"one byte":              {[]string{get[:1], get[1:]}, 1},
		"the body ends":         {[]string{post[:len(post)-2]}, 1},
		"not plain":             {[]string{strings.Replace(get, "/v2", "/v1", 1), get}, 0},
		"then not plain":        {[]string{get, "GET / HTTP/1.1\r\n" + host + "\r\n", get}, 1},
		"chunked":               {[]string{"POST /v2/x HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}, 0},
		"chunked and a length":  {[]string{"POST /v2/x HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}, 0},
		"expect":                {[]string{"POST /v2/x HTTP/1.1\r\n" + host + "Content-Length: 5\r\nExpect: 200-ok\r\n\r\n", "hello"}, 0},
		"1.0":                   {[]string{strings.Replace(get, "1.1", "1.0", 1)}, 0},
		"connection: close":     {[]string{strings.Replace(get, host, host+"Connection: close\r\n", 1), get}, 0},
		"head":                  {[]string{strings.Replace(get, "GET", "HEAD", 1)}, 0},
		"two lengths":           {[]string{strings.Replace(post, "X-A: c", "Content-Length: 5", 1)}, 0},
		"two lengths, unlike":   {[]string{strings.Replace(post, "X-A: c", "Content-Length: 6", 1)}, 0},
		"a length that is none": {[]string{strings.Replace(post, "length: 5", "length: +5", 1)}, 0},
		"no host":               {[]string{strings.Replace(get, host, "", 1)}, 0},
		"two hosts":             {[]string{strings.Replace(get, host, host+host, 1)}, 0},
		"an odd host":           {[]string{strings.Replace(get, "a.example", "a/b", 1)}, 0},
		"a space before colon":  {[]string{strings.Replace(post, "X-a:", "X-a :", 1)}, 0},
		"a folded line":         {[]string{strings.Replace(post, "X-A: c", " c", 1)}, 0},
		"a bare newline":        {[]string{strings.Replace(post, "X-A: c\r\n", "X-A: c\n", 1)}, 0},
		"a control character":   {[]string{strings.Replace(post, "X-A: c", "X-A: \x01", 1)}, 0},
		"a query":               {[]string{strings.Replace(get, "models", "models?a=b", 1)}, 0},
		"an escape":             {[]string{strings.Replace(get, "models", "mo%64els", 1)}, 0},
		"a whole url":           {[]string{strings.Replace(get, "/v2", "http://b/v2", 1)}, 0},
		"nonsense":              {[]string{"nonsense\r\n\r\n"}, 0},
		"no version":            {[]string{"GET /v2/x\r\n\r\n"}, 0},
		"a long head":           {[]string{strings.Replace(get, host, host+"X-Long: "+strings.Repeat("l", 5000)+"\r\n", 1)}, 0},
		"unread":                {[]string{strings.Replace(post, "/x", "/unread", 1), get}, 2},
		"much unread":           {[]string{fmt.Sprintf("POST /v2/unread HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n", host, 1<<20)}, 1},
		"panic":                 {[]string{strings.Replace(get, "models", "panic", 1), get}, 0},
		"less than announced":   {[]string{strings.Replace(get, "models", "short", 1)}, 1},
		"no content":            {[]string{strings.Replace(get, "models", "nothing", 1), get}, 2},
		"the handler closes":    {[]string{strings.Replace(get, "models", "close", 1), get}, 1},
		"large":                 {[]string{strings.Replace(get, "models", "large", 1), get}, 2},
		"many pieces":           {[]string{strings.Replace(get, "models", "pieces", 1), get}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, _ := exchange(t, addresses[1], c.pieces...)
			got, here := exchange(t, addresses[0], c.pieces...)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got  %.600q\nwant %.600q", got, want)
			}
			if here != c.here {
				t.Errorf("%d answers were given here, not %d", here, c.here)
			}
		})
	}
}

// TestHTTP2 has a client of HTTP/2 without TLS served.
func TestHTTP2(t *testing.T) {
	_, addresses := servers(t, handler)
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &h2c}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://" + addresses[0] + "/v2/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Errorf("got %v", resp)
	}
}

// TestClientGoes cancels the request of a client that goes away, and of no other: neither one that
// sends its next request meanwhile.
func TestClientGoes(t *testing.T) {
	got := make(chan error, 1)
	begun := make(chan struct{}, 1)
	_, addresses := servers(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/v2/wait" {
			return
		}
		begun <- struct{}{}
		wait := 50 * time.Millisecond
		if r.Header.Get("Forever") != "" {
			wait = time.Minute
		}
		select {
		case <-r.Context().Done():
		case <-time.After(wait):
		}
		got <- r.Context().Err()
	})
	for _, body := range []string{"", "body"} {
		conn, err := net.Dial("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		request := func(header string) string {
			return fmt.Sprintf("POST /v2/wait HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
		}
		for range 3 {
			io.WriteString(conn, request(""))
			<-begun
			time.Sleep(4 * watchAfter) // someone looks by now
			io.WriteString(conn, "GET /v2/next HTTP/1.1\r\nHost: a\r\n\r\n")
			if err := <-got; err != nil {
				t.Errorf("the request ended with %v", err)
			}
			for range 2 {
				if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
					t.Fatalf("%v %v", resp, err)
				}
			}
		}
		io.WriteString(conn, request("Forever: yes\r\n"))
		<-begun
		conn.Close()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("the request of a client that went ended with %v", err)
		}
	}
}

// TestShutdown answers what is in flight, says that the connection ends, and ends those that are idle.
func TestShutdown(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	own, addresses := servers(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/wait" {
			close(begun)
			<-finish
		}
	})
	idle, err := net.Dial("tcp", addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	io.WriteString(idle, "GET /v2/x HTTP/1.1\r\nHost: a\r\n\r\n")
	in := bufio.NewReader(idle)
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	answered := make(chan []string)
	go func() {
		conn, err := net.Dial("tcp", addresses[0])
		if err != nil {
			answered <- nil
			return
		}
		defer conn.Close()
		io.WriteString(conn, "GET /v2/wait HTTP/1.1\r\nHost: a\r\n\r\n")
		all, _ := io.ReadAll(conn)
		answered <- strings.Split(string(all), "\r\n")
	}()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := own.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with a request in flight returned %v", err)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection ended with %v", err)
	}
	close(finish)
	if err := own.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-answered; len(got) == 0 || got[0] != "HTTP/1.1 200 OK" || !strings.Contains(strings.Join(got, "|"), "|Connection: close|") {
		t.Errorf("the request in flight got %q", got)
	}
	if conn, err := net.Dial("tcp", addresses[0]); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
}

// TestSlowClients ends connections that say nothing, or never the end of a head or of a body, and
// answers others meanwhile.
func TestSlowClients(t *testing.T) {
	_, addresses := servers(t, handler, func(s *http.Server) {
		s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = 30*time.Millisecond, 60*time.Millisecond, 30*time.Millisecond
	})
	const get = "GET /v2/x HTTP/1.1\r\nHost: a\r\n"
	var all []net.Conn
	for _, begin := range []string{"", "G", get, get + "\r\n", "POST /v2/x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbegin"} {
		for range 20 {
			conn, err := net.Dial("tcp", addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, begin); err != nil {
				t.Fatal(err)
			}
			all = append(all, conn)
		}
	}
	if got, _ := exchange(t, addresses[0], get+"\r\n"); len(got) != 1 {
		t.Errorf("beside slow clients one got %q", got)
	}
	for _, conn := range all {
		if _, err := io.Copy(io.Discard, conn); err != nil { // ends when the server closes it
			t.Error(err)
		}
	}
}

// TestPanicWhileReading ends a connection whose request cannot be read, and no other.
func TestPanicWhileReading(t *testing.T) {
	logged := make(lines, 1)
	_, addresses := servers(t, handler, func(s *http.Server) { s.ErrorLog = log.New(logged, "", 0) })
	for path, want := range map[string]string{"/fault": "", "/v2/x": "HTTP/1.1 200 OK\r\n"} {
		conn, err := net.Dial("tcp", addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		if line, _ := bufio.NewReader(conn).ReadString('\n'); line != want {
			t.Errorf("%s: the answer begins with %q", path, line)
		}
	}
	if text := <-logged; !strings.Contains(text, "panic reading requests of 127.0.0.1") || !strings.Contains(text, "a fault") {
		t.Errorf("the log has %q", text)
	}
}

// lines is what a log writes.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// FuzzHead holds what is read of a head against net/http's reading of it.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{
		"GET /v2/x HTTP/1.1\r\nHost: a\r\n\r\n", "POST /v2/a/b HTTP/1.1\r\nhost: [::1]:80\r\ncontent-length: 12\r\nx-y:z\r\n\r\n",
		"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nX: \t\r\n\r\n", "GET /v2//../x HTTP/1.1\r\nHost: _\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := strings.Index(text, "\r\n\r\n")
		if end < 0 {
			return
		}
		text = text[:end+4]
		got, ok := parse(text, func(path string) bool { return strings.HasPrefix(path, "/v2") })
		if !ok {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", text, err)
		}
		if got.Method != want.Method || got.URL.Path != want.URL.Path || got.RequestURI != want.RequestURI || got.Host != want.Host ||
			got.ContentLength != want.ContentLength || fmt.Sprint(got.Header) != fmt.Sprint(want.Header) || want.Close || want.TransferEncoding != nil {
			t.Errorf("%q: got %+v, net/http %+v", text, got, want)
		}
	})
}
