package http2

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// keptBody is what is collected of an answer before it is sent.
const keptBody = 32 << 10

// answer is the http.ResponseWriter of a stream. It sends nothing before the handler has returned,
// unless it is much, or the handler asks for it.
type answer struct {
	stream    *stream
	header    http.Header
	announced []string // fields that are trailers
	status    int      // 0 before WriteHeader
	pending   []byte   // of the body
	headSent  bool
	window    int64 // what may be sent; the connection's mu guards it
}

// Header returns the fields that will be sent.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status. Those of information are not sent.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	for _, list := range a.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			a.announced = append(a.announced, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
}

// hasBody reports whether the answer has a body.
func (a *answer) hasBody() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// noBytes reports whether a body is only described.
func (a *answer) noBytes() bool { return a.stream.request.Method == http.MethodHead }

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	if a.pending = append(a.pending, p...); len(a.pending) < keptBody {
		return len(p), nil
	}
	return len(p), a.FlushError()
}

// Flush sends what is there of the answer.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is Flush, and says whether nobody wants the answer any more.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	c := a.stream.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	err := a.send(false)
	c.flush()
	return err
}

// finish sends the rest of the answer, into memory where that is possible. mu is held, but not while it
// waits for the client.
func (a *answer) finish() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	_ = a.send(true) // fails if nobody wants it
}

// send puts what is there of the answer into frames, and the end of it.
func (a *answer) send(end bool) error {
	s := a.stream
	c := s.conn
	var trailers [][2]string
	if end {
		trailers = a.trailers()
	}
	p := a.pending
	if s.err != nil {
		return s.err
	}
	last, first := end && len(trailers) == 0, !a.headSent
	a.headSent = true
	if first {
		a.writeHead(p, end, last && (len(p) == 0 || a.noBytes()))
	}
	if a.noBytes() {
		p = nil
	}
	if !first && last && len(p) == 0 {
		_ = c.frames.WriteData(s.id, true, nil)
	}
	for len(p) > 0 {
		n, err := a.room(len(p))
		if err != nil {
			return err
		}
		_ = c.frames.WriteData(s.id, last && n == len(p), p[:n])
		c.window -= int64(n)
		a.window -= int64(n)
		p = p[n:]
	}
	a.pending = a.pending[:0]
	if len(trailers) > 0 {
		c.block.Reset()
		for _, t := range trailers {
			_ = c.headers.WriteField(hpack.HeaderField{Name: t[0], Value: t[1]})
		}
		a.writeBlock(true)
	}
	return nil
}

// room waits until something may be sent, and returns how much of n.
func (a *answer) room(n int) (int, error) {
	s := a.stream
	c := s.conn
	var stalled *time.Timer
	for s.err == nil {
		n := int(min(int64(n), frameSize, c.window, a.window))
		if n > 0 && len(c.out) < maxOut {
			if stalled != nil {
				stalled.Stop()
			}
			return n, nil
		}
		if !c.writing && len(c.out) > 0 {
			c.flush()
			continue
		}
		c.handOver() // or nobody reads that more may be sent
		if stalled == nil {
			stalled = time.AfterFunc(writeTimeout, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				if s.err == nil {
					s.reset(http2.ErrCodeCancel)
					c.flush()
				}
			})
		}
		c.changed.Wait()
	}
	if stalled != nil {
		stalled.Stop()
	}
	return 0, s.err
}

// ofConnection reports whether a field, by its canonical name, is about a connection of HTTP/1, which
// HTTP/2 forbids (RFC 9113, 8.2.2).
func ofConnection(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive":
		return true
	}
	return false
}

// writeHead writes the fields before the body. whole says that p is all of it.
func (a *answer) writeHead(p []byte, whole, end bool) {
	c := a.stream.conn
	c.block.Reset()
	field := func(name, value string) { _ = c.headers.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	field(":status", strconv.Itoa(a.status))
	length := false
	for name, values := range a.header {
		length = length || name == "Content-Length"
		if ofConnection(name) || strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(a.announced, name) || !httpguts.ValidHeaderFieldName(name) {
			continue
		}
		for _, v := range values {
			if httpguts.ValidHeaderFieldValue(v) {
				field(c.lower(name), v)
			}
		}
	}
	if _, ok := a.header["Content-Type"]; !ok && len(p) > 0 {
		field("content-type", http.DetectContentType(p))
	}
	if _, ok := a.header["Date"]; !ok {
		field("date", c.server.clock.Text())
	}
	if whole && !length && a.hasBody() && (len(p) > 0 || !a.noBytes()) {
		field("content-length", strconv.Itoa(len(p)))
	}
	a.writeBlock(end)
}

// writeBlock writes the fields that were encoded.
func (a *answer) writeBlock(end bool) {
	c := a.stream.conn
	block := c.block.Bytes()
	n := min(len(block), frameSize)
	_ = c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: a.stream.id, BlockFragment: block[:n], EndStream: end, EndHeaders: n == len(block)})
	for block = block[n:]; len(block) > 0; block = block[n:] {
		n = min(len(block), frameSize)
		_ = c.frames.WriteContinuation(a.stream.id, n == len(block), block[:n])
	}
}

// writeContinue asks the client for the body. mu is held.
func (s *stream) writeContinue() {
	if s.headSent {
		return
	}
	c := s.conn
	c.block.Reset()
	_ = c.headers.WriteField(hpack.HeaderField{Name: ":status", Value: "100"})
	s.writeBlock(false)
	c.flush()
}

// trailers returns the fields behind the body.
func (a *answer) trailers() (all [][2]string) {
	for name, values := range a.header {
		short, ok := strings.CutPrefix(name, http.TrailerPrefix)
		if !ok && !slices.Contains(a.announced, name) || !httpguts.ValidTrailerHeader(short) {
			continue
		}
		for _, v := range values {
			if httpguts.ValidHeaderFieldValue(v) {
				all = append(all, [2]string{a.stream.conn.lower(short), v})
			}
		}
	}
	return all
}
