package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loris-ml/loris/serve/client"
)

// wireGRPC is to gRPC what wire is to REST: it sends one request, one at a time over each of its
// connections, with no more of HTTP/2 than answers of these servers need.
type wireGRPC struct {
	host    string
	headers [2][]byte // of the first request of a connection in HPACK, and of later ones, which refer to it
	message []byte    // with its prefix
	model   *model

	mu   sync.Mutex
	idle []*grpcConn
}

// maxWireGRPC bounds the message: each server takes as much without saying first that it will.
const maxWireGRPC = 60 << 10

// grpcWindow is how much a server may send on a connection before it hears that it was read.
const grpcWindow = 1 << 28

// newWireGRPC asks a server for a model's first output.
func newWireGRPC(host string, m *model) caller {
	field := func(to []byte, number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
	}
	message := field(nil, 1, []byte(m.name))
	var raw []byte
	for i := range m.inputs {
		t := &m.inputs[i]
		var shape []byte
		for _, d := range t.Shape {
			shape = protowire.AppendVarint(shape, uint64(d))
		}
		message = field(message, 5, field(field(field(nil, 1, []byte(t.Name)), 2, []byte(t.Datatype)), 3, shape))
		raw = field(raw, 7, t.Data)
	}
	message = append(message, raw...)
	w := &wireGRPC{host: host, model: m, message: binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))}
	w.message = append(w.message, message...)
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := range w.headers {
		block.Reset()
		for _, f := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":path", "/inference.GRPCInferenceService/ModelInfer"}, {":authority", host},
			{"te", "trailers"}, {"content-type", "application/grpc"}, {"user-agent", "bench-serve"},
		} {
			_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // into memory
		}
		w.headers[i] = bytes.Clone(block.Bytes())
	}
	return w.call
}

// call sends the request once.
func (w *wireGRPC) call(ctx context.Context, _ int) error {
	w.mu.Lock()
	var c *grpcConn
	if n := len(w.idle); n > 0 {
		c, w.idle = w.idle[n-1], w.idle[:n-1]
	}
	w.mu.Unlock()
	used := c != nil
	var err error
	if !used {
		if c, err = dialGRPC(ctx, w.host); err != nil {
			return err
		}
	}
	err = w.exchange(ctx, c)
	if used && errors.Is(err, errClosed) { // while it was idle
		if c, err = dialGRPC(ctx, w.host); err != nil {
			return err
		}
		err = w.exchange(ctx, c)
	}
	return err
}

// exchange sends the request and reads the answer. The connection is kept unless it failed.
func (w *wireGRPC) exchange(ctx context.Context, c *grpcConn) error {
	err := c.exchange(ctx, w)
	if err == nil {
		err = w.check(c.message)
	}
	if err != nil {
		_ = c.Close() // it has failed already
		return err
	}
	w.mu.Lock()
	w.idle = append(w.idle, c)
	w.mu.Unlock()
	return nil
}

// check looks for the first output in an answer.
func (w *wireGRPC) check(message []byte) error {
	if len(message) < 5 || message[0] != 0 {
		return fmt.Errorf("an answer of %d bytes", len(message))
	}
	for message = message[5:]; len(message) > 0; {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		if number == 6 {
			data, _ := protowire.ConsumeBytes(message[n:])
			return w.model.check(&client.Tensor{Name: "answer", Datatype: "FP32", Data: data})
		}
		message = message[n+size:]
	}
	return errors.New("the answer has no tensor")
}

// grpcConn is a connection with the state of HTTP/2.
type grpcConn struct {
	net.Conn
	frames  *http2.Framer // reads from the connection and writes to out
	in      *bufio.Reader
	out     bytes.Buffer
	headers *hpack.Decoder
	stream  uint32
	window  int // how much may be sent
	taken   int // bytes of answers of which the server does not know that they were read
	message []byte
	status  string // grpc-status and grpc-message
	ended   bool
}

func dialGRPC(ctx context.Context, host string) (*grpcConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	c := &grpcConn{Conn: conn, in: bufio.NewReader(conn), stream: 1, window: 65535}
	c.headers = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == "grpc-status" && f.Value != "0" || f.Name == "grpc-message" && f.Value != "" || f.Name == ":status" && f.Value != "200" {
			c.status += fmt.Sprintf("%s: %s ", f.Name, f.Value)
		}
	})
	c.frames = http2.NewFramer(&c.out, c.in)
	c.frames.SetReuseFrames()
	c.out.WriteString(http2.ClientPreface)
	return c, errors.Join(c.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: grpcWindow}), c.frames.WriteWindowUpdate(0, grpcWindow))
}

func (c *grpcConn) exchange(ctx context.Context, w *wireGRPC) error {
	end := time.Now().Add(wireTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	for c.window < len(w.message) {
		if err := c.read(); err != nil {
			return err
		}
	}
	err := c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: w.headers[min(c.stream, 3)/2], EndHeaders: true})
	for rest := w.message; len(rest) > 0; {
		n := min(len(rest), 16<<10) // the size of frames that every server takes
		err = errors.Join(err, c.frames.WriteData(c.stream, n == len(rest), rest[:n]))
		rest = rest[n:]
	}
	if err != nil {
		return err
	}
	c.window -= len(w.message)
	c.message, c.status, c.ended = c.message[:0], "", false
	if _, err := c.out.WriteTo(c.Conn); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	if _, err := c.in.Peek(1); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	for !c.ended {
		if err := c.read(); err != nil {
			return err
		}
	}
	if c.stream += 2; c.status != "" {
		return errors.New(c.status)
	}
	return nil
}

// read reads a frame.
func (c *grpcConn) read() error {
	f, err := c.frames.ReadFrame()
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.HeadersFrame:
		_, err = c.headers.Write(f.HeaderBlockFragment())
		c.ended = f.StreamEnded()
	case *http2.DataFrame:
		c.message = append(c.message, f.Data()...)
		c.ended = f.StreamEnded()
		if c.taken += int(f.Length); c.taken > grpcWindow/2 {
			err = c.frames.WriteWindowUpdate(0, uint32(c.taken)) // goes with the next request
			c.taken = 0
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int(f.Increment)
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			err = c.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			if err = c.frames.WritePing(true, f.Data); err == nil {
				_, err = c.out.WriteTo(c.Conn)
			}
		}
	case *http2.RSTStreamFrame:
		return fmt.Errorf("the stream was reset: %v", f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Errorf("%w: the server goes away: %v", errClosed, f.ErrCode)
	}
	return err
}
