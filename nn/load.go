package nn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/internal/tracing"
	"github.com/loris-ml/loris/safetensors"
)

// LoadOption changes what Load takes from a file.
type LoadOption func(*loading)

// loading is what the options of Load set.
type loading struct {
	prefix string
	rename map[string]string
	report *LoadReport
	cast   bool
}

// LoadReport tells what Partial let pass, in the order of the module and of the file.
type LoadReport struct {
	Missing    []string // variables that the file lacks, which keep their values
	Unexpected []string // tensors of the file, by their names there, that the module lacks
}

// Prefix takes the tensors of the file whose names begin with p, such as "model.", without it,
// and ignores all others.
func Prefix(p string) LoadOption { return func(l *loading) { l.prefix = p } }

// Rename maps names of the file, after Prefix, to the module's. A name that ends in a dot
// stands for all names that begin with it; of several that fit the longest counts.
func Rename(names map[string]string) LoadOption {
	return func(l *loading) { l.rename = maps.Clone(names) }
}

// Partial makes missing and unexpected tensors no error, as strict=False in PyTorch, and
// writes their names to report unless it is nil. Another shape or dtype stays an error.
func Partial(report *LoadReport) LoadOption {
	if report == nil {
		report = &LoadReport{}
	}
	return func(l *loading) { l.report = report }
}

// CastFloats converts tensors of the file to the dtypes of the module where both are
// floating.
func CastFloats() LoadOption { return func(l *loading) { l.cast = true } }

// Load reads a safetensors file, or the index of a model in several files
// (model.safetensors.index.json), into the parameters and buffers of a module and returns
// the metadata. Without options the file must have exactly the module's tensors: a
// missing or unexpected one, or another shape or dtype, is an error that names every such
// tensor and wraps ErrMissing, ErrUnexpected or ErrMismatch. After an error the module is
// unchanged.
//
// Load publishes the values (loris.Publish), so that all sessions see them, and drops initial values that no step has
// computed. It blocks while reading; ctx ends it between two tensors.
func Load(ctx context.Context, path string, m Module, opts ...LoadOption) (map[string]string, error) {
	if err := ir.CheckContext("nn.Load", ctx); err != nil {
		return nil, err
	}
	if err := tracing.Fail(nil, func() error {
		return misuse("Load", "a file is read inside a function that is being compiled, which runs once for all calls")
	}); err != nil {
		return nil, err
	}
	var l loading
	for _, o := range opts {
		o(&l)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: load: %w", err)
	}
	defer f.Close()
	pairs, report, err := l.match(f, variables(m))
	if err != nil {
		return nil, fmt.Errorf("nn: load %s: %w", path, err)
	}
	values := make([]*loris.Tensor, len(pairs))
	for i, p := range pairs {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("nn: load %s: %w", path, err)
		}
		if values[i], err = p.upload(f); err != nil {
			return nil, fmt.Errorf("nn: load %s: %w", path, err)
		}
	}
	targets := make([]*loris.Variable, len(pairs))
	for i, p := range pairs {
		targets[i] = p.v
	}
	if err := loris.Publish(ctx, targets, values); err != nil {
		return nil, fmt.Errorf("nn: load %s: %w", path, err)
	}
	if l.report != nil {
		*l.report = report
	}
	return f.Metadata(), nil
}

// pair is a variable and the tensor of the file for it.
type pair struct {
	named
	from  string // in the file
	shape loris.Shape
}

// upload reads a tensor to the device and the dtype of its variable.
func (p *pair) upload(f *safetensors.File) (t *loris.Tensor, err error) {
	data, err := f.Bytes(p.from)
	if err != nil {
		return nil, err
	}
	maker := p.v.Session().With(loris.On(p.v.Value().Device()))
	e := loris.Try(func() {
		if t = maker.FromBytes(data, p.shape); p.shape != p.v.Shape() {
			t = t.Cast(p.v.Shape().DType())
		}
	})
	if e != nil {
		return nil, fmt.Errorf("tensor %q: %w", p.from, e)
	}
	return t, nil
}

// match finds the tensor of each variable and reports what has no partner.
func (l *loading) match(f *safetensors.File, vars []named) ([]pair, LoadReport, error) {
	var errs []error
	files := map[string]safetensors.Info{} // by the module's names
	var order []string
	for _, info := range f.Tensors() {
		name, ok := strings.CutPrefix(info.Name, l.prefix)
		if !ok {
			continue
		}
		name = l.renamed(name)
		if twice, ok := files[name]; ok {
			errs = append(errs, fmt.Errorf("%q: %w: %q has that name, too", info.Name, ErrUnexpected, twice.Name))
		}
		files[name] = info
		order = append(order, name)
	}
	places := make([]tensorfile.Place, len(vars))
	for i, n := range vars {
		places[i] = tensorfile.Place{Name: n.name, Shape: n.v.Shape()}
	}
	found := tensorfile.Match(files, order, places, l.fits)
	errs = append(errs, found.Err(l.report == nil))
	if err := errors.Join(errs...); err != nil {
		return nil, LoadReport{}, err
	}
	var pairs []pair
	for _, n := range vars {
		if info, ok := files[n.name]; ok {
			s, _ := tensorfile.Shape(info) // it fits
			pairs = append(pairs, pair{n, info.Name, s})
		}
	}
	return pairs, LoadReport{found.Missing, found.Unexpected}, nil
}

// fits reports whether a tensor of the file can be a variable's value.
func (l *loading) fits(file, own loris.Shape) bool {
	floats := file.DType().IsFloat() && own.DType().IsFloat()
	return file == own || l.cast && floats && file.SameDims(own)
}

// renamed returns the module's name of a tensor.
func (l *loading) renamed(name string) string {
	if to, ok := l.rename[name]; ok {
		return to
	}
	for at := len(name) - 1; at >= 0; at-- {
		if to, ok := l.rename[name[:at+1]]; ok && name[at] == '.' {
			return to + name[at+1:]
		}
	}
	return name
}
