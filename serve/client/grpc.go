package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
	weightspb "github.com/loris-ml/loris/serve/internal/pb/weights"
)

// grpc speaks the protocol over gRPC.
type grpc struct {
	inferMethod *connect.Client[inferencepb.ModelInferRequest, inferencepb.ModelInferResponse]
	http        *http.Client
	base        string
	token       string
}

const (
	inferenceService = "/inference.GRPCInferenceService/"
	weightsService   = "/loris.v1.Weights/"
)

func newGRPC(h *http.Client, u *url.URL, token string) *grpc {
	c := &grpc{http: h, base: strings.TrimSuffix(u.String(), "/"), token: token}
	c.inferMethod = method[inferencepb.ModelInferRequest, inferencepb.ModelInferResponse](c, inferenceService+"ModelInfer")
	return c
}

func method[Req, Res any](c *grpc, path string) *connect.Client[Req, Res] {
	return connect.NewClient[Req, Res](c.http, c.base+path, connect.WithGRPC())
}

// call calls a method with one request and one answer.
func call[Req, Res any](ctx context.Context, c *grpc, m *connect.Client[Req, Res], in *Req) (*Res, error) {
	r := connect.NewRequest(in)
	c.authorize(r.Header())
	resp, err := m.CallUnary(ctx, r)
	if err != nil {
		return nil, grpcError(err)
	}
	return resp.Msg, nil
}

func (c *grpc) authorize(h http.Header) {
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
}

// grpcError returns what a server has refused as an *Error, and other failures as they are.
func grpcError(err error) error {
	c := new(connect.Error)
	if !errors.As(err, &c) {
		return err
	}
	if !connect.IsWireError(err) {
		if cause := c.Unwrap(); cause != nil {
			return cause
		}
		return err
	}
	e := &Error{Status: http.StatusInternalServerError, Message: c.Message()}
	if status, ok := statuses[c.Code()]; ok {
		e.Status = status
	}
	if ms, err := strconv.ParseUint(c.Meta().Get("Grpc-Retry-Pushback-Ms"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return e
}

func (c *grpc) ready(ctx context.Context) (bool, error) {
	m := method[inferencepb.ServerReadyRequest, inferencepb.ServerReadyResponse](c, inferenceService+"ServerReady")
	out, err := call(ctx, c, m, &inferencepb.ServerReadyRequest{})
	return out.GetReady(), err
}

func (c *grpc) metadata(ctx context.Context, model, version string) (*Metadata, error) {
	m := method[inferencepb.ModelMetadataRequest, inferencepb.ModelMetadataResponse](c, inferenceService+"ModelMetadata")
	in, err := call(ctx, c, m, &inferencepb.ModelMetadataRequest{Name: model, Version: version})
	if err != nil {
		return nil, err
	}
	out := &Metadata{Name: in.GetName(), Versions: in.GetVersions(), Platform: in.GetPlatform()}
	for _, t := range in.GetInputs() {
		out.Inputs = append(out.Inputs, Tensor{Name: t.GetName(), Datatype: t.GetDatatype(), Shape: t.GetShape()})
	}
	for _, t := range in.GetOutputs() {
		out.Outputs = append(out.Outputs, Tensor{Name: t.GetName(), Datatype: t.GetDatatype(), Shape: t.GetShape()})
	}
	return out, nil
}

func (c *grpc) load(ctx context.Context, model string) error {
	m := method[inferencepb.RepositoryModelLoadRequest, inferencepb.RepositoryModelLoadResponse](c, inferenceService+"RepositoryModelLoad")
	_, err := call(ctx, c, m, &inferencepb.RepositoryModelLoadRequest{ModelName: model})
	return err
}

func (c *grpc) unload(ctx context.Context, model string) error {
	m := method[inferencepb.RepositoryModelUnloadRequest, inferencepb.RepositoryModelUnloadResponse](c, inferenceService+"RepositoryModelUnload")
	_, err := call(ctx, c, m, &inferencepb.RepositoryModelUnloadRequest{ModelName: model})
	return err
}

// chunkBytes is the size of the pieces of a file.
const chunkBytes = 1 << 20

func (c *grpc) updateWeights(ctx context.Context, model, name string, file io.Reader) (*WeightUpdate, error) {
	ctx, stop := context.WithCancel(ctx) // ends the stream if the file cannot be read
	defer stop()
	m := method[weightspb.UpdateWeightsRequest, weightspb.UpdateWeightsResponse](c, weightsService+"UpdateWeights")
	stream := m.CallClientStream(ctx)
	c.authorize(stream.RequestHeader())
	header := &weightspb.UpdateWeightsRequest_Header{ModelName: model, WeightVersion: name}
	err := stream.Send(&weightspb.UpdateWeightsRequest{Part: &weightspb.UpdateWeightsRequest_Header_{Header: header}})
	piece := make([]byte, chunkBytes)
	for err == nil {
		n, end := io.ReadFull(file, piece)
		if n > 0 {
			err = stream.Send(&weightspb.UpdateWeightsRequest{Part: &weightspb.UpdateWeightsRequest_Chunk{Chunk: piece[:n]}})
		}
		if end == io.EOF || end == io.ErrUnexpectedEOF {
			break
		}
		if end != nil {
			return nil, end
		}
	}
	// A failure to send is that the server has answered already.
	resp, err := stream.CloseAndReceive()
	if err != nil {
		return nil, grpcError(err)
	}
	out := resp.Msg
	return &WeightUpdate{
		Name: out.GetWeightVersion(), Tensors: int(out.GetUpdated()), Bytes: int64(out.GetBytes()),
		Update: time.Duration(out.GetUpdateNs()), Swap: time.Duration(out.GetSwapNs()),
	}, nil
}

func (c *grpc) activateWeights(ctx context.Context, model, name string) error {
	m := method[weightspb.ActivateWeightsRequest, weightspb.ActivateWeightsResponse](c, weightsService+"ActivateWeights")
	_, err := call(ctx, c, m, &weightspb.ActivateWeightsRequest{ModelName: model, WeightVersion: name})
	return err
}

func (c *grpc) infer(ctx context.Context, r *Request) (*Response, error) {
	in := &inferencepb.ModelInferRequest{ModelName: r.Model, ModelVersion: r.Version, Id: r.ID}
	var err error
	if in.Parameters, err = parameterMessages(r.Parameters); err != nil {
		return nil, err
	}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		p, err := parameterMessages(t.Parameters)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
		in.Inputs = append(in.Inputs, &inferencepb.ModelInferRequest_InferInputTensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape, Parameters: p})
		in.RawInputContents = append(in.RawInputContents, t.Data)
	}
	for _, name := range r.Outputs {
		in.Outputs = append(in.Outputs, &inferencepb.ModelInferRequest_InferRequestedOutputTensor{Name: name})
	}
	out, err := call(ctx, c, c.inferMethod, in)
	if err != nil {
		return nil, err
	}
	if len(out.GetRawOutputContents()) != len(out.GetOutputs()) {
		return nil, fmt.Errorf("the answer has %d outputs, and the bytes of %d", len(out.GetOutputs()), len(out.GetRawOutputContents()))
	}
	resp := &Response{
		Model: out.GetModelName(), Version: out.GetModelVersion(), ID: out.GetId(),
		Parameters: parametersOf(out.GetParameters()), Outputs: make([]Tensor, len(out.GetOutputs())),
	}
	for i, t := range out.GetOutputs() {
		resp.Outputs[i] = Tensor{
			Name: t.GetName(), Datatype: t.GetDatatype(), Shape: t.GetShape(), Data: out.GetRawOutputContents()[i], Parameters: parametersOf(t.GetParameters()),
		}
	}
	return resp, nil
}

func parameterMessages(in map[string]any) (map[string]*inferencepb.InferParameter, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make(map[string]*inferencepb.InferParameter, len(in))
	for key, value := range in {
		m := &inferencepb.InferParameter{}
		switch v := value.(type) {
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
			return nil, fmt.Errorf("parameter %q is a %T; there are bool, int64, uint64, float64 and string", key, value)
		}
		out[key] = m
	}
	return out, nil
}

func parametersOf(in map[string]*inferencepb.InferParameter) map[string]any {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]any, len(in))
	for key, p := range in {
		switch v := p.GetParameterChoice().(type) {
		case *inferencepb.InferParameter_BoolParam:
			out[key] = v.BoolParam
		case *inferencepb.InferParameter_Int64Param:
			out[key] = v.Int64Param
		case *inferencepb.InferParameter_Uint64Param:
			out[key] = v.Uint64Param
		case *inferencepb.InferParameter_DoubleParam:
			out[key] = v.DoubleParam
		case *inferencepb.InferParameter_StringParam:
			out[key] = v.StringParam
		}
	}
	return out
}
