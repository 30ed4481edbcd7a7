package safetensors

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Reader reads a file from a stream, such as a request's body, tensor by tensor in the order of
// their data:
//
//	for {
//		t, err := r.Next()
//		if err == io.EOF {
//			break
//		}
//		…
//		io.ReadFull(r, data) // t.Size bytes
//	}
//
// One goroutine uses it.
type Reader struct {
	header
	r    io.Reader
	next int   // the tensor that Next returns
	left int64 // bytes of the tensor before it
	err  error
}

// NewReader reads the header of a file from r. It returns a *FormatError for a malformed one and
// wraps r's errors. Nothing beyond the file is read.
func NewReader(r io.Reader) (*Reader, error) {
	h, err := readHeader(r, -1)
	if err != nil {
		return nil, err
	}
	return &Reader{header: *h, r: r}, nil
}

// Metadata returns the free-form entries of the header, nil without any.
func (r *Reader) Metadata() map[string]string { return maps.Clone(r.metadata) }

// Tensors describes all tensors in the order in which Next returns them.
func (r *Reader) Tensors() []Info { return slices.Clone(r.tensors) }

// Size returns the length of the whole file in bytes, as its header says.
func (r *Reader) Size() int64 { return r.end }

// Next skips what is left of a tensor and goes to the following one, whose data Read then reads.
// After the last it returns io.EOF. Other errors are the stream's; one that ends too early is
// io.ErrUnexpectedEOF.
func (r *Reader) Next() (Info, error) {
	if r.left > 0 && r.err == nil {
		_, err := io.CopyN(io.Discard, r.r, r.left)
		r.stopped(err)
	}
	if r.err != nil {
		return Info{}, r.err
	}
	r.left = 0
	if r.next == len(r.tensors) {
		return Info{}, io.EOF
	}
	t := r.tensors[r.next]
	r.next++
	r.left = t.Size
	return t, nil
}

// Read reads from the data of the tensor that Next returned and returns io.EOF at its end.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if r.left == 0 {
		return n, nil
	}
	return n, r.stopped(err)
}

// stopped keeps the error of the stream inside a tensor.
func (r *Reader) stopped(err error) error {
	if err != nil {
		t := r.tensors[r.next-1]
		r.err = fmt.Errorf("tensor %q: %w", t.Name, short(err, r.left, t.Offset+t.Size-r.left))
	}
	return r.err
}
