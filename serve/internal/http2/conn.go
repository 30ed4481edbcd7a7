package http2

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// maxStreams is how many requests a connection may have at once.
	maxStreams = 250
	// streamWindow and connWindow are what is taken of bodies before their handlers read them.
	streamWindow = 1 << 20
	connWindow   = 1 << 20
	// defaultWindow is what HTTP/2 begins with.
	defaultWindow = 65535
	// frameSize is how long frames are at most that are read or written.
	frameSize = 16 << 10
	// maxOut is what may wait to be written before handlers wait, and maxReplies before a client is
	// cut off who has sent much that is answered by itself, and reads nothing.
	maxOut, maxReplies = 256 << 10, 4 << 20
	// keptOut is what of the memory for writing stays with a connection.
	keptOut = 64 << 10
	// handOver is how long the goroutine that reads may be busy with a handler before another reads.
	handOver = time.Millisecond
	// overlapping is how many requests run in goroutines of their own after some came at once.
	overlapping = 64
	// writeTimeout is how long a client may read nothing of what is written to it.
	writeTimeout = time.Minute
	// lastRequests is how long a connection is there for requests that are on their way when the
	// server stops, and lastBytes how long it is read for the client to end it.
	lastRequests, lastBytes = 50 * time.Millisecond, 250 * time.Millisecond
)

// conn is a connection. One goroutine reads it, which may change.
type conn struct {
	net.Conn
	server   *Server
	in       *bufio.Reader
	frames   *http2.Framer // reads from in, and writes to out
	ended    chan struct{} // closed when nobody reads any more
	handlers sync.WaitGroup
	timer    *time.Timer // hands over

	mu      sync.Mutex
	changed sync.Cond // more may be sent, or the connection has failed
	out     []byte    // not yet written
	spare   []byte    // for out
	writing bool      // somebody writes, and will write what comes to out meanwhile
	until   time.Time // the deadline of writes
	headers *hpack.Encoder
	block   bytes.Buffer // what headers writes
	err     error        // the connection has failed, or ended
	refused bool         // the client was told why nothing it sends is taken any more
	done    bool         // the last answer was written, or refused
	// deadline is until when reads wait.
	deadline time.Time

	streams map[uint32]*stream // those whose request or answer is not complete
	running int                // handlers
	last    uint32             // the greatest number of a stream
	lastOne uint32             // the last stream that will be answered, once it leaves; 0 before
	window  int64              // what may be sent
	initial int64              // that of new streams
	taken   int64              // what of connWindow is in buffers or was not given back
	read    int64              // what of it is to be given back
	inline  *stream            // its handler runs in the goroutine that reads
	waiting []*stream          // their handlers do not run yet; only the reader changes it
	// unawaited is how many streams have a body to come that nobody bounds the time of yet.
	unawaited int
	lowered   map[string]string // names of fields
	head      head              // of the last request for a whole path
	address   string            // of the client
	overlap   int               // so many requests get goroutines of their own
}

func newConn(s *Server, nc net.Conn, read []byte) *conn {
	c := &conn{Conn: nc, server: s, streams: map[uint32]*stream{}, lowered: map[string]string{}, window: defaultWindow, initial: defaultWindow, ended: make(chan struct{})}
	c.changed.L = &c.mu
	c.address = nc.RemoteAddr().String()
	c.in = bufio.NewReader(&reader{c, read})
	c.headers = hpack.NewEncoder(&c.block)
	c.frames = http2.NewFramer((*writer)(c), c.in)
	c.frames.SetReuseFrames()
	c.frames.SetMaxReadFrameSize(frameSize)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.frames.MaxHeaderListSize = uint32(cmp.Or(s.HTTP.MaxHeaderBytes, 1<<20))
	return c
}

// writer is where the framer writes to; mu is held.
type writer conn

func (w *writer) Write(p []byte) (int, error) {
	w.out = append(w.out, p...)
	return len(p), nil
}

// reader reads the connection, first what was read before.
type reader struct {
	c    *conn
	read []byte
}

func (r *reader) Read(p []byte) (int, error) {
	if len(r.read) > 0 {
		n := copy(p, r.read)
		r.read = r.read[n:]
		return n, nil
	}
	for {
		if err := r.c.await(); err != nil {
			return 0, err
		}
		n, err := r.c.Conn.Read(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && r.c.busy() {
			continue
		}
		return n, err
	}
}

// await bounds the time of the next read.
func (c *conn) await() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.done {
		return c.err // or what ends it is under way
	}
	c.awaitBodies()
	// A bound that is nearly right stays, since a new one costs more than a read.
	if wait := c.server.HTTP.IdleTimeout; wait > 0 {
		now := time.Now()
		if c.deadline.Sub(now) < wait-wait/8 {
			c.deadline = now.Add(wait)
			_ = c.SetReadDeadline(c.deadline) // the read says what is wrong
		}
	}
	return nil
}

// busy reports whether the connection has requests, and may be silent for another while.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 || c.err != nil || c.done {
		return false
	}
	c.deadline = time.Time{}
	return true
}

// serve answers requests until the connection ends and the last handler has returned.
func (c *conn) serve() {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.in, preface); err != nil || string(preface) != http2.ClientPreface {
		_ = c.Close() // there is nobody to tell
		return
	}
	c.mu.Lock()
	_ = c.frames.WriteSettings( // into memory, as all frames
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.frames.MaxHeaderListSize},
	)
	_ = c.frames.WriteWindowUpdate(0, connWindow-defaultWindow)
	c.flush()
	c.mu.Unlock()
	c.readFrames(true)
	<-c.ended
	c.handlers.Wait()
	if c.refused {
		_, _ = io.Copy(io.Discard, c.Conn) // until the deadline, or the client ends it
	}
	_ = c.Close() // it has ended
}

// readFrames reads until the connection ends, or another goroutine reads.
func (c *conn) readFrames(first bool) {
	for c.readFrame(first) {
		first = false
		s := c.start()
		if s == nil {
			continue
		}
		s.run()
		c.mu.Lock()
		own := c.inline == s
		if own {
			c.inline = nil
		}
		c.mu.Unlock()
		if !own {
			return
		}
	}
	c.mu.Lock()
	if c.refused && c.err == nil {
		c.flush()
		c.endWrites()
	}
	c.fail(io.ErrUnexpectedEOF)
	c.mu.Unlock()
	close(c.ended)
}

// readFrame reads and handles a frame; false ends the connection. A panic is a fault of this package or
// of what it stands on, and ends no more than the connection, as with net/http.
func (c *conn) readFrame(first bool) (going bool) {
	defer func() {
		if e := recover(); e != nil {
			c.server.logf("http: panic reading frames of %s: %v\n%s", c.address, e, debug.Stack())
			c.mu.Lock()
			defer c.mu.Unlock()
			going = c.refuse(http2.ErrCodeInternal, "")
		}
	}()
	f, err := c.frames.ReadFrame()
	return c.took(f, err, first)
}

// lateHandOver is handOver when a handler has taken some time.
func (c *conn) lateHandOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handOver()
}

// handOver has another goroutine read while a handler runs in the one that does. mu is held.
func (c *conn) handOver() {
	if c.inline != nil {
		c.inline = nil
		go c.readFrames(false)
	}
}

// fail ends the connection and all that waits for it, once. mu is held.
func (c *conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for _, s := range c.streams {
		s.end(err)
	}
	c.changed.Broadcast()
}

// flush writes what is to be written, unless somebody does so already. mu is held, but not while it
// writes.
func (c *conn) flush() {
	if c.writing {
		return
	}
	c.writing = true
	for len(c.out) > 0 && c.err == nil {
		piece := c.out
		c.out = c.spare[:0]
		if now := time.Now(); c.until.Sub(now) < writeTimeout/2 {
			c.until = now.Add(writeTimeout)
			_ = c.SetWriteDeadline(c.until) // the write says what is wrong
		}
		c.mu.Unlock()
		_, err := c.Conn.Write(piece)
		c.mu.Lock()
		if c.spare = piece[:0]; cap(piece) > keptOut {
			c.spare = nil
		}
		if err != nil {
			c.fail(err)
			_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the reader
		}
		c.changed.Broadcast()
	}
	c.writing = false
}

// leave tells the client to send no more requests, answers those that it has sent, and ends the
// connection.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.frames.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
	c.flush()
	time.AfterFunc(lastRequests, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lastOne = max(c.last, 1)
		_ = c.frames.WriteGoAway(c.last, http2.ErrCodeNo, nil)
		c.flush()
		c.endIfDone()
	})
}

// endIfDone ends a connection that leaves and has answered all. mu is held.
func (c *conn) endIfDone() {
	if c.lastOne != 0 && c.running == 0 && len(c.streams) == 0 && c.err == nil {
		c.endWrites()
	}
}

// endWrites ends the connection on this side. What the client sends is read for a while: a connection
// that ended with something unread would lose the last answers. mu is held.
func (c *conn) endWrites() {
	if c.done {
		return
	}
	c.done = true
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite() // the read ends in any case
	}
	_ = c.SetReadDeadline(time.Now().Add(lastBytes))
}

// refuse ends the connection for what the client has done, and says so. mu is held.
func (c *conn) refuse(code http2.ErrCode, why string) bool {
	_ = c.frames.WriteGoAway(c.last, code, []byte(why))
	c.refused = true
	return false
}
