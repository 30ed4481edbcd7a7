package http1

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// headRoom is how long a head may be that is answered here.
	headRoom = 4096
	// watchAfter is how long a request takes before anybody looks whether its client is still there.
	watchAfter = 5 * time.Millisecond
	// maxDiscard bounds what is read of a body that the handler has left.
	maxDiscard = 256 << 10
)

// conn is a connection whose requests so far were plain.
type conn struct {
	net.Conn
	server   *Server
	others   *handover
	buffer   []byte // read and not yet used are buffer[from:to]
	from, to int
	deadline time.Time // until when Read waits
	head     head
	left     int64 // what is not yet read of the body
	answer   answer

	// For the end of a request whose client goes away.
	timer *time.Timer
	mu    sync.Mutex
	ended sync.Cond
	// idle says that it waits for a request, answering that the body is read and the handler runs,
	// watching that someone reads the connection meanwhile, watched that someone has, and aborted that
	// he is to stop.
	idle, answering, watching, watched, aborted bool
	cancel                                      context.CancelFunc
	ahead                                       [1]byte
	isAhead                                     bool
}

func newConn(s *Server, nc net.Conn, others *handover) *conn {
	c := &conn{Conn: nc, server: s, others: others, buffer: make([]byte, headRoom)}
	c.head.request.RemoteAddr = nc.RemoteAddr().String()
	c.answer.header, c.answer.conn = http.Header{}, c
	c.ended.L = &c.mu
	return c
}

// serve answers requests until one is not plain or the connection ends. A panic is a fault of this
// package or of what it stands on, and ends no more than the connection, as with net/http.
func (c *conn) serve() {
	defer c.server.forget(c)
	defer func() {
		if e := recover(); e != nil {
			c.server.logf("http: panic reading requests of %s: %v\n%s", c.RemoteAddr(), e, debug.Stack())
			_ = c.Close() // nobody knows what would be lost
		}
	}()
	wait := cmp.Or(c.server.HTTP.ReadHeaderTimeout, c.server.HTTP.IdleTimeout)
	for c.next(wait) {
		if !c.request() {
			_ = c.Close() // there is nothing left to lose
			return
		}
		wait = c.server.HTTP.IdleTimeout
	}
}

// next waits for a request and reads its head. If there is none, the connection is closed or handed
// over.
func (c *conn) next(wait time.Duration) bool {
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	for tries := 0; ; tries++ {
		if n := bytes.Index(c.buffer[c.from:c.to], []byte("\r\n\r\n")); n >= 0 {
			text := c.buffer[c.from : c.from+n+4]
			if h2 := c.server.HTTP2; h2 != nil && string(text) == "PRI * HTTP/2.0\r\n\r\n" {
				_ = c.SetReadDeadline(time.Time{}) // HTTP/2 sets its own
				h2.Serve(c.Conn, c.buffer[c.from:c.to])
				return false
			}
			if !c.head.read(text, c.server.Plain) {
				break
			}
			c.from += len(text)
			c.left = c.head.request.ContentLength
			return true
		}
		if c.to-c.from > 1 || tries > 1 || c.to == len(c.buffer) { // it came in pieces
			break
		}
		c.within(wait)
		c.setIdle(true)
		n, err := c.Read(c.buffer[c.to:])
		c.setIdle(false)
		if c.to += n; n == 0 && err != nil {
			_ = c.Close() // it has ended already, or was silent for too long
			return false
		}
	}
	_ = c.SetReadDeadline(time.Time{}) // net/http sets its own
	_ = c.others.give(c.Conn, c.buffer[c.from:c.to])
	return false
}

// setIdle says whether the connection waits for a request. When the server stops, it waits no longer
// for one than it may be on its way.
func (c *conn) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
	if !c.server.stopping.Load() {
		return
	}
	c.deadline = time.Time{}
	if idle {
		c.deadline = time.Now().Add(lastRequest)
	}
	_ = c.SetReadDeadline(c.deadline) // the read says what is wrong
}

// within bounds the time of the next reads. A bound that is nearly right stays, since a new one costs
// more than a read.
func (c *conn) within(d time.Duration) {
	if d <= 0 {
		if !c.deadline.IsZero() {
			c.deadline = time.Time{}
			_ = c.SetReadDeadline(c.deadline) // the read says what is wrong
		}
		return
	}
	now := time.Now()
	if left := c.deadline.Sub(now); left > d || left < d-d/8 {
		c.deadline = now.Add(d)
		_ = c.SetReadDeadline(c.deadline)
	}
}

// request answers the request whose head was read, and reports whether another may follow.
func (c *conn) request() (keep bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := c.head.request.WithContext(ctx)
	r.Body = http.NoBody
	c.cancel = cancel
	if c.left > 0 {
		r.Body = (*body)(c)
		if c.left > int64(c.to-c.from) {
			c.within(c.server.HTTP.ReadTimeout)
		}
	} else {
		c.startWatch()
	}
	c.answer.begin()
	if !c.handle(r) {
		c.stopWatch()
		return false
	}
	if !c.answer.end() {
		c.stopWatch()
		return false
	}
	c.stopWatch()
	if c.answer.close {
		c.linger()
		return false
	}
	return c.discard()
}

// handle has the handler answer; false if it panicked.
func (c *conn) handle(r *http.Request) (ok bool) {
	defer func() {
		if ok {
			return
		}
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			c.server.logf("http: panic serving %s: %v\n%s", r.RemoteAddr, e, debug.Stack())
		}
	}()
	c.server.HTTP.Handler.ServeHTTP(&c.answer, r)
	return true
}

// discard reads what the handler has left of the body.
func (c *conn) discard() bool {
	if c.left == 0 {
		return true
	}
	_, err := io.Copy(io.Discard, unread{c})
	return err == nil
}

// linger ends a connection whose client may still be sending: closed at once, it would lose the answer.
func (c *conn) linger() {
	if c.left == 0 || closeWrite(c.Conn) != nil {
		return
	}
	c.left = maxDiscard
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // reading says what is wrong
	_, _ = io.Copy(io.Discard, unread{c})                         // to its end, or the client's
}

// unread is the rest of a request's body.
type unread struct{ *conn }

func (c unread) Read(p []byte) (n int, err error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), c.left)]
	if c.from < c.to {
		n = copy(p, c.buffer[c.from:c.to])
		c.from += n
	} else {
		n, err = c.Conn.Read(p)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	if c.left -= int64(n); c.left == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// body is what the handler reads.
type body conn

func (b *body) Read(p []byte) (int, error) {
	c := (*conn)(b)
	there := c.left > 0
	n, err := unread{c}.Read(p)
	if there && c.left == 0 {
		c.startWatch()
	}
	return n, err
}

func (b *body) Close() error { return nil }

// startWatch has the connection watched after a while, now that the body is read.
func (c *conn) startWatch() {
	if c.from < c.to { // the client has sent its next request already
		return
	}
	c.mu.Lock()
	c.answering = true
	c.mu.Unlock()
	if c.timer == nil {
		c.timer = time.AfterFunc(watchAfter, c.watch)
	} else {
		c.timer.Reset(watchAfter)
	}
}

// watch cancels the request when its client goes away. What comes instead is of the next request.
func (c *conn) watch() {
	c.mu.Lock()
	if !c.answering || c.watching || c.isAhead {
		c.mu.Unlock()
		return
	}
	c.watching, c.watched = true, true
	_ = c.SetReadDeadline(time.Time{}) // reading says what is wrong
	c.mu.Unlock()
	n, err := c.Conn.Read(c.ahead[:])
	c.mu.Lock()
	c.watching, c.isAhead = false, n == 1
	if err != nil && !c.aborted {
		c.cancel()
	}
	c.ended.Broadcast()
	c.mu.Unlock()
}

// stopWatch ends the watch, and puts what came meanwhile before what will.
func (c *conn) stopWatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.answering {
		return
	}
	c.answering = false
	c.timer.Stop()
	if !c.watched { // one who begins now sees that nothing is answered
		return
	}
	c.watched, c.deadline = false, time.Time{}
	c.aborted = true
	for c.watching {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
		c.ended.Wait()
	}
	c.aborted = false
	_ = c.SetReadDeadline(time.Time{}) // the next read says what is wrong
	if c.isAhead {
		c.isAhead, c.from, c.to = false, 0, copy(c.buffer, c.ahead[:])
	}
}
