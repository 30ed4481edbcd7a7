package grpcapi

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math"

	"connectrpc.com/connect"
)

// compression takes and gives gzip, and what gRPC calls deflate, which is zlib's
// format. No message expands to more than some bytes beyond max, not even where
// connect only counts how far it would; 0 does not bound it.
func compression(max int) connect.HandlerOption {
	limit := int64(math.MaxInt64)
	if max > 0 {
		limit = int64(max) + 2 // connect sees that it is too large by one byte more
	}
	return connect.WithHandlerOptions(
		connect.WithCompression("gzip", func() connect.Decompressor { return &inflater{limit: limit, open: openGzip} },
			func() connect.Compressor { return gzip.NewWriter(io.Discard) }),
		connect.WithCompression("deflate", func() connect.Decompressor { return &inflater{limit: limit, open: openZlib} },
			func() connect.Compressor { return zlib.NewWriter(io.Discard) }),
	)
}

func openGzip(old io.ReadCloser, src io.Reader) (io.ReadCloser, error) {
	if z, ok := old.(*gzip.Reader); ok {
		return z, z.Reset(src)
	}
	return gzip.NewReader(src)
}

func openZlib(old io.ReadCloser, src io.Reader) (io.ReadCloser, error) {
	if z, ok := old.(zlib.Resetter); ok {
		return old, z.Reset(src, nil)
	}
	return zlib.NewReader(src)
}

var errExpands = errors.New("the message expands to more than the server takes")

// inflater is a decompressor that begins with Reset and ends at a limit.
type inflater struct {
	limit, left int64
	open        func(old io.ReadCloser, src io.Reader) (io.ReadCloser, error)
	z           io.ReadCloser // nil before the first header was read
}

func (i *inflater) Reset(src io.Reader) error {
	z, err := i.open(i.z, src)
	if i.z == nil && err != nil {
		return err
	}
	i.z, i.left = z, i.limit
	return err
}

func (i *inflater) Read(p []byte) (int, error) {
	if i.z == nil {
		return 0, io.ErrUnexpectedEOF
	}
	if i.left <= 0 {
		return 0, errExpands
	}
	n, err := i.z.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}

func (i *inflater) Close() error {
	if i.z == nil {
		return nil
	}
	return i.z.Close()
}
