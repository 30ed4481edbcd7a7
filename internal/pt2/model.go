package pt2

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Model is one compiled model of a package.
type Model struct {
	// Name is its name in the package.
	Name string
	// Metadata is what was written down when it was compiled.
	Metadata Metadata
	// LibraryFile, SourceFile and BlobFile are the names of its shared library,
	// of the source of that, and of the file with its constants; empty where there
	// is none.
	LibraryFile, SourceFile, BlobFile string
	// Externs are the ops that it calls by name, through a proxy executor.
	Externs []ExternOp
	// CustomObjects says that it needs objects of classes written in C++, which
	// only libtorch can make.
	CustomObjects bool
	// Weights lists the constants that lie in files of their own (data/weights),
	// by the names that updates use.
	Weights map[string]StoredWeight

	p     *Package
	files map[string]*member // by base name

	libOnce sync.Once
	lib     *Library
	libErr  error

	specOnce sync.Once
	spec     *Spec
	specErr  error
}

// ExternOp is a call that the model makes by name.
type ExternOp struct {
	// Name is the kernel's name in the generated source.
	Name string
	// Target is the op ("aten::linalg_inv_ex").
	Target string
	// Node is the whole entry: arguments and results, as PyTorch's schema has it.
	Node json.RawMessage
}

// StoredWeight is a constant that lies in a file of its own.
type StoredWeight struct {
	// File is the name of the file below data/weights.
	File string
	// Shape, Strides and Offset say where in its storage it lies, in elements.
	Shape, Strides []int64
	Offset         int64
}

// Metadata is what was written down when a model was compiled. The keys are
// kept as they are; the methods read those that PyTorch writes.
type Metadata map[string]string

// Device returns the type of the device ("cpu", "cuda").
func (m Metadata) Device() string { return m["AOTI_DEVICE_KEY"] }

// Platform returns the operating system, as Python's sys.platform has it.
func (m Metadata) Platform() string { return m["AOTI_PLATFORM"] }

// Machine returns the processor's family, as uname has it.
func (m Metadata) Machine() string { return m["AOTI_MACHINE"] }

// ISA returns the names of the instruction sets that vector code was compiled
// for ("AVX512", "AVX512_VNNI"); none for scalar code.
func (m Metadata) ISA() []string {
	isa := m["AOTI_CPU_ISA"]
	if isa == "INVALID_VEC_ISA" {
		return nil
	}
	return strings.Fields(isa)
}

// ComputeCapability returns that of the GPU, if one was used.
func (m Metadata) ComputeCapability() string { return m["AOTI_COMPUTE_CAPABILITY"] }

// findModels groups the files below data/aotinductor by model.
func (p *Package) findModels() error {
	byName := map[string]*Model{}
	for _, name := range p.order {
		rest, ok := strings.CutPrefix(name, aotiPrefix)
		if !ok {
			continue
		}
		model, file, ok := strings.Cut(rest, "/")
		if !ok {
			continue
		}
		m := byName[model]
		if m == nil {
			m = &Model{Name: model, p: p, files: map[string]*member{}}
			byName[model] = m
			p.models = append(p.models, m)
		}
		m.files[file] = p.members[name]
	}
	slices.SortFunc(p.models, func(a, b *Model) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range p.models {
		if err := m.build(); err != nil {
			return err
		}
	}
	return nil
}

// noModels says what a package without compiled models is.
func (p *Package) noModels() error {
	for _, name := range p.order {
		switch {
		case strings.HasPrefix(name, "models/") && strings.HasSuffix(name, ".json"),
			strings.HasSuffix(name, "serialized_exported_program.json"):
			return &FormatError{Member: name, Problem: "this is a program saved by torch.export.save: a graph of ops and no compiled code; " +
				"compile it with torch._inductor.aoti_compile_and_package"}
		case path.Base(name) == "constants.pkl":
			return &FormatError{Member: name, Problem: "this is a TorchScript model, not a compiled package"}
		case path.Base(name) == "data.pkl":
			return &FormatError{Member: name, Problem: "this is a checkpoint saved by torch.save, not a compiled package"}
		}
	}
	return problem("no compiled models: nothing lies below %s", aotiFolder)
}

// build finds out which file of the model is what.
func (m *Model) build() error {
	if err := m.findLibrary(); err != nil {
		return err
	}
	stem := strings.TrimSuffix(m.LibraryFile, ".so")
	if m.files[stem+".cpp"] != nil {
		m.SourceFile = stem + ".cpp"
	}
	for _, name := range m.Files() {
		if strings.HasSuffix(name, ".blob") && (m.BlobFile == "" || name == stem+"_weights.blob") {
			m.BlobFile = name
		}
	}
	m.CustomObjects = m.files["custom_objs_config.json"] != nil
	if err := m.readMetadata(stem); err != nil {
		return err
	}
	if err := m.readExterns(stem); err != nil {
		return err
	}
	return m.readWeights()
}

// findLibrary chooses the model's library: packages with kernels by Triton hold
// more than one.
func (m *Model) findLibrary() error {
	var libs []string
	sources := false
	for _, name := range m.Files() {
		if strings.HasSuffix(name, ".so") && !strings.HasSuffix(name, "_abicompat.so") {
			libs = append(libs, name)
		}
		sources = sources || strings.HasSuffix(name, ".cpp") || name == "CMakeLists.txt"
	}
	if len(libs) > 1 {
		main := slices.DeleteFunc(slices.Clone(libs), func(name string) bool {
			return !strings.HasSuffix(name, ".wrapper.so") && m.files[strings.TrimSuffix(name, ".so")+"_metadata.json"] == nil
		})
		if len(main) != 1 {
			return m.problem("", "%d libraries and no way to tell which is the model's: %s", len(libs), strings.Join(libs, ", "))
		}
		libs = main
	}
	switch {
	case len(libs) == 1:
		m.LibraryFile = libs[0]
		return nil
	case m.otherLibrary() != "":
		return nil // refused by its target, with a better message
	case sources:
		return m.problem("", "source code and no library: compile without aot_inductor.package_cpp_only")
	}
	return m.problem("", "no shared library")
}

// otherLibrary returns the name of a library of another system.
func (m *Model) otherLibrary() string {
	for _, name := range m.Files() {
		switch path.Ext(name) {
		case ".dylib", ".pyd", ".dll":
			return name
		}
	}
	return ""
}

func (m *Model) problem(file, format string, args ...any) error {
	return &FormatError{Member: path.Join(aotiFolder, m.Name, file), Problem: fmt.Sprintf(format, args...)}
}

// Files returns the names of the model's files, sorted.
func (m *Model) Files() []string {
	names := make([]string, 0, len(m.files))
	for name := range m.files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Open opens one of the model's files for reading at any place. A compressed one
// is inflated into memory, within the package's limits.
func (m *Model) Open(file string) (*Section, error) {
	f := m.files[file]
	if f == nil {
		return nil, locate(m.problem(file, "there is no such file"), m.p.Path, "")
	}
	return m.p.open(f)
}

// open opens a member for reading at any place.
func (p *Package) open(f *member) (*Section, error) {
	s, err := f.section(p.lim.Memory)
	if err != nil {
		return nil, locate(err, p.Path, "")
	}
	s.path = p.Path
	return s, nil
}

// Library reads the dynamic linking tables of the model's library.
func (m *Model) Library() (*Library, error) {
	m.libOnce.Do(func() { m.lib, m.libErr = m.readLibrary() })
	return m.lib, m.libErr
}

func (m *Model) readLibrary() (*Library, error) {
	if m.LibraryFile == "" {
		return nil, locate(m.problem("", "no shared library that Linux could load"), m.p.Path, "")
	}
	s, err := m.Open(m.LibraryFile)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	lib, err := ReadLibrary(s, s.Size)
	if err != nil {
		return nil, locate(err, m.p.Path, m.files[m.LibraryFile].name)
	}
	lib.r = nil
	return lib, nil
}

// Source returns the generated source of the library; empty if the package has
// none.
func (m *Model) Source() ([]byte, error) {
	if m.SourceFile == "" {
		return nil, nil
	}
	b, err := m.files[m.SourceFile].read(m.p.lim.Text)
	return b, locate(err, m.p.Path, "")
}

// Private makes a private copy of the model's library, checked against the
// archive's checksum and patched for this host, or unchanged; the renames come before the
// host's own. See [NewPrivate].
func (m *Model) Private(ctx context.Context, dir string, unchanged bool, renames ...Rename) (*Private, error) {
	if m.LibraryFile == "" {
		_, err := m.readLibrary()
		return nil, err
	}
	f := m.files[m.LibraryFile]
	src := Source{Size: f.size, CRC: f.crc, Checked: f.checked, Name: m.Name + "-" + m.LibraryFile, Unchanged: unchanged, Renames: renames}
	var c io.Closer
	if f.place != nil || f.kept != nil {
		s, err := f.section(m.p.lim.Memory)
		if err != nil {
			return nil, locate(err, m.p.Path, "")
		}
		src.R, c = io.NewSectionReader(s, 0, s.Size), s
	} else {
		r, err := f.open()
		if err != nil {
			return nil, &FormatError{Path: m.p.Path, Member: f.name, Problem: "cannot be opened", Err: err}
		}
		src.R, c = r, r
	}
	defer c.Close()
	p, err := NewPrivate(ctx, src, dir)
	return p, locate(err, m.p.Path, f.name)
}
