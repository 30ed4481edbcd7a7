package rest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// body is the body of a request, in memory that goes back to a pool.
type body struct {
	data   []byte
	pooled *[]byte
}

var bodies = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled bounds what a pool keeps for each body.
const maxPooled = 8 << 20

// release gives the memory back, after which nobody may read data.
func (b *body) release() {
	if b.pooled != nil && cap(*b.pooled) <= maxPooled {
		bodies.Put(b.pooled)
	}
	*b = body{}
}

// readBody reads a body of limit bytes at most, decoded, so that its byte number
// offset is aligned as tensors are.
func readBody(r *http.Request, limit int64, offset int) (b body, err error) {
	decoded, err := decodedBody(r)
	if err != nil {
		return body{}, err
	}
	tooLarge := func() error {
		return inference.Errorf(inference.TooLarge, "the body is larger than the %d bytes that this server takes", limit)
	}
	size := r.ContentLength
	if size > limit {
		return body{}, tooLarge()
	}
	if decoded != r.Body { // its length is that before decoding
		size = -1
	}
	b.pooled = bodies.Get().(*[]byte)
	defer func() {
		if err != nil {
			b.release()
		}
	}()
	// A slice has no address that can be relied on, so room for one alignment is left
	// in front.
	want := int(max(size, 4096))
	if cap(*b.pooled) < want+inference.Alignment {
		*b.pooled = make([]byte, want+inference.Alignment)
	}
	room := (*b.pooled)[:cap(*b.pooled)]
	room = room[inference.Padding(room, offset):]
	if size >= 0 {
		b.data = room[:size]
		_, err = io.ReadFull(decoded, b.data)
		return b, bodyError(err)
	}
	b.data, err = readGrowing(decoded, room[:0], limit, offset)
	if errors.Is(err, errTooLarge) {
		return b, tooLarge()
	}
	return b, bodyError(err)
}

var errTooLarge = errors.New("too large")

// readGrowing reads all of r, first into room, and moves when that is full.
func readGrowing(r io.Reader, room []byte, limit int64, offset int) ([]byte, error) {
	for {
		if len(room) == cap(room) {
			grown := make([]byte, 2*cap(room)+inference.Alignment)
			pad := inference.Padding(grown, offset)
			room = grown[pad : pad+copy(grown[pad:], room)]
		}
		n, err := r.Read(room[len(room):cap(room)])
		room = room[:len(room)+n]
		switch {
		case int64(len(room)) > limit:
			return room, errTooLarge
		case err == io.EOF:
			return room, nil
		case err != nil:
			return room, err
		}
	}
}

// bodyError is a failure to read a body as the client is told of it.
func bodyError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return badf("the body ends before the length that was announced: %w", err)
	}
	return badf("reading the body: %w", err)
}

// decodedBody returns the body with its Content-Encoding undone.
func decodedBody(r *http.Request) (io.Reader, error) {
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, badf("the body is not gzip: %w", err)
		}
		return z, nil
	case "deflate":
		z, err := zlib.NewReader(r.Body)
		if err != nil {
			return nil, badf("the body is not deflate (RFC 1950): %w", err)
		}
		return z, nil
	default:
		return nil, badf("Content-Encoding is %q; this server takes gzip, deflate and identity", coding)
	}
}

// jsonLength returns the length of the JSON in the body as the header of binary
// requests says it; -1 without that header.
func jsonLength(r *http.Request) (int, error) {
	text := r.Header.Get(headerJSONLength)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, badf("%s: expected a number of bytes, got %q", headerJSONLength, text)
	}
	return int(n), nil
}

const headerJSONLength = "Inference-Header-Content-Length"

// compressed returns parts in the coding, in one piece.
func compressed(coding string, parts ...[]byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	if coding == "gzip" {
		w, err = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	} else {
		w, err = zlib.NewWriterLevel(&out, zlib.BestSpeed)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
