package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const headerJSONLength = "Inference-Header-Content-Length"

// rest speaks the protocol over HTTP.
type rest struct {
	http          *http.Client
	base          *url.URL
	authorization []string
}

func newREST(h *http.Client, base *url.URL, token string) *rest {
	r := &rest{http: h, base: base}
	if token != "" {
		r.authorization = []string{"Bearer " + token}
	}
	return r
}

// url returns the URL of a path of segments below /v2.
func (c *rest) url(segments ...string) *url.URL {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/v2"
	raw := strings.TrimSuffix(c.base.EscapedPath(), "/") + "/v2"
	for _, s := range segments {
		u.Path += "/" + s
		raw += "/" + url.PathEscape(s)
	}
	if raw != u.Path {
		u.RawPath = raw
	}
	return &u
}

func (c *rest) model(name, version string, more ...string) *url.URL {
	segments := []string{"models", name}
	if version != "" {
		segments = append(segments, "versions", version)
	}
	return c.url(append(segments, more...)...)
}

// send sends a request, whose body may be nil, and returns the answer if its status is 200.
func (c *rest) send(ctx context.Context, method string, u *url.URL, header http.Header, p *payload) (*http.Response, error) {
	if c.authorization != nil {
		header["Authorization"] = c.authorization
	}
	r := (&http.Request{Method: method, URL: u, Host: u.Host, Header: header, ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if p != nil {
		r.Body, r.GetBody, r.ContentLength = p.reader(), p.again, p.size
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return nil, err
	}
	e := &Error{Status: resp.StatusCode, Message: http.StatusText(resp.StatusCode)}
	var said struct{ Error string }
	if json.Unmarshal(text, &said) == nil && said.Error != "" {
		e.Message = said.Error
	}
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return nil, e
}

// call sends a small request and reads the answer's JSON into out, unless that is nil.
func (c *rest) call(ctx context.Context, method string, u *url.URL, in, out any) error {
	header := http.Header{}
	var p *payload
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		header.Set("Content-Type", "application/json")
		p = &payload{size: int64(len(text)), parts: [][]byte{text}}
		defer p.readers.Wait()
	}
	resp, err := c.send(ctx, method, u, header, p)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (c *rest) ready(ctx context.Context) (bool, error) {
	err := c.call(ctx, "GET", c.url("health", "ready"), nil, nil)
	// Servers of the protocol differ in the status for not ready: 400, 503.
	if e, ok := err.(*Error); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusServiceUnavailable) {
		return false, nil
	}
	return err == nil, err
}

func (c *rest) metadata(ctx context.Context, model, version string) (*Metadata, error) {
	out := &Metadata{}
	return out, c.call(ctx, "GET", c.model(model, version), nil, out)
}

func (c *rest) load(ctx context.Context, model string) error {
	return c.call(ctx, "POST", c.url("repository", "models", model, "load"), struct{}{}, nil)
}

func (c *rest) unload(ctx context.Context, model string) error {
	return c.call(ctx, "POST", c.url("repository", "models", model, "unload"), struct{}{}, nil)
}

func (c *rest) updateWeights(ctx context.Context, model, name string, file io.Reader) (*WeightUpdate, error) {
	u := c.model(model, "", "weights")
	if name != "" {
		u.RawQuery = url.Values{"weight_version": {name}}.Encode()
	}
	p := &payload{size: -1, stream: file}
	resp, err := c.send(ctx, "POST", u, http.Header{"Content-Type": {"application/octet-stream"}}, p)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		Name   string `json:"weight_version"`
		N      int    `json:"updated"`
		Bytes  int64  `json:"bytes"`
		Update int64  `json:"update_ns"`
		Swap   int64  `json:"swap_ns"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, err
	}
	return &WeightUpdate{Name: out.Name, Tensors: out.N, Bytes: out.Bytes, Update: time.Duration(out.Update), Swap: time.Duration(out.Swap)}, nil
}

func (c *rest) activateWeights(ctx context.Context, model, name string) error {
	return c.call(ctx, "POST", c.model(model, "", "weights", "activate"), map[string]string{"weight_version": name}, nil)
}

func (c *rest) infer(ctx context.Context, r *Request) (*Response, error) {
	text := takeBuffer()
	defer putBuffer(text)
	var err error
	if *text, err = appendRequest((*text)[:0], r); err != nil {
		return nil, err
	}
	p := &payload{size: int64(len(*text))}
	p.parts = append(p.room[:0], *text)
	for i := range r.Inputs {
		p.parts = append(p.parts, r.Inputs[i].Data)
		p.size += int64(len(r.Inputs[i].Data))
	}
	// The transport may still read the body when the answer is there already.
	defer p.readers.Wait()
	header := http.Header{"Content-Type": contentBinary, headerJSONLength: {strconv.Itoa(len(*text))}}
	resp, err := c.send(ctx, "POST", c.model(r.Model, r.Version, "infer"), header, p)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readResponse(resp)
}

var contentBinary = []string{"application/octet-stream"}

// readResponse reads an answer whose outputs come as bytes behind the JSON.
func readResponse(resp *http.Response) (_ *Response, err error) {
	length := -1
	if text := resp.Header.Get(headerJSONLength); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("the answer's %s is %q", headerJSONLength, text)
		}
		length = int(n)
	}
	buffer := takeBuffer()
	defer func() {
		if err != nil {
			putBuffer(buffer)
		}
	}()
	data, err := readAligned(resp.Body, buffer, resp.ContentLength, max(length, 0))
	if err != nil {
		return nil, err
	}
	if length < 0 {
		length = len(data)
	}
	if length > len(data) {
		return nil, fmt.Errorf("the answer's %s is %d, but it has %d bytes", headerJSONLength, length, len(data))
	}
	out, err := decodeResponse(data[:length], data[length:])
	if err != nil {
		return nil, err
	}
	out.buffer = buffer
	return out, nil
}

// readAligned reads a body of size bytes, or of any if that is negative, into a pooled buffer, so
// that byte number offset is aligned as tensors are.
func readAligned(r io.Reader, buffer *[]byte, size int64, offset int) ([]byte, error) {
	if size < 0 {
		var all bytes.Buffer
		if _, err := all.ReadFrom(r); err != nil {
			return nil, err
		}
		size, r = int64(all.Len()), &all
	}
	room := alignedRoom(buffer, size, offset)
	if _, err := io.ReadFull(r, room); err != nil {
		return nil, fmt.Errorf("the answer is shorter than its length: %w", err)
	}
	return room, nil
}
