// Package weightsapi answers the requests about weights of loaded models: over HTTP
// below a model's path, and over gRPC as loris.v1.Weights. The scope is
// inference.ScopeWeights for all of them.
package weightsapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/loris-ml/loris/serve/internal/grpcapi"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/weights"
)

// Models finds loaded models.
type Models interface {
	// Weights returns the sets of a model's version, "" for the one that the server
	// chooses, and what ends their use: the model stays loaded until then. A model
	// that is not loaded is NotFound, one whose weights cannot be replaced
	// Unimplemented, all are PermissionDenied where updates are not allowed.
	Weights(ctx context.Context, model, version string) (sets *weights.Sets, done func(), err error)
}

// Options say who may do what.
type Options struct {
	// Authorize returns an *inference.Error for a caller who may not use a scope; nil
	// lets everybody.
	Authorize func(r *http.Request, scope inference.Scope) error
	// Dir is the folder in which an update by name finds its file; empty refuses those.
	Dir string
}

type api struct {
	Models
	Options
}

// Register adds the handlers for HTTP to mux, and those for gRPC to r.
func Register(mux *http.ServeMux, r *grpcapi.Registrar, m Models, o Options) {
	a := &api{m, o}
	a.registerHTTP(mux)
	a.registerGRPC(r)
}

// update runs an update of a model's weights by the file in body, or, if source is
// given, by the one that it names.
func (a *api) update(ctx context.Context, model, version, source string, body io.Reader, u weights.Update) (*weights.Updated, error) {
	sets, done, err := a.Weights(ctx, model, version)
	if err != nil {
		return nil, err
	}
	defer done()
	u.Source = "upload"
	if source != "" {
		f, err := a.open(source)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		u.Source, body = source, f
	}
	return sets.Update(ctx, body, u)
}

// open opens a file of the folder for updates. Links that leave it are followed by
// nobody.
func (a *api) open(source string) (*os.File, error) {
	name, ok := strings.CutPrefix(source, "file:")
	switch {
	case !ok:
		return nil, inference.Errorf(inference.Unimplemented, "source %q: it must be file:NAME", source)
	case a.Dir == "":
		return nil, inference.Errorf(inference.PermissionDenied, "source %q: the server has no folder of weights to update from; send the file itself", source)
	}
	f, err := os.OpenInRoot(a.Dir, name)
	if os.IsNotExist(err) {
		return nil, inference.Errorf(inference.NotFound, "source %q: there is no such file in the folder of weights", source)
	}
	if err != nil {
		return nil, inference.Errorf(inference.InvalidArgument, "source %q: %w", source, err)
	}
	return f, nil
}

// info is what GET …/weights and GetWeights answer.
type info struct {
	active    string
	sets      []weights.Set
	constants []constant
	traffic   weights.Traffic
	report    weights.ShadowReport
}

type constant struct {
	Name     string             `json:"name"`
	Datatype inference.Datatype `json:"datatype"`
	Shape    []int64            `json:"shape"`
	Folded   bool               `json:"folded"`
}

func (a *api) info(ctx context.Context, model, version string) (*info, error) {
	sets, done, err := a.Weights(ctx, model, version)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &info{active: sets.Active(), sets: sets.List(), constants: []constant{}}
	out.traffic, out.report = sets.Traffic()
	for _, k := range sets.Constants() {
		c := constant{Name: k.OriginalName, Datatype: inference.DatatypeOf(k.Shape.DType()), Shape: []int64{}, Folded: k.FromFolded}
		if c.Name == "" {
			c.Name = k.Name
		}
		if c.Datatype == "" {
			c.Datatype = inference.Datatype(fmt.Sprint(k.Shape.DType()))
		}
		for _, d := range k.Shape.Dims() {
			c.Shape = append(c.Shape, int64(d))
		}
		out.constants = append(out.constants, c)
	}
	return out, nil
}

func (a *api) activate(ctx context.Context, model, version, name string) (previous string, took time.Duration, err error) {
	sets, done, err := a.Weights(ctx, model, version)
	if err != nil {
		return "", 0, err
	}
	defer done()
	return sets.Activate(ctx, name)
}

func (a *api) drop(ctx context.Context, model, version, name string) error {
	sets, done, err := a.Weights(ctx, model, version)
	if err != nil {
		return err
	}
	defer done()
	return sets.Drop(ctx, name)
}

func (a *api) setTraffic(ctx context.Context, model, version string, t weights.Traffic) (weights.Traffic, weights.ShadowReport, error) {
	sets, done, err := a.Weights(ctx, model, version)
	if err != nil {
		return weights.Traffic{}, weights.ShadowReport{}, err
	}
	defer done()
	if err := sets.SetTraffic(t); err != nil {
		return weights.Traffic{}, weights.ShadowReport{}, err
	}
	now, report := sets.Traffic()
	return now, report, nil
}
