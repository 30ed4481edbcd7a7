package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/client"
)

// wire sends one request, which is written once and for all, over connections that stay open. It
// reads no more of HTTP/1.1 than answers of these servers have, so that little of the machine goes
// to the generator, which shares it with the server.
type wire struct {
	host    string
	request []byte
	// check gets the body of an answer, and where in it the tensors begin.
	check func(body []byte, tensors int) error

	mu   sync.Mutex
	idle []*wireConn
}

type wireConn struct {
	net.Conn
	in   *bufio.Reader
	body []byte
}

// wireTimeout bounds a request.
const wireTimeout = time.Minute

// newWire returns a wire that posts parts to a URL.
func newWire(to string, header map[string]string, parts ...[]byte) (*wire, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	body := bytes.Join(parts, nil)
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", u.RequestURI(), u.Host, len(body))
	for name, value := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	fmt.Fprintf(&b, "\r\n%s", body)
	return &wire{host: u.Host, request: b.Bytes()}, nil
}

// wireREST asks a server of the protocol for a model's first output, with binary tensors.
func wireREST(address string, m *model) (caller, error) {
	type object = map[string]any
	var inputs []object
	parts := [][]byte{nil}
	for i := range m.inputs {
		t := &m.inputs[i]
		inputs = append(inputs, object{"name": t.Name, "datatype": t.Datatype, "shape": t.Shape, "parameters": object{"binary_data_size": len(t.Data)}})
		parts = append(parts, t.Data)
	}
	text, err := json.Marshal(object{"inputs": inputs, "parameters": object{"binary_data_output": true}})
	if err != nil {
		return nil, err
	}
	parts[0] = text
	header := map[string]string{"Content-Type": "application/octet-stream", headerJSONLength: strconv.Itoa(len(text))}
	w, err := newWire(address+"/v2/models/"+m.name+"/infer", header, parts...)
	if err != nil {
		return nil, err
	}
	w.check = func(body []byte, tensors int) error {
		size := tensors + 4*len(m.want)
		if size > len(body) {
			return fmt.Errorf("the answer has %d bytes of tensors, not %d", len(body)-tensors, 4*len(m.want))
		}
		return m.check(&client.Tensor{Name: "answer", Datatype: "FP32", Data: body[tensors:size]})
	}
	return w.call, nil
}

const headerJSONLength = "Inference-Header-Content-Length"

// call sends the request once.
func (w *wire) call(ctx context.Context, _ int) error {
	c, used, err := w.take(ctx)
	if err != nil {
		return err
	}
	err = w.exchange(ctx, c)
	if used && errors.Is(err, errClosed) { // while it was idle
		if c, err = w.dial(ctx); err != nil {
			return err
		}
		err = w.exchange(ctx, c)
	}
	return err
}

// take returns a connection; used says that it has had a request before.
func (w *wire) take(ctx context.Context) (_ *wireConn, used bool, err error) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		return c, true, nil
	}
	w.mu.Unlock()
	c, err := w.dial(ctx)
	return c, false, err
}

func (w *wire) dial(ctx context.Context) (*wireConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.host)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: conn, in: bufio.NewReader(conn)}, nil
}

// errClosed is the failure of a connection that had no byte of an answer.
var errClosed = errors.New("the connection was closed")

// exchange sends the request and reads the answer. The connection is kept unless it failed.
func (w *wire) exchange(ctx context.Context, c *wireConn) (err error) {
	keep := false
	defer func() {
		if !keep {
			_ = c.Close() // it has failed already
			return
		}
		w.mu.Lock()
		w.idle = append(w.idle, c)
		w.mu.Unlock()
	}()
	end := time.Now().Add(wireTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	if _, err := c.Write(w.request); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	if _, err := c.in.Peek(1); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	status, tensors, err := c.read()
	if err != nil {
		return err
	}
	keep = true
	if status != "200" {
		return fmt.Errorf("status %s: %.200s", status, c.body)
	}
	return w.check(c.body, tensors)
}

// read reads an answer into body.
func (c *wireConn) read() (status string, tensors int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return "", 0, err
	}
	words := strings.Fields(string(line))
	if len(words) < 2 {
		return "", 0, fmt.Errorf("the answer begins with %q", line)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		at := &length
		if !bytes.EqualFold(name, []byte("Content-Length")) {
			if at = &tensors; !bytes.EqualFold(name, []byte(headerJSONLength)) {
				continue
			}
		}
		if *at, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
			return "", 0, fmt.Errorf("header %q: %w", line, err)
		}
	}
	if length < 0 || tensors > length {
		return "", 0, fmt.Errorf("an answer of %d bytes with %d of JSON", length, tensors)
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return words[1], tensors, err
}
