// Package http1 answers plain requests of HTTP/1.1 with less than net/http needs for one: no
// goroutine for each body, and one write for each answer. A request is plain if its head came in one
// piece, says how long its body is, and has nothing in it that changes how a connection is used. A
// connection that brings another kind goes to net/http with all that was read of it, and stays there:
// chunked bodies, upgrades, and whatever is malformed. One of HTTP/2 goes to package http2.
package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/serve/internal/date"
	"github.com/loris-ml/loris/serve/internal/http2"
)

// Server answers what comes over TCP without TLS.
type Server struct {
	// HTTP has the handler, the timeouts and the log, if there is to be one, and serves the connections
	// that are not plain.
	HTTP *http.Server
	// Plain reports whether requests for a path may be answered here. Their handlers must not flush
	// or hijack.
	Plain func(path string) bool
	// HTTP2 serves connections of HTTP/2; nil leaves them to HTTP.
	HTTP2 *http2.Server

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]struct{}
	running   sync.WaitGroup
	stopping  atomic.Bool // no connection is kept
	clock     date.Clock
}

// Serve answers what l accepts until Shutdown or Close, and returns http.ErrServerClosed then.
func (s *Server) Serve(l net.Listener) error {
	others := &handover{address: l.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	s.mu.Lock()
	if s.stopping.Load() {
		s.mu.Unlock()
		return errors.Join(http.ErrServerClosed, l.Close())
	}
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.running.Go(func() {
		if err := s.HTTP.Serve(others); !errors.Is(err, http.ErrServerClosed) {
			s.logf("http: %v", err)
		}
	})
	for wait := time.Duration(0); ; {
		nc, err := l.Accept()
		if s.stopping.Load() {
			if err == nil {
				err = nc.Close()
			}
			_ = err // it ends in any case
			return http.ErrServerClosed
		}
		if err != nil {
			// As net/http does where descriptors are short for a moment.
			if t, ok := err.(interface{ Temporary() bool }); !ok || !t.Temporary() {
				return err
			}
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.logf("http: accept error: %v; retrying in %v", err, wait)
			time.Sleep(wait)
			continue
		}
		wait = 0
		c := newConn(s, nc, others)
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.running.Go(c.serve)
	}
}

// Shutdown stops listening, lets requests in flight end, and closes connections that have none. It
// returns the error of ctx if that ends before.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.stop(false)
	err = errors.Join(err, s.HTTP.Shutdown(ctx))
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// Close closes all connections.
func (s *Server) Close() error { return errors.Join(s.stop(true), s.HTTP.Close()) }

// stop closes the listeners, and the connections: all, or those between requests, which may answer
// what has arrived already.
func (s *Server) stop(all bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping.Store(true)
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.listeners = nil
	if s.HTTP2 != nil {
		s.HTTP2.Stop()
	}
	for c := range s.conns {
		if all {
			_ = c.Close() // what it was doing fails
			continue
		}
		c.mu.Lock()
		if c.idle {
			_ = c.SetReadDeadline(time.Now().Add(lastRequest)) // the read says what is wrong
		}
		c.mu.Unlock()
	}
	return err
}

// lastRequest is how long a connection that has no request waits for one when the server stops: it may
// be on its way.
const lastRequest = 20 * time.Millisecond

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) logf(format string, args ...any) {
	if s.HTTP.ErrorLog != nil {
		s.HTTP.ErrorLog.Printf(format, args...)
	}
}

// handover is the listener of net/http: it accepts the connections that are not plain.
type handover struct {
	address net.Addr
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handover) Addr() net.Addr { return h.address }

// give hands a connection over with what was read of it.
func (h *handover) give(c net.Conn, read []byte) error {
	select {
	case h.conns <- &begun{c, read}:
		return nil
	case <-h.closed:
		return c.Close()
	}
}

// begun is a connection of which something was read.
type begun struct {
	net.Conn
	read []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.read) > 0 {
		n := copy(p, b.read)
		b.read = b.read[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}

// CloseWrite is what net/http asks for when it ends a connection.
func (b *begun) CloseWrite() error { return closeWrite(b.Conn) }

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
