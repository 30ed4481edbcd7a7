// Package client calls servers of the Open Inference Protocol v2, such as `loris serve` and
// Triton, over REST with binary tensors or over gRPC.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Options{})
//	x := client.FromSlice("INPUT__0", pixels, 1, 3, 224, 224)
//	r, err := c.Infer(ctx, &client.Request{Model: "resnet", Inputs: []client.Tensor{x}})
//	logits, err := client.Slice[float32](&r.Outputs[0])
//	r.Release()
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Options configure a Client. The zero value is for a server that asks for no token.
type Options struct {
	// Token is sent as the bearer token of each request; empty for none.
	Token string
	// HTTPClient sends the requests; nil for one that keeps as many idle connections as
	// were used at once. For gRPC its transport must speak HTTP/2.
	HTTPClient *http.Client
}

// Client calls one server. Its methods are safe for concurrent use, wait for the answer as long
// as their context allows, and return an *Error for what the server refuses.
type Client struct {
	protocol
	http *http.Client
}

// protocol is what REST and gRPC both can.
type protocol interface {
	infer(ctx context.Context, r *Request) (*Response, error)
	ready(ctx context.Context) (bool, error)
	metadata(ctx context.Context, model, version string) (*Metadata, error)
	load(ctx context.Context, model string) error
	unload(ctx context.Context, model string) error
	updateWeights(ctx context.Context, model, name string, file io.Reader) (*WeightUpdate, error)
	activateWeights(ctx context.Context, model, name string) error
}

// New returns a Client of the server at an address: http://HOST:PORT or https:// for REST,
// grpc://HOST:PORT or grpcs:// for gRPC. It connects to nothing yet.
func New(address string, o Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of a server is SCHEME://HOST:PORT, not %q", address)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1 << 16, IdleConnTimeout: 90 * time.Second,
		// Numbers of models hardly shrink.
		DisableCompression: true,
	}
	grpc := false
	switch u.Scheme {
	case "http", "https":
	case "grpc", "grpcs":
		grpc = true
		u.Scheme = map[string]string{"grpc": "http", "grpcs": "https"}[u.Scheme]
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(u.Scheme == "https")
		transport.Protocols.SetUnencryptedHTTP2(u.Scheme == "http")
	default:
		return nil, fmt.Errorf("the scheme of %q is none of http, https, grpc and grpcs", address)
	}
	c := &Client{http: o.HTTPClient}
	if c.http == nil {
		c.http = &http.Client{Transport: transport}
	}
	if grpc {
		c.protocol = newGRPC(c.http, u, o.Token)
	} else {
		c.protocol = newREST(c.http, u, o.Token)
	}
	return c, nil
}

// Close closes the idle connections. Requests in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request asks a model for its outputs.
type Request struct {
	Model string
	// Version is empty for the one that the server chooses.
	Version string
	// ID is given back in the answer.
	ID     string
	Inputs []Tensor
	// Outputs names those that are wanted, in this order; nil wants all.
	Outputs []string
	// Parameters are bools, int64s, float64s and strings, such as "priority" and "timeout".
	Parameters map[string]any
}

// Response answers a Request.
type Response struct {
	Model, Version, ID string
	// Parameters are bools, int64s, float64s and strings; "weight_version" is the set of
	// weights that computed the outputs, where a server says it.
	Parameters map[string]any
	// Outputs share memory that Release gives back.
	Outputs []Tensor

	buffer *[]byte
}

// Output returns an output by name; nil if the response has none such.
func (r *Response) Output(name string) *Tensor {
	for i := range r.Outputs {
		if r.Outputs[i].Name == name {
			return &r.Outputs[i]
		}
	}
	return nil
}

// Release gives the memory of the outputs to later responses; they cannot be read afterwards. A
// response that is not released is left to the garbage collector.
func (r *Response) Release() {
	putBuffer(r.buffer)
	r.buffer, r.Outputs = nil, nil
}

// Metadata describes a model; -1 in a shape is a dimension that varies.
type Metadata struct {
	Name            string
	Versions        []string
	Platform        string
	Inputs, Outputs []Tensor // without data
}

// WeightUpdate is what came of an update of weights.
type WeightUpdate struct {
	// Name is that of the new set, which is active.
	Name string
	// Tensors is how many the file gave, and Bytes how large they are.
	Tensors int
	Bytes   int64
	// Update is how long the server took to make the set, Swap to activate it.
	Update, Swap time.Duration
}

var errNilContext = errors.New("the context is nil")

// Infer computes outputs. The data of the inputs must not change until it returns.
func (c *Client) Infer(ctx context.Context, r *Request) (*Response, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	for i := range r.Inputs {
		if err := r.Inputs[i].check(); err != nil {
			return nil, err
		}
	}
	return c.infer(ctx, r)
}

// Ready reports whether every model that the server was to load answers requests.
func (c *Client) Ready(ctx context.Context) (bool, error) {
	if ctx == nil {
		return false, errNilContext
	}
	return c.ready(ctx)
}

// Metadata describes a model; version is empty for the one that the server chooses.
func (c *Client) Metadata(ctx context.Context, model, version string) (*Metadata, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	return c.metadata(ctx, model, version)
}

// Load loads a model of the server's repository, or loads it anew, and waits until requests get it.
func (c *Client) Load(ctx context.Context, model string) error {
	if ctx == nil {
		return errNilContext
	}
	return c.load(ctx, model)
}

// Unload has the server forget a model once its requests in flight are answered.
func (c *Client) Unload(ctx context.Context, model string) error {
	if ctx == nil {
		return errNilContext
	}
	return c.unload(ctx, model)
}

// UpdateWeights sends a safetensors file whose tensors become the weights of a model, as a set of
// the name (empty has the server choose one), and activates it. If it fails, a Read of the file may
// still be under way. It is an extension of Loris.
func (c *Client) UpdateWeights(ctx context.Context, model, name string, file io.Reader) (*WeightUpdate, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	return c.updateWeights(ctx, model, name, file)
}

// ActivateWeights makes a set of weights that the server has the one that computes. It is an
// extension of Loris.
func (c *Client) ActivateWeights(ctx context.Context, model, name string) error {
	if ctx == nil {
		return errNilContext
	}
	return c.activateWeights(ctx, model, name)
}
