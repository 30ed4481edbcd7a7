package weightsapi

import (
	"context"
	"io"

	"connectrpc.com/connect"

	"github.com/loris-ml/loris/serve/internal/grpcapi"
	"github.com/loris-ml/loris/serve/internal/inference"
	weightspb "github.com/loris-ml/loris/serve/internal/pb/weights"
	"github.com/loris-ml/loris/serve/internal/weights"
)

const serviceName = "loris.v1.Weights"

func (a *api) registerGRPC(r *grpcapi.Registrar) {
	grpcapi.AddUnary(r, serviceName, "GetWeights", inference.ScopeWeights, a.getGRPC)
	grpcapi.AddUnary(r, serviceName, "ActivateWeights", inference.ScopeWeights, a.activateGRPC)
	grpcapi.AddUnary(r, serviceName, "DropWeights", inference.ScopeWeights, a.dropGRPC)
	grpcapi.AddUnary(r, serviceName, "SetTraffic", inference.ScopeWeights, a.trafficGRPC)
	grpcapi.AddClientStream(r, serviceName, "UpdateWeights", inference.ScopeWeights, a.updateGRPC)
}

func (a *api) getGRPC(ctx context.Context, r *weightspb.GetWeightsRequest) (*weightspb.GetWeightsResponse, error) {
	in, err := a.info(ctx, r.GetModelName(), r.GetModelVersion())
	if err != nil {
		return nil, err
	}
	out := &weightspb.GetWeightsResponse{Active: in.active, Traffic: trafficMessage(in.traffic, in.report)}
	for _, s := range in.sets {
		out.Sets = append(out.Sets, &weightspb.WeightSet{
			WeightVersion: s.Name, Bytes: uint64(s.Bytes), UnixNano: s.Made.UnixNano(), Source: s.Source, Sha256: s.SHA256,
		})
	}
	for _, c := range in.constants {
		out.Constants = append(out.Constants, &weightspb.Constant{Name: c.Name, Datatype: string(c.Datatype), Shape: c.Shape, Folded: c.Folded})
	}
	return out, nil
}

func trafficMessage(t weights.Traffic, r weights.ShadowReport) *weightspb.Traffic {
	return &weightspb.Traffic{
		Canary: t.Canary, CanaryPercent: t.Percent, Shadow: t.Shadow,
		Report: &weightspb.ShadowReport{Compared: r.Compared, Failed: r.Failed, Different: r.Different, MaxAbsDifference: r.MaxAbs},
	}
}

func (a *api) activateGRPC(ctx context.Context, r *weightspb.ActivateWeightsRequest) (*weightspb.ActivateWeightsResponse, error) {
	previous, took, err := a.activate(ctx, r.GetModelName(), r.GetModelVersion(), r.GetWeightVersion())
	if err != nil {
		return nil, err
	}
	return &weightspb.ActivateWeightsResponse{Active: r.GetWeightVersion(), Previous: previous, SwapNs: uint64(took.Nanoseconds())}, nil
}

func (a *api) dropGRPC(ctx context.Context, r *weightspb.DropWeightsRequest) (*weightspb.DropWeightsResponse, error) {
	return &weightspb.DropWeightsResponse{}, a.drop(ctx, r.GetModelName(), r.GetModelVersion(), r.GetWeightVersion())
}

func (a *api) trafficGRPC(ctx context.Context, r *weightspb.SetTrafficRequest) (*weightspb.SetTrafficResponse, error) {
	t := r.GetTraffic()
	now, report, err := a.setTraffic(ctx, r.GetModelName(), r.GetModelVersion(), weights.Traffic{Canary: t.GetCanary(), Percent: t.GetCanaryPercent(), Shadow: t.GetShadow()})
	if err != nil {
		return nil, err
	}
	return &weightspb.SetTrafficResponse{Traffic: trafficMessage(now, report)}, nil
}

func (a *api) updateGRPC(ctx context.Context, stream *connect.ClientStream[weightspb.UpdateWeightsRequest]) (*weightspb.UpdateWeightsResponse, error) {
	body := &chunks{stream: stream}
	h, err := body.header()
	if err != nil {
		return nil, err
	}
	done, err := a.update(ctx, h.GetModelName(), h.GetModelVersion(), "", body, weights.Update{
		Name: h.GetWeightVersion(), Partial: h.GetPartial(), KeepActive: h.GetNoActivate(), Check: h.GetCheck(), SHA256: h.GetSha256(),
	})
	if err != nil {
		return nil, err
	}
	return &weightspb.UpdateWeightsResponse{
		WeightVersion: done.Name, Active: done.Active, Updated: uint64(done.Tensors), Bytes: uint64(done.Bytes),
		UpdateNs: uint64(done.Update.Nanoseconds()), SwapNs: uint64(done.Swap.Nanoseconds()),
	}, nil
}

// chunks reads the pieces of a stream one after another.
type chunks struct {
	stream *connect.ClientStream[weightspb.UpdateWeightsRequest]
	rest   []byte
}

func (c *chunks) header() (*weightspb.UpdateWeightsRequest_Header, error) {
	if !c.stream.Receive() {
		if err := c.stream.Err(); err != nil {
			return nil, grpcapi.StreamError(err)
		}
		return nil, inference.Errorf(inference.InvalidArgument, "the stream has no messages: the first is the header")
	}
	h := c.stream.Msg().GetHeader()
	if h == nil {
		return nil, inference.Errorf(inference.InvalidArgument, "the first message is no header")
	}
	return h, nil
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if !c.stream.Receive() {
			if err := c.stream.Err(); err != nil {
				return 0, grpcapi.StreamError(err)
			}
			return 0, io.EOF
		}
		m := c.stream.Msg()
		if m.GetHeader() != nil {
			return 0, inference.Errorf(inference.InvalidArgument, "a header follows the first message of the stream")
		}
		c.rest = m.GetChunk()
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
