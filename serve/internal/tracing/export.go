package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func serviceName(version string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("service.version", version)}
	if os.Getenv("OTEL_SERVICE_NAME") == "" && !strings.Contains(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), "service.name=") {
		all = append(all, attribute.String("service.name", "loris"))
	}
	return all
}

// client sends spans by OTLP over HTTP. The exporter of OpenTelemetry for that brings all
// of gRPC with it, which the server has no other use for.
type client struct {
	url    string
	header http.Header
	http   *http.Client
}

func newExporter(ctx context.Context, endpoint string, failed func(error)) (sdk.SpanExporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the endpoint for traces is %q: expected a URL such as http://localhost:4318", endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	c := &client{url: u.String(), header: http.Header{}, http: &http.Client{Timeout: 10 * time.Second}}
	c.header.Set("Content-Type", "application/x-protobuf")
	c.header.Set("Content-Encoding", "gzip")
	for pair := range strings.SplitSeq(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE with commas")
		}
		c.header.Set(strings.TrimSpace(name), value)
	}
	exporter, err := otlptrace.New(ctx, c)
	if err != nil || failed == nil {
		return exporter, err
	}
	return reporting{exporter, failed}, nil
}

// reporting tells of spans that could not be sent.
type reporting struct {
	sdk.SpanExporter
	failed func(error)
}

// ExportSpans sends spans. They are lost if that fails: requests do not wait for it.
func (r reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.failed(err)
	}
	return nil
}

// Start does nothing: a connection is made when there is something to send.
func (*client) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// tries is how often spans are sent where the collector has too much to do.
const tries = 3

// UploadTraces sends spans; a message of the type TracesData is the same as the request
// of the protocol.
func (c *client) UploadTraces(ctx context.Context, spans []*pb.ResourceSpans) error {
	message, err := proto.Marshal(&pb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(message); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		again, err := c.post(ctx, body.Bytes())
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
}

// post sends a body once. again says that it may be sent again.
func (c *client) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = c.header.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("POST %s: %s", c.url, resp.Status)
}
