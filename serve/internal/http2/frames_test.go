package http2

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// handler answers as paths say, with what it got.
func handler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/unread":
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "teapot")
	case "/panic":
		panic("the handler panics")
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
	case "/large":
		w.Header().Set("Content-Length", "300000")
		for range 3 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 100000))
		}
	case "/trailers":
		w.Header().Set("Trailer", "X-Announced")
		fmt.Fprint(w, "body")
		w.Header().Set("X-Announced", "a")
		w.Header().Set(http.TrailerPrefix+"X-Late", "b")
	case "/only-trailers":
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "5")
	case "/pieces":
		for range 3 {
			fmt.Fprint(w, "piece")
			_ = http.NewResponseController(w).Flush()
		}
	case "/echo":
		_ = http.NewResponseController(w).Flush()
		p := make([]byte, 1000)
		for {
			n, err := r.Body.Read(p)
			_, _ = w.Write(p[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	case "/head":
		w.Header().Set("X-Long", strings.Repeat("h", 40000))
		w.Header().Set("Bad Name", "x")
		w.Header().Set("X-Bad", "a\nb")
		w.Header().Set("Date", "today")
	default:
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %v %.60q %d %v %d", r.Method, r.RequestURI, r.Host, r.Header, body, len(body), err, r.ContentLength)
	}
}

// servers starts the server, and one of net/http beside it, with the same handler.
func servers(t testing.TB, h http.HandlerFunc, settings ...func(*http.Server)) (own *Server, addresses [2]string) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	quiet := log.New(io.Discard, "", 0)
	own = &Server{
		HTTP: &http.Server{Handler: h, ErrorLog: quiet, ReadTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10},
		Whole: func(path string) bool {
			if path == "/fault" {
				panic("a fault")
			}
			return strings.HasPrefix(path, "/whole")
		},
	}
	for _, set := range settings {
		set(own.HTTP)
	}
	other := &http.Server{Handler: h, Protocols: &protocols, ErrorLog: quiet, MaxHeaderBytes: 64 << 10}
	var running sync.WaitGroup
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], addresses[i] = l, l.Addr().String()
	}
	running.Go(func() {
		for {
			c, err := listeners[0].Accept()
			if err != nil {
				return
			}
			running.Go(func() { own.Serve(c, nil) })
		}
	})
	running.Go(func() { _ = other.Serve(listeners[1]) })
	t.Cleanup(func() {
		own.Stop()
		_ = listeners[0].Close()
		_ = other.Close()
		running.Wait()
	})
	return own, addresses
}

// client writes frames and notes what comes.
type client struct {
	net.Conn
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder

	silent bool // settings are not acknowledged
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &client{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.AllowIllegalWrites = true
	c.enc = hpack.NewEncoder(&c.block)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	return c
}

func (c *client) fields(pairs ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

// head begins a stream.
func (c *client) head(id uint32, end bool, method, path string, more ...string) {
	block := c.fields(append([]string{":method", method, ":scheme", "http", ":path", path, ":authority", "a.example"}, more...)...)
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: end, EndHeaders: true})
}

// answers reads until the connection ends or all streams that are awaited have ended, and returns what
// came by stream; 0 is the connection's end.
func (c *client) answers(awaited int) map[uint32]string {
	got := map[uint32]string{}
	body := map[uint32]int{}
	for ended := 0; ended < awaited; {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		f, err := c.ReadFrame()
		if err != nil {
			if got[0] == "" {
				got[0] = "end"
			}
			break
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			fields := map[string]string{}
			for _, h := range f.Fields {
				if h.Name != "date" || h.Value == "today" {
					fields[h.Name] += h.Value
				}
			}
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				got[id] += fmt.Sprintf("%s=%.1500s;", name, fields[name])
			}
		case *http2.DataFrame:
			body[id] += len(f.Data())
			if body[id] <= 2000 {
				got[id] += string(f.Data())
			}
			_ = c.WriteWindowUpdate(0, max(uint32(len(f.Data())), 1))
		case *http2.RSTStreamFrame:
			got[id] += fmt.Sprintf(" reset %v", f.ErrCode)
			ended++
			continue
		case *http2.GoAwayFrame:
			got[0] += fmt.Sprintf("%v", f.ErrCode)
		case *http2.PingFrame:
			got[0] += fmt.Sprintf("ping %v %s ", f.IsAck(), f.Data)
		case *http2.SettingsFrame:
			if !f.IsAck() && !c.silent {
				_ = c.WriteSettingsAck()
			}
		}
		if f.Header().Flags.Has(http2.FlagDataEndStream) && (f.Header().Type == http2.FrameData || f.Header().Type == http2.FrameHeaders) {
			got[id] += fmt.Sprintf(" %d bytes, end", body[id])
			ended++
		}
	}
	return got
}

// TestLikeNetHTTP sends the same frames to both servers.
func TestLikeNetHTTP(t *testing.T) {
	_, addresses := servers(t, handler)
	hello := []byte("hello")
	setting := func(id http2.SettingID, v uint32) http2.Setting { return http2.Setting{ID: id, Val: v} }
	for name, test := range map[string]struct {
		awaited int
		send    func(c *client)
		own     string // what becomes of the first stream here, where net/http has the handler or itself say what is wrong
	}{
		"get":       {1, func(c *client) { c.head(1, true, "GET", "/x?a=b", "x-a", "1", "x-a", "2") }, ""},
		"get whole": {1, func(c *client) { c.head(1, true, "GET", "/whole") }, ""},
		"post":      {1, func(c *client) { c.head(1, false, "POST", "/x", "content-length", "5"); c.WriteData(1, true, hello) }, ""},
		"post whole": {2, func(c *client) {
			c.head(1, false, "POST", "/whole")
			c.WriteData(1, true, hello)
			c.head(3, false, "POST", "/whole", "cookie", "a=b", "cookie", "c=d")
			c.WriteData(3, false, hello)
			c.WriteData(3, true, hello)
		}, ""},
		"pieces": {1, func(c *client) {
			c.head(1, false, "POST", "/whole")
			c.WriteData(1, false, hello)
			time.Sleep(5 * time.Millisecond)
			c.WriteDataPadded(1, false, hello, make([]byte, 100))
			c.WriteData(1, true, nil)
		}, ""},
		"interleaved": {3, func(c *client) {
			c.head(1, false, "POST", "/echo")
			c.head(3, false, "POST", "/whole/3")
			c.head(5, true, "GET", "/whole/5")
			c.WriteData(3, false, hello)
			c.WriteData(1, true, hello)
			c.WriteData(3, true, hello)
		}, ""},
		"trailers of a request": {1, func(c *client) {
			c.head(1, false, "POST", "/whole", "trailer", "x-a")
			c.WriteData(1, false, hello)
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields("x-a", "b"), EndStream: true, EndHeaders: true})
		}, ""},
		"continuation": {1, func(c *client) {
			block := c.fields(":method", "GET", ":scheme", "http", ":path", "/x", ":authority", "a", "x-long", strings.Repeat("l", 300))
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:10], EndStream: true})
			c.WriteContinuation(1, false, block[10:20])
			c.WriteContinuation(1, true, block[20:])
		}, ""},
		"a frame within a head": {1, func(c *client) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(":method", "GET")})
			c.WritePing(false, [8]byte{})
		}, ""},
		"host, no authority": {1, func(c *client) { headers(c, 1, ":method", "GET", ":scheme", "http", ":path", "/x", "host", "b") }, ""},
		"priority":           {1, func(c *client) { c.WritePriority(1, http2.PriorityParam{StreamDep: 3}); c.head(1, true, "GET", "/x") }, ""},
		"ping": {1, func(c *client) {
			c.WritePing(false, [8]byte{'p'})
			c.WritePing(true, [8]byte{'q'})
			c.head(1, true, "GET", "/x")
		}, ""},
		"an odd ping":      {1, func(c *client) { c.WriteRawFrame(http2.FramePing, 0, 0, hello) }, ""},
		"unknown frames":   {1, func(c *client) { c.WriteRawFrame(99, 0, 7, hello); c.head(1, true, "GET", "/x") }, ""},
		"a frame too long": {1, func(c *client) { c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<21)) }, ""},
		"unread": {2, func(c *client) {
			c.head(1, false, "POST", "/unread")
			time.Sleep(20 * time.Millisecond)
			c.WriteData(1, false, hello)
			c.WriteData(1, true, hello)
			c.head(3, true, "GET", "/x")
		}, ""},
		"panic":      {2, func(c *client) { c.head(1, true, "GET", "/panic"); c.head(3, true, "GET", "/x") }, ""},
		"no content": {1, func(c *client) { c.head(1, true, "GET", "/nothing") }, ""},
		"HEAD":       {1, func(c *client) { c.head(1, true, "HEAD", "/unread") }, ""},
		"large":      {1, func(c *client) { c.head(1, true, "GET", "/large"); c.WriteWindowUpdate(1, 1<<20) }, ""},
		"large, a window late": {1, func(c *client) {
			c.head(1, true, "GET", "/large")
			time.Sleep(10 * time.Millisecond)
			c.WriteWindowUpdate(1, 1000)
			c.WriteWindowUpdate(1, 1<<20)
		}, ""},
		"small windows": {1, func(c *client) {
			c.WriteSettings(setting(http2.SettingInitialWindowSize, 3))
			c.head(1, true, "GET", "/whole/x")
			time.Sleep(5 * time.Millisecond)
			c.WriteWindowUpdate(1, 4)
			c.WriteSettings(setting(http2.SettingInitialWindowSize, 1000))
		}, ""},
		"no tables": {2, func(c *client) {
			c.WriteSettings(setting(http2.SettingHeaderTableSize, 0))
			c.head(1, true, "GET", "/x")
			c.head(3, true, "GET", "/x")
		}, ""},
		"trailers":      {1, func(c *client) { c.head(1, true, "GET", "/trailers") }, ""},
		"only trailers": {1, func(c *client) { c.head(1, true, "GET", "/only-trailers") }, ""},
		"flushes":       {1, func(c *client) { c.head(1, true, "GET", "/pieces") }, ""},
		"a long head":   {1, func(c *client) { c.head(1, true, "GET", "/head") }, ""},
		"reset": {1, func(c *client) {
			c.head(1, false, "POST", "/x")
			c.WriteRSTStream(1, http2.ErrCodeCancel)
			c.head(3, true, "GET", "/x")
		}, ""},
		"reset of none":     {1, func(c *client) { c.WriteRSTStream(1, http2.ErrCodeCancel) }, ""},
		"data of none":      {1, func(c *client) { c.WriteData(1, true, hello) }, ""},
		"window of none":    {1, func(c *client) { c.WriteWindowUpdate(5, 1) }, ""},
		"window of zero":    {1, func(c *client) { c.head(1, false, "POST", "/x"); c.WriteWindowUpdate(1, 0) }, ""},
		"windows too large": {1, func(c *client) { c.WriteWindowUpdate(0, 1<<31-1) }, ""},
		"window too large":  {1, func(c *client) { c.head(1, false, "POST", "/x"); c.WriteWindowUpdate(1, 1<<31-1) }, ""},
		"even":              {1, func(c *client) { c.head(2, true, "GET", "/x") }, ""},
		"backwards": {2, func(c *client) {
			c.head(3, true, "GET", "/x")
			time.Sleep(50 * time.Millisecond)
			c.head(1, true, "GET", "/x")
		}, ""},
		"push": {1, func(c *client) {
			c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, ""},
		"data behind the end": {1, func(c *client) {
			c.head(1, false, "POST", "/wait")
			c.WriteData(1, false, hello)
			c.WriteData(1, true, hello)
		}, ""},
		"upper case":         {1, func(c *client) { c.head(1, true, "GET", "/x", "X-Upper", "a") }, ""},
		"a bad value":        {1, func(c *client) { c.head(1, true, "GET", "/x", "x", "a\x00") }, ""},
		"connection":         {1, func(c *client) { c.head(1, true, "GET", "/x", "connection", "close") }, " reset PROTOCOL_ERROR"},
		"te":                 {1, func(c *client) { c.head(1, true, "GET", "/x", "te", "trailers") }, ""},
		"te, another":        {1, func(c *client) { c.head(1, true, "GET", "/x", "te", "gzip") }, " reset PROTOCOL_ERROR"},
		"no fields":          {1, func(c *client) { headers(c, 1) }, ""},
		"no method":          {1, func(c *client) { headers(c, 1, ":scheme", "http", ":path", "/x") }, ""},
		"no path":            {1, func(c *client) { headers(c, 1, ":method", "GET", ":scheme", "http") }, ""},
		"two methods":        {1, func(c *client) { headers(c, 1, ":method", "GET", ":method", "GET", ":scheme", "http", ":path", "/x") }, ""},
		"pseudo fields late": {1, func(c *client) { headers(c, 1, ":method", "GET", ":scheme", "http", "x", "y", ":path", "/x") }, ""},
		"pseudo of answers":  {1, func(c *client) { c.head(1, true, "GET", "/x", ":status", "200") }, ""},
		"nonsense in HPACK": {1, func(c *client) {
			c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}, ""},
		"settings, wrong":      {1, func(c *client) { c.WriteSettings(setting(http2.SettingInitialWindowSize, 1<<31)) }, ""},
		"settings, a length":   {1, func(c *client) { c.WriteRawFrame(http2.FrameSettings, 0, 0, hello) }, ""},
		"settings of a stream": {1, func(c *client) { c.WriteRawFrame(http2.FrameSettings, 0, 1, nil) }, ""},
		"too long a body": {1, func(c *client) {
			c.head(1, false, "POST", "/whole", "content-length", "3")
			c.WriteData(1, true, hello)
		}, ""},
		"too short a body": {1, func(c *client) {
			c.head(1, false, "POST", "/whole", "content-length", "9")
			c.WriteData(1, true, hello)
		}, " reset PROTOCOL_ERROR"},
		"expect": {1, func(c *client) {
			c.head(1, false, "POST", "/x", "expect", "100-continue")
			time.Sleep(10 * time.Millisecond)
			c.WriteData(1, true, hello)
		}, ""},
		"padding too long": {1, func(c *client) {
			c.head(1, false, "POST", "/x")
			c.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{9, 1})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [2]map[uint32]string
			for i, address := range addresses {
				c := dial(t, address)
				_ = c.WriteSettings()
				test.send(c)
				got[i] = c.answers(test.awaited)
				_ = c.Close()
			}
			if test.own != "" {
				got[1][1] = test.own
			}
			if !maps.Equal(got[0], got[1]) {
				t.Errorf("got  %v\nwant %v", got[0], got[1])
			}
		})
	}
}

func headers(c *client, id uint32, pairs ...string) {
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(pairs...), EndStream: true, EndHeaders: true})
}
