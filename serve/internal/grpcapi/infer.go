package grpcapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// modelInferHandler answers ModelInfer. Requests that are plain, one message that is not compressed
// and has no deadline, are answered without connect, which takes longer for one than the rest of the
// server. What is odd about others is connect's to say.
func (s *server) modelInferHandler(o Options, options []connect.HandlerOption) http.Handler {
	h := connect.NewUnaryHandler(procedure(serviceName, "ModelInfer"), s.modelInfer, options...)
	refuse := connect.NewErrorWriter(options...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The response shares its memory with the model until its message has been written.
		l := &lease{}
		defer func() {
			if l.held != nil {
				l.held.Release()
			}
		}()
		other := func() {
			r = r.WithContext(context.WithValue(r.Context(), leaseKey{}, l))
			r.Header = r.Header.Clone() // connect adds to it
			h.ServeHTTP(w, r)
		}
		if !isPlain(r) {
			other()
			return
		}
		m := messages.Get().(*message)
		defer m.release()
		in := &inferencepb.ModelInferRequest{}
		if !m.read(r, o.MaxMessage) || proto.Unmarshal(m.data[prefixSize:], in) != nil {
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(m.data), r.Body))
			other()
			return
		}
		err := m.answer(func() (_ *inferencepb.ModelInferResponse, err error) {
			if l.held, err = s.infer(r.Context(), in); err != nil {
				return nil, err
			}
			return response(l.held), nil
		})
		if err != nil {
			_ = refuse.Write(w, r, status(err)) // fails if the client is gone
			return
		}
		header := w.Header()
		header["Content-Type"] = r.Header["Content-Type"]
		header["Grpc-Accept-Encoding"] = acceptEncoding
		header[http.TrailerPrefix+"Grpc-Status"] = statusOK
		_, _ = w.Write(m.data) // fails if the client is gone
	})
}

var acceptEncoding, statusOK = []string{"gzip,deflate"}, []string{"0"}

// isPlain reports whether a request may be answered without connect.
func isPlain(r *http.Request) bool {
	kind := r.Header["Content-Type"]
	encoding := r.Header["Grpc-Encoding"]
	return r.Method == http.MethodPost && r.ProtoMajor == 2 && len(kind) == 1 && (kind[0] == "application/grpc" || kind[0] == "application/grpc+proto") &&
		(len(encoding) == 0 || len(encoding) == 1 && encoding[0] == "identity") && r.Header["Grpc-Timeout"] == nil
}

// message is one of gRPC with its prefix: whether it is compressed, and its length.
type message struct {
	data []byte
	more [1]byte
}

const prefixSize = 5

var messages = sync.Pool{New: func() any { return &message{} }}

// maxPooled is what of the memory for messages is kept.
const maxPooled = 8 << 20

func (m *message) release() {
	if cap(m.data) <= maxPooled {
		messages.Put(m)
	}
}

// read reads the only message of a request; false if it is not alone, or no message.
func (m *message) read(r *http.Request, most int) bool {
	if !m.extend(r, prefixSize, 0) || m.data[0] != 0 {
		return false
	}
	size := int64(binary.BigEndian.Uint32(m.data[1:]))
	if most > 0 && size > int64(most) || !m.extend(r, int(size), prefixSize) {
		return false
	}
	n, err := io.ReadFull(r.Body, m.more[:])
	m.data = append(m.data, m.more[:n]...)
	return n == 0 && err == io.EOF
}

// extend reads n bytes behind the first ones. What is announced and does not come takes no memory.
func (m *message) extend(r *http.Request, n, first int) bool {
	const piece = 1 << 20
	m.data = m.data[:first]
	for end := first + n; len(m.data) < end; {
		at := len(m.data)
		m.data = slices.Grow(m.data, min(end-at, piece))[:min(end, at+piece)]
		got, err := io.ReadFull(r.Body, m.data[at:])
		if m.data = m.data[:at+got]; err != nil {
			return false
		}
	}
	return true
}

// answer has a function make the answer, and puts it in the place of the request. A panic is an error.
func (m *message) answer(make func() (*inferencepb.ModelInferResponse, error)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = connect.NewError(connect.CodeInternal, fmt.Errorf("panic in %s: %v", procedure(serviceName, "ModelInfer"), v))
		}
	}()
	out, err := make()
	if err != nil {
		return err
	}
	if m.data, err = (proto.MarshalOptions{}).MarshalAppend(append(m.data[:0], 0, 0, 0, 0, 0), out); err != nil {
		return err
	}
	if size := len(m.data) - prefixSize; size > math.MaxUint32 {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the answer has %d bytes, and a message at most %d", size, math.MaxUint32))
	}
	binary.BigEndian.PutUint32(m.data[1:], uint32(len(m.data)-prefixSize))
	return nil
}

// lease holds the response that a handler returned until its message was written.
type lease struct{ held *inference.Response }

type leaseKey struct{}

func (s *server) modelInfer(ctx context.Context, in *connect.Request[inferencepb.ModelInferRequest]) (*connect.Response[inferencepb.ModelInferResponse], error) {
	r, err := s.infer(ctx, in.Msg)
	if err != nil {
		return nil, status(err)
	}
	if l, ok := ctx.Value(leaseKey{}).(*lease); ok {
		l.held = r
	}
	return connect.NewResponse(response(r)), nil
}

func (s *server) infer(ctx context.Context, in *inferencepb.ModelInferRequest) (*inference.Response, error) {
	r, err := request(in)
	if err != nil {
		return nil, err
	}
	return s.Infer(ctx, r)
}

// modelStreamInfer answers request by request. What goes wrong with one is in its
// answer; the stream ends when the client ends it or is gone.
func (s *server) modelStreamInfer(ctx context.Context, stream *connect.BidiStream[inferencepb.ModelInferRequest, inferencepb.ModelStreamInferResponse]) error {
	for {
		in, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := s.infer(ctx, in)
		if err == nil {
			err = stream.Send(&inferencepb.ModelStreamInferResponse{InferResponse: response(r)})
			r.Release()
		} else if ctx.Err() != nil {
			return status(err)
		} else {
			err = stream.Send(&inferencepb.ModelStreamInferResponse{
				ErrorMessage:  inference.AsError(err).Error(),
				InferResponse: &inferencepb.ModelInferResponse{ModelName: in.GetModelName(), ModelVersion: in.GetModelVersion(), Id: in.GetId()},
			})
		}
		if err != nil {
			return err
		}
	}
}
