package grpcapi

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// response returns the message for an answer, whose outputs are raw, as Triton
// answers. It shares their memory.
func response(r *inference.Response) *inferencepb.ModelInferResponse {
	out := &inferencepb.ModelInferResponse{
		ModelName: r.Model, ModelVersion: r.Version, Id: r.ID,
		Parameters:        parameterMessages(r.Parameters),
		Outputs:           make([]*inferencepb.ModelInferResponse_InferOutputTensor, len(r.Outputs)),
		RawOutputContents: make([][]byte, len(r.Outputs)),
	}
	for i := range r.Outputs {
		t := &r.Outputs[i]
		out.Outputs[i] = &inferencepb.ModelInferResponse_InferOutputTensor{
			Name: t.Name, Datatype: string(t.Datatype), Shape: t.Shape, Parameters: parameterMessages(t.Parameters),
		}
		out.RawOutputContents[i] = t.Data
	}
	return out
}

func parameterMessages(in inference.Parameters) map[string]*inferencepb.InferParameter {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]*inferencepb.InferParameter, len(in))
	for k, p := range in {
		m := &inferencepb.InferParameter{}
		switch v := p.(type) {
		case bool:
			m.ParameterChoice = &inferencepb.InferParameter_BoolParam{BoolParam: v}
		case int64:
			m.ParameterChoice = &inferencepb.InferParameter_Int64Param{Int64Param: v}
		case uint64:
			m.ParameterChoice = &inferencepb.InferParameter_Uint64Param{Uint64Param: v}
		case float64:
			m.ParameterChoice = &inferencepb.InferParameter_DoubleParam{DoubleParam: v}
		case string:
			m.ParameterChoice = &inferencepb.InferParameter_StringParam{StringParam: v}
		default:
			m.ParameterChoice = &inferencepb.InferParameter_StringParam{StringParam: fmt.Sprint(v)}
		}
		out[k] = m
	}
	return out
}

// kindCodes are the statuses of the kinds of errors.
var kindCodes = map[inference.Kind]connect.Code{
	inference.Internal:          connect.CodeInternal,
	inference.InvalidArgument:   connect.CodeInvalidArgument,
	inference.NotFound:          connect.CodeNotFound,
	inference.AlreadyExists:     connect.CodeAlreadyExists,
	inference.Conflict:          connect.CodeAborted,
	inference.Unimplemented:     connect.CodeUnimplemented,
	inference.Unauthenticated:   connect.CodeUnauthenticated,
	inference.PermissionDenied:  connect.CodePermissionDenied,
	inference.ResourceExhausted: connect.CodeResourceExhausted,
	inference.Unavailable:       connect.CodeUnavailable,
	inference.DeadlineExceeded:  connect.CodeDeadlineExceeded,
	inference.Canceled:          connect.CodeCanceled,
	inference.TooLarge:          connect.CodeResourceExhausted,
}

// StreamError returns an error of reading a stream of messages with its kind.
func StreamError(err error) error {
	kind := inference.InvalidArgument
	switch connect.CodeOf(err) {
	case connect.CodeCanceled:
		kind = inference.Canceled
	case connect.CodeDeadlineExceeded:
		kind = inference.DeadlineExceeded
	case connect.CodeResourceExhausted:
		kind = inference.TooLarge
	}
	return inference.Errorf(kind, "%w", err)
}

// status returns the error for a client, with the time after which to try again
// where it says one.
func status(err error) error {
	if c := new(connect.Error); errors.As(err, &c) {
		return c
	}
	e := inference.AsError(err)
	code, ok := kindCodes[e.Kind]
	if !ok {
		code = connect.CodeInternal
	}
	out := connect.NewError(code, e)
	if e.RetryAfter > 0 {
		out.Meta().Set("Grpc-Retry-Pushback-Ms", fmt.Sprint(e.RetryAfter.Milliseconds()))
	}
	return out
}
