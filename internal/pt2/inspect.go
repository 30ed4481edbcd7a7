package pt2

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Host says what the process that would load a package offers. Nil functions
// leave the questions open.
type Host struct {
	// Target is what it can run.
	Target Target
	// Provides reports whether it has a symbol of the classes host ABI, vector
	// math, OpenMP or other, by the name that libraries call.
	Provides func(symbol string) bool
	// ProvidesOp reports whether it can run an op by name
	// ("aten::linalg_inv_ex").
	ProvidesOp func(target string) bool
}

// Report is everything that a package says without being loaded.
type Report struct {
	Path    string        `json:"path"`
	Kind    Kind          `json:"kind"`
	Version string        `json:"version,omitempty"`
	Root    string        `json:"root,omitempty"`
	Notes   []string      `json:"notes,omitempty"`
	Models  []ModelReport `json:"models"`
}

// ModelReport is what a package says of one model.
type ModelReport struct {
	Name       string            `json:"name"`
	Device     string            `json:"device,omitempty"`
	Platform   string            `json:"platform,omitempty"`
	Machine    string            `json:"machine,omitempty"`
	ISA        []string          `json:"isa,omitempty"`
	March      string            `json:"march,omitempty"` // the compiler's -march, if the source tells
	Metadata   map[string]string `json:"metadata,omitempty"`
	Generation string            `json:"generation,omitempty"`
	Functions  int               `json:"functions"` // container functions
	Library    string            `json:"library,omitempty"`
	Needed     []string          `json:"needed,omitempty"` // libraries
	Unique     int               `json:"unique_symbols"`   // that would keep it loaded
	Inputs     []InputReport     `json:"inputs"`
	Outputs    []string          `json:"outputs"`
	InSpec     string            `json:"in_spec,omitempty"`
	OutSpec    string            `json:"out_spec,omitempty"`
	Constants  []ConstantReport  `json:"constants"`
	Weights    WeightsReport     `json:"weights"`
	Symbols    []SymbolReport    `json:"symbols,omitempty"` // those that are asked for, system ones left out
	System     int               `json:"system_symbols"`    // how many were left out
	Externs    []ExternReport    `json:"extern_ops,omitempty"`
	Files      []FileReport      `json:"files"`
	// Missing are the symbols and ops that the host lacks, and Refused is why it
	// can't run the model at all; both empty if it can, or was not asked.
	Missing []string `json:"missing,omitempty"`
	Refused string   `json:"refused,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// InputReport describes an input in words.
type InputReport struct {
	Name     string   `json:"name"`
	DType    string   `json:"dtype,omitempty"`
	Dims     []string `json:"dims"`
	Strides  []string `json:"strides,omitempty"` // if not those of a dense row-major tensor
	Device   string   `json:"device,omitempty"`
	Complete bool     `json:"complete"` // whether rank and dims are known

	text string
}

// ConstantReport describes a constant in words.
type ConstantReport struct {
	Name         string  `json:"name"`
	OriginalName string  `json:"original_name,omitempty"`
	DType        string  `json:"dtype"`
	Sizes        []int64 `json:"sizes"`
	Bytes        int64   `json:"bytes"`
	Type         string  `json:"type"`
	Folded       bool    `json:"folded,omitempty"`
	Packed       bool    `json:"packed,omitempty"` // in a layout of oneDNN
	Device       string  `json:"device,omitempty"`
}

// WeightsReport says where the constants lie.
type WeightsReport struct {
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

// SymbolReport is a symbol that the library asks for.
type SymbolReport struct {
	Name  string `json:"name"`
	Class Class  `json:"class"`
	Has   *bool  `json:"has,omitempty"` // whether the host has it
}

// ExternReport is an op that is called by name.
type ExternReport struct {
	Target string `json:"target"`
	Calls  int    `json:"calls"`
	Has    *bool  `json:"has,omitempty"`
}

// FileReport is a file of the model.
type FileReport struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Inspect reports everything about the package without loading it, and checks
// every file on the way. A model that the host can't run is no error: the report
// says why.
func (p *Package) Inspect(h Host) (*Report, error) {
	if err := p.Verify(); err != nil {
		return nil, err
	}
	r := &Report{Path: p.Path, Kind: p.Kind, Version: p.Version, Root: p.Root, Notes: p.Notes}
	for _, m := range p.models {
		mr, err := m.inspect(h)
		if err != nil {
			return nil, err
		}
		r.Models = append(r.Models, *mr)
	}
	return r, nil
}

func (m *Model) inspect(h Host) (*ModelReport, error) {
	r := &ModelReport{
		Name: m.Name, Metadata: m.Metadata, Library: m.LibraryFile,
		Device: m.Metadata.Device(), Platform: m.Metadata.Platform(), Machine: m.Metadata.Machine(), ISA: m.Metadata.ISA(),
	}
	for _, name := range m.Files() {
		r.Files = append(r.Files, FileReport{name, m.files[name].size})
	}
	if h.Target.OS != "" {
		if err := m.CheckTarget(h.Target); err != nil {
			var te *TargetError
			if !errors.As(err, &te) {
				return nil, err
			}
			short := *te
			short.Path, short.Model = "", ""
			r.Refused = strings.TrimPrefix(short.Error(), "pt2: ")
		}
	}
	if err := m.inspectSource(r); err != nil {
		return nil, err
	}
	if m.LibraryFile != "" {
		if err := m.inspectLibrary(r, h); err != nil {
			return nil, err
		}
	}
	m.inspectExterns(r, h)
	if m.CustomObjects {
		r.Missing = append(r.Missing, "objects of C++ classes (custom_objs_config.json)")
	}
	return r, nil
}

func (m *Model) inspectSource(r *ModelReport) error {
	src, err := m.Source()
	if err != nil {
		return err
	}
	s, err := m.Spec()
	if err != nil {
		return err
	}
	if len(src) == 0 {
		r.Notes = append(r.Notes, "the package has no source, so inputs and constants are known only once it is loaded")
	}
	r.March = march(src)
	if r.March == "native" {
		r.Notes = append(r.Notes, "compiled with -march=native: it may use whatever the CPU had that compiled it, beyond the instruction sets named")
	}
	r.Outputs, r.InSpec, r.OutSpec = s.Outputs, s.InSpec, s.OutSpec
	unknown := false
	for i := range s.Inputs {
		r.Inputs = append(r.Inputs, inputReport(&s.Inputs[i]))
		unknown = unknown || !s.Inputs[i].Known
	}
	if unknown {
		r.Notes = append(r.Notes, "the source does not tell the shapes of all inputs, so a wrong one can't be noticed; "+
			"PyTorch 2.6 writes them with aot_inductor.debug_compile")
	}
	for i := range s.Constants {
		c := &s.Constants[i]
		r.Constants = append(r.Constants, ConstantReport{
			c.Name, c.OriginalName, c.TypeName, c.Sizes, c.Bytes, c.Type.String(), c.FromFolded, c.Opaque != nil, c.Device,
		})
	}
	return nil
}

func inputReport(in *InputSpec) InputReport {
	r := InputReport{Name: in.Name, DType: in.TypeName, Device: in.Device, Complete: in.Known, text: in.String(), Dims: []string{}}
	for d := range in.Dims {
		r.Dims = append(r.Dims, in.Dims[d].String())
		if !in.RowMajor {
			r.Strides = append(r.Strides, cmp.Or(in.Dims[d].Stride, "?"))
		}
	}
	return r
}

// march finds the compiler's -march in the command that ends a generated source.
func march(src []byte) string {
	i := bytes.LastIndex(src, []byte("// Compile cmd"))
	if i < 0 {
		return ""
	}
	_, after, ok := bytes.Cut(src[i:], []byte(" -march="))
	if !ok {
		return ""
	}
	word, _, _ := bytes.Cut(clip(after), []byte(" "))
	return printable(string(bytes.TrimSpace(word)))
}

func (m *Model) inspectLibrary(r *ModelReport, h Host) error {
	lib, err := m.Library()
	if err != nil {
		return err
	}
	g := lib.Generation()
	r.Generation, r.Functions, r.Needed = g.Version, len(g.Functions), lib.Needed
	r.Weights = WeightsReport{lib.Weights.Kind.String(), lib.Weights.Size}
	if len(m.Weights) > 0 {
		r.Weights = WeightsReport{"in files of their own (" + path.Clean(weightsPath) + ")", m.storedBytes()}
	}
	for _, s := range lib.Defined {
		if s.Unique {
			r.Unique++
		}
	}
	seen := map[string]bool{}
	for _, s := range lib.Undefined {
		class := s.Class()
		if seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		if class == ClassSystem || class == ClassOptional {
			r.System++
			continue
		}
		sym := SymbolReport{Name: s.Name, Class: class}
		if h.Provides != nil {
			has := h.Provides(s.Name)
			sym.Has = &has
			if !has && !s.Weak {
				r.Missing = append(r.Missing, s.Name)
			}
		}
		r.Symbols = append(r.Symbols, sym)
	}
	slices.SortFunc(r.Symbols, func(a, b SymbolReport) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Name, b.Name))
	})
	slices.Sort(r.Missing)
	return nil
}

// storedBytes adds up the files that hold the constants.
func (m *Model) storedBytes() int64 {
	files := map[string]int64{}
	for _, w := range m.Weights {
		files[w.File] = m.p.members[weightsPath+w.File].size
	}
	var sum int64
	for _, n := range files {
		sum += n
	}
	return sum
}

func (m *Model) inspectExterns(r *ModelReport, h Host) {
	calls := map[string]int{}
	for _, op := range m.Externs {
		calls[op.Target]++
	}
	for target, n := range calls {
		e := ExternReport{Target: target, Calls: n}
		if h.ProvidesOp != nil {
			has := h.ProvidesOp(target)
			e.Has = &has
			if !has {
				r.Missing = append(r.Missing, target)
			}
		}
		r.Externs = append(r.Externs, e)
	}
	slices.SortFunc(r.Externs, func(a, b ExternReport) int { return cmp.Compare(a.Target, b.Target) })
	slices.Sort(r.Missing)
}

// constantTotals returns how many constants there are, the bytes of those that
// are not folded, and how many are.
func (r *ModelReport) constantTotals() (n int, size int64, folded int) {
	for i := range r.Constants {
		if r.Constants[i].Folded {
			folded++
			continue
		}
		size += r.Constants[i].Bytes
	}
	return len(r.Constants), size, folded
}

// dims returns "[2, 3]".
func dims(sizes []int64) string {
	return strings.ReplaceAll(fmt.Sprint(sizes), " ", ", ")
}

// Model returns the report on the model of a name; an empty name means the only
// one, or "model" of several.
func (r *Report) Model(name string) (*ModelReport, error) {
	want := name
	if name == "" {
		if len(r.Models) == 1 {
			return &r.Models[0], nil
		}
		want = bareModel
	}
	var names []string
	for i := range r.Models {
		if r.Models[i].Name == want {
			return &r.Models[i], nil
		}
		names = append(names, r.Models[i].Name)
	}
	return nil, fmt.Errorf("pt2: %s has no model %q; its models are %s", r.Path, want, strings.Join(names, ", "))
}
