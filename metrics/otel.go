package metrics

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/loris-ml/loris"
)

// Observer returns a function for Hooks.Observe that records a span for every
// stage of a sync, named "loris.collect", "loris.compile" and so on. A run has
// the device and the graph hash as attributes, and its error as status.
func Observer(tracer trace.Tracer) func(loris.Observation) {
	return func(o loris.Observation) {
		_, span := tracer.Start(context.Background(), "loris."+o.Stage.String(), trace.WithTimestamp(o.Start))
		if o.Stage == loris.StageRun {
			span.SetAttributes(
				attribute.String("loris.device", o.Device.String()),
				attribute.String("loris.graph_hash", o.Hash.String()))
		}
		if o.Err != nil {
			span.RecordError(o.Err)
			span.SetStatus(codes.Error, o.Err.Error())
		}
		span.End(trace.WithTimestamp(o.Start.Add(o.Duration)))
	}
}
