package grpcapi

import (
	"github.com/loris-ml/loris/serve/internal/inference"
	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// request returns what a message asks for. The tensors share memory with the
// message where it has them raw.
func request(in *inferencepb.ModelInferRequest) (*inference.Request, error) {
	r := &inference.Request{
		Model: in.GetModelName(), Version: in.GetModelVersion(), ID: in.GetId(),
		Parameters: parameters(in.GetParameters()),
		Inputs:     make([]inference.Tensor, len(in.GetInputs())),
	}
	raw := in.GetRawInputContents()
	own := 0 // inputs that are in the message
	for i, t := range in.GetInputs() {
		out := &r.Inputs[i]
		out.Name, out.Datatype, out.Shape, out.Parameters = t.GetName(), inference.Datatype(t.GetDatatype()), t.GetShape(), parameters(t.GetParameters())
		if !out.Parameters.Shared() {
			own++
		}
	}
	if len(raw) != 0 && len(raw) != own {
		return nil, invalid("raw_input_contents has %d entries for %d inputs: it needs one for each, in their order", len(raw), own)
	}
	next := 0
	for i, t := range in.GetInputs() {
		out := &r.Inputs[i]
		var err error
		switch {
		case out.Parameters.Shared():
			if t.GetContents() != nil {
				err = invalid("input %q is in shared memory, and has contents besides", t.GetName())
			}
		case len(raw) == 0:
			out.Data, err = contents(t)
		case t.GetContents() != nil:
			err = invalid("input %q has contents beside raw_input_contents: give one of them", t.GetName())
		default:
			out.Data = raw[next]
			next++
		}
		if err != nil {
			return nil, err
		}
	}
	for _, o := range in.GetOutputs() {
		r.Outputs = append(r.Outputs, inference.RequestedOutput{Name: o.GetName(), Parameters: parameters(o.GetParameters())})
	}
	return r, nil
}

func invalid(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// parameters returns the values of a message's parameters as bool, int64, uint64,
// float64 or string. One without a value is left out.
func parameters(in map[string]*inferencepb.InferParameter) inference.Parameters {
	if len(in) == 0 {
		return nil
	}
	out := make(inference.Parameters, len(in))
	for k, p := range in {
		switch v := p.GetParameterChoice().(type) {
		case *inferencepb.InferParameter_BoolParam:
			out[k] = v.BoolParam
		case *inferencepb.InferParameter_Int64Param:
			out[k] = v.Int64Param
		case *inferencepb.InferParameter_Uint64Param:
			out[k] = v.Uint64Param
		case *inferencepb.InferParameter_DoubleParam:
			out[k] = v.DoubleParam
		case *inferencepb.InferParameter_StringParam:
			out[k] = v.StringParam
		}
	}
	return out
}
