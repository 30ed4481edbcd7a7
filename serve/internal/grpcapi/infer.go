package grpcapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// lease holds the response that a handler returned until its message was written.
type lease struct{ held *inference.Response }

type leaseKey struct{}

// modelInferHandler releases the response when the message that shares its memory
// has been written.
func (s *server) modelInferHandler(options []connect.HandlerOption) http.Handler {
	h := connect.NewUnaryHandler(procedure(serviceName, "ModelInfer"), s.modelInfer, options...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l := &lease{}
		defer func() {
			if l.held != nil {
				l.held.Release()
			}
		}()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), leaseKey{}, l)))
	})
}

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
