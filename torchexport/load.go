package torchexport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// limits bound what a file may make the reader do. Graphs of large models are long texts.
var limits = pt2.Limits{Text: 512 << 20}

// FormatError says that a file, or a member of it, is not what it should be: damaged, not a program
// of torch.export, or made to mislead.
type FormatError = pt2.FormatError

// Option changes what Load does.
type Option func(*loading)

type loading struct {
	maker loris.Maker
	name  string
}

// With makes the weights with a Maker: in its session, on its device. Its dtype counts for nothing.
func With(m loris.Maker) Option { return func(l *loading) { l.maker = m } }

// Program chooses one of the programs of a file by its name; without it a file with several needs
// one of the name "model".
func Program(name string) Option { return func(l *loading) { l.name = name } }

// Load reads a program that torch.export.save of PyTorch 2.6 to 2.15 wrote, or a folder extracted from such
// a file, and its weights. It executes nothing of the file and unpickles nothing but tensors.
//
// It blocks while reading; ctx ends it between two weights. What is not a program, or a damaged one,
// is a *FormatError; a program with ops that are not supported is an *UnsupportedError that lists them
// all.
func Load(ctx context.Context, file string, opts ...Option) (*Model, error) {
	if err := ir.CheckContext("torchexport.Load", ctx); err != nil {
		return nil, err
	}
	var l loading
	for _, o := range opts {
		o(&l)
	}
	p, err := limits.OpenArchive(file)
	if err != nil {
		return nil, fmt.Errorf("torchexport: %w", err)
	}
	defer p.Close()
	m, err := l.load(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("torchexport: load %s: %w", file, err)
	}
	return m, nil
}

const (
	legacyGraph   = "serialized_exported_program.json"
	legacyWeights = "serialized_state_dict.pt"
	legacyConsts  = "serialized_constants.pt"
	modelsFolder  = "models/"
)

func (l *loading) load(ctx context.Context, p *pt2.Package) (*Model, error) {
	graph, name, err := l.graphFile(p)
	if err != nil {
		return nil, err
	}
	text, err := p.Text(ctx, graph)
	if err != nil {
		return nil, err
	}
	prog, err := readProgram(text)
	if err != nil {
		if _, ok := err.(*UnsupportedError); ok {
			return nil, err
		}
		return nil, &pt2.FormatError{Path: p.Path, Member: graph, Problem: "not a program that can be read", Err: err}
	}
	sets, err := weightSets(ctx, p, name)
	if err != nil {
		return nil, err
	}
	m := &Model{program: prog, session: l.maker.Session(), device: l.maker.Device()}
	return m, m.loadWeights(ctx, l.maker.With(loris.On(m.device)), sets)
}

// graphFile finds the JSON of the program. name is empty in the layout of PyTorch 2.6.
func (l *loading) graphFile(p *pt2.Package) (file, name string, err error) {
	if p.Has(legacyGraph) {
		return legacyGraph, "", nil
	}
	var names []string
	for _, f := range p.Files() {
		rest, ok := strings.CutPrefix(f, modelsFolder)
		if n, isJSON := strings.CutSuffix(rest, ".json"); ok && isJSON {
			names = append(names, n)
		}
	}
	want := l.name
	if want == "" && len(names) == 1 {
		want = names[0]
	} else if want == "" {
		want = "model"
	}
	if slices.Contains(names, want) {
		return modelsFolder + want + ".json", want, nil
	}
	if len(names) > 0 {
		return "", "", fmt.Errorf("it has no program %q; its programs are %s", want, strings.Join(names, ", "))
	}
	return "", "", &pt2.FormatError{Path: p.Path, Problem: what(p)}
}

// what says what a file without a program is.
func what(p *pt2.Package) string {
	for _, f := range p.Files() {
		switch {
		case strings.HasPrefix(f, "data/aotinductor/"):
			return "no program: this is a package of compiled code; use aoti.Load, or loris aoti run"
		case path.Base(f) == "constants.pkl":
			return "no program: this is a TorchScript model; export it with torch.export.save"
		case path.Base(f) == "data.pkl":
			return "no program: this is a checkpoint saved by torch.save; export the model with torch.export.save"
		}
	}
	return "no program of torch.export: nothing lies below models"
}

// weightSets finds the sources of weights in any of the layouts.
func weightSets(ctx context.Context, p *pt2.Package, name string) ([]*storedSet, error) {
	var sets []*storedSet
	add := func(s *storedSet, err error) error {
		if err == nil {
			sets = append(sets, s)
		}
		return err
	}
	pickles := []string{legacyWeights, legacyConsts}
	if name != "" {
		pickles = []string{"data/weights/" + name + ".pt", "data/constants/" + name + ".pt"}
		if err := add(readConfig(ctx, p, "data/weights/"+name+"_weights_config.json", "data/weights")); err != nil {
			return nil, err
		}
		if err := add(readConfig(ctx, p, "data/constants/"+name+"_constants_config.json", "data/constants")); err != nil {
			return nil, err
		}
	}
	for _, f := range pickles {
		if p.Has(f) {
			if err := add(readPickle(ctx, p, f)); err != nil {
				return nil, err
			}
		}
	}
	return sets, nil
}

// loadWeights makes the variables that the program's inputs stand for.
func (m *Model) loadWeights(ctx context.Context, maker loris.Maker, sets []*storedSet) error {
	var names []string
	for _, in := range m.program.inputs {
		if in.weight != "" && !slices.Contains(names, in.weight) {
			names = append(names, in.weight)
		}
	}
	parts, err := wantedFrom(names, sets...)
	if err != nil {
		return err
	}
	vars := map[string]*loris.Variable{}
	for i, set := range sets {
		if len(parts[i]) == 0 {
			continue
		}
		part, err := set.variables(ctx, maker, parts[i])
		if err != nil {
			return err
		}
		maps.Copy(vars, part)
	}
	for i := range m.program.inputs {
		in := &m.program.inputs[i]
		if in.weight == "" || m.weights.Lookup(in.weight) != nil {
			continue
		}
		if err := m.weights.Add(in.weight, vars[in.weight], in.kind); err != nil {
			return err
		}
	}
	return m.checkWeights()
}

// checkWeights compares the weights with what the graph says of them.
func (m *Model) checkWeights() error {
	for i := range m.program.inputs {
		in := &m.program.inputs[i]
		if in.weight == "" {
			continue
		}
		in.v = m.weights.Lookup(in.weight)
		meta := m.program.body.metas[in.slot]
		if meta == nil {
			continue
		}
		have := in.v.Shape()
		dims, ok := meta.dims(nil)
		if ok && (have.DType() != meta.dtype || !slices.Equal(have.Dims(), dims)) {
			return fmt.Errorf("weight %q is %v, the graph says %v%v", in.weight, have, meta.dtype, dims)
		}
	}
	return nil
}

// kindOf returns what a weight of a spec is.
func kindOf(spec string, persistent bool) importer.Kind {
	switch {
	case spec == "parameter":
		return importer.Parameter
	case spec == "buffer" && persistent:
		return importer.Buffer
	}
	return importer.Constant
}

// decodeJSON reads the one JSON value of a text.
func decodeJSON(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}
