package http2

import (
	"errors"
	"math"
	"time"

	"golang.org/x/net/http2"
)

// took handles a frame, or the error of reading one; false ends the connection. The first is SETTINGS.
func (c *conn) took(f http2.Frame, err error, first bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	going := err == nil && c.handle(f, first) || err != nil && c.failed(err)
	c.flush() // what answers the frame by itself
	return going && len(c.out) < maxReplies
}

func (c *conn) handle(f http2.Frame, first bool) bool {
	if _, ok := f.(*http2.SettingsFrame); first && !ok {
		return c.refuse(http2.ErrCodeProtocol, "the first frame is to be SETTINGS")
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.tookHeaders(f)
	case *http2.DataFrame:
		return c.tookData(f)
	case *http2.WindowUpdateFrame:
		return c.tookWindow(f)
	case *http2.RSTStreamFrame:
		if f.StreamID > c.last {
			return c.refuse(http2.ErrCodeProtocol, "RST_STREAM of a stream that is none")
		}
		if s := c.streams[f.StreamID]; s != nil {
			s.end(errReset)
		}
	case *http2.SettingsFrame:
		if f.IsAck() {
			return true
		}
		if code := c.set(f); code != http2.ErrCodeNo {
			return c.refuse(code, "SETTINGS")
		}
		_ = c.frames.WriteSettingsAck()
		return true
	case *http2.PingFrame:
		if f.IsAck() {
			return true
		}
		_ = c.frames.WritePing(true, f.Data)
		return true
	case *http2.PushPromiseFrame:
		return c.refuse(http2.ErrCodeProtocol, "clients push nothing")
	case *http2.GoAwayFrame:
		c.lastOne = max(c.last, 1)
		c.endIfDone()
	}
	return true
}

// failed handles an error of reading a frame.
func (c *conn) failed(err error) bool {
	var ce http2.ConnectionError
	var se http2.StreamError
	switch {
	case errors.As(err, &se):
		if s := c.streams[se.StreamID]; s != nil {
			s.reset(se.Code)
		} else {
			c.last = max(c.last, se.StreamID)
			_ = c.frames.WriteRSTStream(se.StreamID, se.Code)
		}
		return true
	case errors.As(err, &ce):
		return c.refuse(http2.ErrCode(ce), "")
	case errors.Is(err, http2.ErrFrameTooLarge):
		return c.refuse(http2.ErrCodeFrameSize, "")
	}
	return false // it has ended
}

// set takes the client's settings.
func (c *conn) set(f *http2.SettingsFrame) (code http2.ErrCode) {
	_ = f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			code = http2.ErrCodeProtocol
			if ce, ok := err.(http2.ConnectionError); ok {
				code = http2.ErrCode(ce)
			}
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			more := int64(s.Val) - c.initial
			c.initial += more
			for _, st := range c.streams {
				if st.window += more; st.window > math.MaxInt32 {
					code = http2.ErrCodeFlowControl
				}
			}
			c.changed.Broadcast()
		case http2.SettingHeaderTableSize:
			c.headers.SetMaxDynamicTableSizeLimit(min(s.Val, 4096))
			c.headers.SetMaxDynamicTableSize(min(s.Val, 4096))
		}
		return nil
	})
	return code
}

// tookWindow lets more be sent.
func (c *conn) tookWindow(f *http2.WindowUpdateFrame) bool {
	if f.StreamID > c.last {
		return c.refuse(http2.ErrCodeProtocol, "WINDOW_UPDATE of a stream that is none")
	}
	window, s := &c.window, c.streams[f.StreamID]
	if f.StreamID != 0 {
		if s == nil {
			return true
		}
		window = &s.window
	}
	if *window += int64(f.Increment); *window > math.MaxInt32 {
		if s == nil {
			return c.refuse(http2.ErrCodeFlowControl, "the window is too large")
		}
		s.reset(http2.ErrCodeFlowControl)
	}
	c.changed.Broadcast()
	return true
}

// tookHeaders begins a stream, or ends the body of one.
func (c *conn) tookHeaders(f *http2.MetaHeadersFrame) bool {
	id := f.StreamID
	if id%2 == 0 {
		return c.refuse(http2.ErrCodeProtocol, "streams of clients have odd numbers")
	}
	if s := c.streams[id]; s != nil { // trailers, which no handler reads
		if !f.StreamEnded() || s.complete || len(f.PseudoFields()) > 0 {
			s.reset(http2.ErrCodeProtocol)
			return true
		}
		s.endBody()
		return true
	}
	if id <= c.last {
		return c.refuse(http2.ErrCodeProtocol, "the stream has ended")
	}
	if c.lastOne != 0 {
		return true // the client was told that nobody answers this one
	}
	c.last = id
	if c.running >= maxStreams || len(c.streams) >= maxStreams {
		_ = c.frames.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		return true
	}
	s := newStream(c, id, f)
	c.streams[id] = s
	if s.request == nil {
		s.reset(http2.ErrCodeProtocol)
		return true
	}
	c.waiting = append(c.waiting, s)
	return true
}

// tookData adds to the body of a stream.
func (c *conn) tookData(f *http2.DataFrame) bool {
	size, s := int64(f.Length), c.streams[f.StreamID]
	if f.StreamID > c.last {
		return c.refuse(http2.ErrCodeProtocol, "DATA of a stream that is none")
	}
	if c.taken += size; c.taken > connWindow {
		return c.refuse(http2.ErrCodeFlowControl, "more DATA than the connection takes")
	}
	if s == nil || s.complete { // a stream that was reset may not know yet
		c.giveBack(size)
		if s != nil {
			s.reset(http2.ErrCodeStreamClosed)
		}
		return true
	}
	data := f.Data()
	s.received += int64(len(data))
	if s.taken += size; s.taken > streamWindow {
		s.reset(http2.ErrCodeFlowControl)
		return true
	}
	if s.length >= 0 && s.received > s.length {
		s.reset(http2.ErrCodeProtocol)
		return true
	}
	s.body = append(s.body, data...)
	if padding := size - int64(len(data)); padding > 0 {
		s.giveBack(padding)
	}
	if f.StreamEnded() {
		s.endBody()
	}
	s.more.Signal()
	return true
}

// giveBack lets the client send as much more on the connection as was read.
func (c *conn) giveBack(n int64) {
	c.taken -= n
	if c.read += n; c.read >= connWindow/4 {
		_ = c.frames.WriteWindowUpdate(0, uint32(c.read))
		c.read = 0
	}
}

// start has handlers begin whose requests are there, and returns a stream whose handler is to run here.
func (c *conn) start() *stream {
	if len(c.waiting) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.in.Buffered() == 0
	left := c.waiting[:0]
	var here *stream
	for _, s := range c.waiting {
		if s.err != nil {
			continue
		}
		if !s.complete && (!idle || s.whole && s.taken < streamWindow/2 && c.taken < connWindow/2) {
			left = append(left, s)
			continue
		}
		s.started = true
		c.handlers.Add(1)
		if c.running++; s.complete && s.whole && idle && c.running == 1 && c.overlap == 0 {
			here = s
		} else {
			go s.run()
		}
	}
	clear(c.waiting[len(left):])
	c.waiting = left
	if c.running > 1 {
		if c.overlap = overlapping; here != nil {
			go here.run()
			here = nil
		}
	} else if c.overlap > 0 {
		c.overlap--
	}
	if c.inline = here; here == nil {
		return nil
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(handOver, c.lateHandOver)
	} else {
		c.timer.Reset(handOver)
	}
	return here
}
