package http2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// errReset is what handlers get of streams that have been reset.
var errReset = errors.New("the stream was reset")

// stream is a request with its answer. Its connection's mu guards what the reader and the handler
// share.
type stream struct {
	conn    *conn
	id      uint32
	request *http.Request // nil if it is malformed
	cancel  context.CancelFunc
	whole   bool
	started bool  // the handler runs, or has run
	err     error // neither side wants more of it

	more     sync.Cond // of the body
	body     []byte    // received and not read are body[at:]
	at       int
	complete bool  // all of the body was received
	length   int64 // what it is to be; negative if nobody says
	received int64
	taken    int64       // of streamWindow
	read     int64       // what of it is to be given back
	late     error       // the body did not come in time
	timer    *time.Timer // ends the wait for the body
	awaited  bool        // nobody need set the timer
	expect   bool        // the client waits to be asked for the body

	answer
}

func newStream(c *conn, id uint32, f *http2.MetaHeadersFrame) *stream {
	s := &stream{conn: c, id: id, complete: f.StreamEnded(), length: -1}
	s.more.L = &c.mu
	s.answer = answer{stream: s, header: http.Header{}, window: c.initial}
	s.awaited = s.complete
	if !s.complete {
		c.unawaited++
	}
	h := c.head
	if h.request == nil || f.Truncated || !slices.Equal(h.fields, f.Fields) {
		var ok bool
		if h, ok = parse(f); !ok {
			return s
		}
		h.request.RemoteAddr = c.address
		if h.whole = c.server.Whole(h.request.URL.Path); h.whole {
			c.head = h
		}
	}
	if s.length = h.length; s.complete && s.length > 0 {
		return s
	}
	s.whole, s.expect = h.whole, h.expect
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.request = h.request.WithContext(ctx)
	if s.request.ContentLength = s.length; s.complete {
		s.request.ContentLength = 0
	} else {
		s.request.Body = (*body)(s)
	}
	return s
}

// head is what stands before the body of a request. That of the last request for a whole path, which
// is often the same, is not read again.
type head struct {
	fields  []hpack.HeaderField
	request *http.Request
	length  int64 // of the body; negative if nobody says
	expect  bool
	whole   bool
}

// parse returns the request of a head, whose fields the framer has found valid each by itself.
func parse(f *http2.MetaHeadersFrame) (h head, ok bool) {
	h.fields, h.length = f.Fields, -1
	path, authority := f.PseudoValue("path"), f.PseudoValue("authority")
	r := &http.Request{
		Method: f.PseudoValue("method"), Host: authority, RequestURI: path, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: make(http.Header, len(f.Fields)), Body: http.NoBody, ContentLength: -1,
	}
	if f.Truncated || r.Method == "" || r.Method == http.MethodConnect || f.PseudoValue("scheme") == "" || f.PseudoValue("protocol") != "" {
		return h, false
	}
	var err error
	if r.URL, err = url.ParseRequestURI(path); err != nil {
		return h, false
	}
	fields := f.RegularFields()
	values := make([]string, len(fields))
	for i, field := range fields {
		name := http.CanonicalHeaderKey(field.Name)
		if ofConnection(name) {
			return h, false
		}
		switch name {
		case "Te":
			if field.Value != "trailers" {
				return h, false
			}
		case "Content-Length":
			n, err := strconv.ParseUint(field.Value, 10, 62)
			if err != nil || h.length >= 0 {
				return h, false
			}
			h.length = int64(n)
		case "Host":
			if r.Host == "" {
				r.Host = field.Value
			}
		case "Trailer": // no handler reads trailers
			continue
		case "Expect":
			h.expect = field.Value == "100-continue"
			continue
		case "Cookie":
			if before := r.Header[name]; before != nil { // one field in HTTP/1.1
				before[0] += "; " + field.Value
				continue
			}
		}
		if before, ok := r.Header[name]; ok {
			r.Header[name] = append(before, field.Value)
			continue
		}
		values[i] = field.Value
		r.Header[name] = values[i : i+1 : i+1]
	}
	h.request = r
	return h, true
}

// endBody is told that all of the body was received. mu is held.
func (s *stream) endBody() {
	if s.length >= 0 && s.received != s.length {
		s.reset(http2.ErrCodeProtocol)
		return
	}
	s.complete = true
	s.stopWaiting()
	s.more.Signal()
}

func (s *stream) stopWaiting() {
	switch {
	case s.timer != nil:
		s.timer.Stop()
	case !s.awaited:
		s.conn.unawaited--
	}
	s.awaited = true
}

// awaitBodies bounds the time for bodies whose rest has to be waited for. mu is held.
func (c *conn) awaitBodies() {
	wait := c.server.HTTP.ReadTimeout
	if c.unawaited == 0 || wait <= 0 {
		return
	}
	for _, s := range c.streams {
		if !s.awaited {
			s.awaited, s.timer = true, time.AfterFunc(wait, s.tooLate)
			c.unawaited--
		}
	}
}

// tooLate ends the wait for the rest of the body.
func (s *stream) tooLate() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.complete || s.err != nil {
		return
	}
	if !s.started {
		s.reset(http2.ErrCodeCancel)
		s.conn.flush()
		return
	}
	s.late = os.ErrDeadlineExceeded
	s.more.Signal()
}

// reset ends the stream and tells the client so. mu is held.
func (s *stream) reset(code http2.ErrCode) {
	_ = s.conn.frames.WriteRSTStream(s.id, code)
	s.end(errReset)
}

// end ends the stream. mu is held.
func (s *stream) end(err error) {
	if s.err != nil {
		return
	}
	c := s.conn
	s.err = err
	if s.cancel != nil {
		s.cancel()
	}
	s.stopWaiting()
	delete(c.streams, s.id)
	c.giveBack(s.taken)
	s.taken, s.body, s.at = 0, nil, 0
	s.more.Signal()
	c.changed.Broadcast()
}

// giveBack lets the client send as much more as was read. mu is held.
func (s *stream) giveBack(n int64) {
	s.conn.giveBack(n)
	s.taken -= n
	if s.read += n; s.read >= streamWindow/4 && !s.complete {
		_ = s.conn.frames.WriteWindowUpdate(s.id, uint32(s.read))
		s.read = 0
	}
}

// body is what the handler reads.
type body stream

func (b *body) Read(p []byte) (int, error) {
	s := (*stream)(b)
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case s.err != nil:
			return 0, s.err
		case s.at < len(s.body):
			n := copy(p, s.body[s.at:])
			if s.at += n; s.at == len(s.body) {
				s.body, s.at = s.body[:0], 0
			}
			s.giveBack(int64(n))
			c.flush()
			return n, nil
		case s.complete:
			return 0, io.EOF
		case s.late != nil:
			return 0, s.late
		}
		if s.expect {
			s.expect = false
			s.writeContinue()
			continue
		}
		s.more.Wait()
	}
}

func (b *body) Close() error { return nil }

// run has the handler answer.
func (s *stream) run() {
	c := s.conn
	defer c.handlers.Done()
	defer s.cancel()
	ok := s.handle()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		s.finish()
	}
	if s.err == nil {
		if !ok {
			_ = c.frames.WriteRSTStream(s.id, http2.ErrCodeInternal)
		} else if !s.complete {
			_ = c.frames.WriteRSTStream(s.id, http2.ErrCodeNo)
		}
		s.end(errReset)
	}
	c.running-- // or the next request, which the client sends when it has this answer, is not alone
	c.flush()
	c.endIfDone()
}

// handle has the handler answer; false if it panicked.
func (s *stream) handle() (ok bool) {
	defer func() {
		if ok {
			return
		}
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			s.conn.server.logf("http: panic serving %s: %v\n%s", s.request.RemoteAddr, e, debug.Stack())
		}
	}()
	s.conn.server.HTTP.Handler.ServeHTTP(&s.answer, s.request)
	return true
}

// lower returns the name of a field as HTTP/2 has it.
func (c *conn) lower(name string) string {
	if l, ok := c.lowered[name]; ok {
		return l
	}
	l := strings.ToLower(name)
	if len(c.lowered) < 100 {
		c.lowered[name] = l
	}
	return l
}
