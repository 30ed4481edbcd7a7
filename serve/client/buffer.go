package client

import (
	"errors"
	"io"
	"sync"

	"github.com/loris-ml/loris/serve/internal/inference"
)

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled bounds what the pool keeps for each buffer.
const maxPooled = 8 << 20

func takeBuffer() *[]byte { return buffers.Get().(*[]byte) }

// putBuffer takes a buffer that nobody reads any more; nil is none.
func putBuffer(b *[]byte) {
	if b != nil && cap(*b) <= maxPooled {
		buffers.Put(b)
	}
}

// alignedRoom returns size bytes of a buffer, which grows if need be, whose byte number offset is
// aligned.
func alignedRoom(b *[]byte, size int64, offset int) []byte {
	if int64(cap(*b)) < size+inference.Alignment {
		*b = make([]byte, size+inference.Alignment)
	}
	room := (*b)[:cap(*b)]
	return room[inference.Padding(room, offset):][:size]
}

// payload is the body of a request: parts of memory, or a stream. The transport closes a reader when
// it has done with it, be that after the answer.
type payload struct {
	size    int64
	parts   [][]byte
	stream  io.Reader
	room    [4][]byte
	readers sync.WaitGroup
}

func (p *payload) reader() io.ReadCloser {
	p.readers.Add(1)
	if p.stream != nil {
		return &payloadReader{p: p, stream: p.stream}
	}
	return &payloadReader{p: p, parts: p.parts}
}

// again returns the body from its beginning, for the transport to try another connection.
func (p *payload) again() (io.ReadCloser, error) {
	if p.stream == nil {
		return p.reader(), nil
	}
	s, ok := p.stream.(io.Seeker)
	if !ok {
		return nil, errNotAgain
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return p.reader(), nil
}

var errNotAgain = errors.New("the connection was lost, and the file cannot be read again")

type payloadReader struct {
	p      *payload
	stream io.Reader
	parts  [][]byte
	at     int // in the first part
	once   sync.Once
}

func (r *payloadReader) Read(b []byte) (n int, err error) {
	if r.stream != nil {
		return r.stream.Read(b)
	}
	for n < len(b) && len(r.parts) > 0 {
		c := copy(b[n:], r.parts[0][r.at:])
		n += c
		if r.at += c; r.at == len(r.parts[0]) {
			r.parts, r.at = r.parts[1:], 0
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close may be called twice.
func (r *payloadReader) Close() error {
	r.once.Do(r.p.readers.Done)
	return nil
}
