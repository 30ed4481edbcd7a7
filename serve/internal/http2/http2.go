// Package http2 serves HTTP/2 without TLS with fewer goroutines in the way of a request than net/http
// has: what arrives is handled by the goroutine that reads, answers are written by the one that has
// made them, at once and as one piece, and a handler runs where its request was read while its client
// has no other. Frames and headers are read and written by golang.org/x/net/http2.
package http2

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/internal/date"
)

// Server answers what comes over connections that are given to it.
type Server struct {
	// HTTP has the handler, the timeouts and the log, if there is to be one.
	HTTP *http.Server
	// Whole reports whether handlers of a path need the whole request before they answer. These begin
	// when it is there, or much of it. They must not change the Header of a request.
	Whole func(path string) bool

	mu       sync.Mutex
	conns    map[*conn]struct{}
	stopping bool
	clock    date.Clock
}

// Serve answers requests until the connection ends. read is what was read of it, at least the first
// line of the preface.
func (s *Server) Serve(nc net.Conn, read []byte) {
	c := newConn(s, nc, read)
	s.mu.Lock()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		time.AfterFunc(0, c.leave)
	}
	c.serve()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Stop has the connections end: they answer the requests that they have, and those that are on their
// way. It doesn't wait.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for c := range s.conns {
		go c.leave()
	}
}

func (s *Server) logf(format string, args ...any) {
	if s.HTTP.ErrorLog != nil {
		s.HTTP.ErrorLog.Printf(format, args...)
	}
}
