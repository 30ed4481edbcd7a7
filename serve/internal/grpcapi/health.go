package grpcapi

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// healthName is the name of the standard health service.
const healthName = "grpc.health.v1.Health"

// The states of a service, as the health service numbers them.
const (
	statusServing        = 1
	statusNotServing     = 2
	statusServiceUnknown = 3
)

// pollHealth is how often Watch looks whether the state has changed.
const pollHealth = 200 * time.Millisecond

// The messages of the health service are those of google.protobuf with the same
// bytes: a string, and a number, each in field 1. Messages of its own names would
// clash with those of google.golang.org/grpc in programs that use both.
type (
	healthRequest  = wrapperspb.StringValue
	healthResponse = wrapperspb.Int32Value
)

// addHealth adds the standard health service, of the server as a whole ("") and of
// the inference service.
func addHealth(r *Registrar, srv inference.Service) {
	state := func(service string) int32 {
		switch {
		case service != "" && service != serviceName:
			return statusServiceUnknown
		case srv.Ready():
			return statusServing
		}
		return statusNotServing
	}
	AddUnary(r, healthName, "Check", inference.ScopeHealth, func(_ context.Context, in *healthRequest) (*healthResponse, error) {
		s := state(in.GetValue())
		if s == statusServiceUnknown {
			return nil, inference.Errorf(inference.NotFound, "there is no service %q; there is %q", in.GetValue(), serviceName)
		}
		return wrapperspb.Int32(s), nil
	})
	r.add(healthName, "Watch", inference.ScopeHealth, connect.NewServerStreamHandler(procedure(healthName, "Watch"),
		func(ctx context.Context, in *connect.Request[healthRequest], out *connect.ServerStream[healthResponse]) error {
			tick := time.NewTicker(pollHealth)
			defer tick.Stop()
			for last := int32(-1); ; {
				if s := state(in.Msg.GetValue()); s != last {
					if err := out.Send(wrapperspb.Int32(s)); err != nil {
						return err
					}
					last = s
				}
				select {
				case <-ctx.Done():
					return status(ctx.Err())
				case <-tick.C:
				}
			}
		}, r.options...))
}
