package pt2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Kind says what a package is.
type Kind uint8

const (
	// KindArchive is a ".pt2" archive.
	KindArchive Kind = iota
	// KindFolder is a folder with what an archive holds.
	KindFolder
	// KindLibrary is a bare shared library, perhaps with files beside it.
	KindLibrary
)

var kinds = [...]string{"archive", "folder", "library"}

// String returns the kind as a word.
func (k Kind) String() string { return kinds[min(int(k), len(kinds)-1)] }

// MarshalText returns the kind as a word, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

const (
	aotiFolder  = "data/aotinductor"
	aotiPrefix  = aotiFolder + "/"
	weightsPath = "data/weights/"
	formatName  = "archive_format"
	// bareModel names the model of a bare library, as archives do by default.
	bareModel = "model"
)

// Package is an opened package of compiled models. Its methods are safe for
// concurrent use, except Close.
type Package struct {
	// Path is where it was opened; the name given to OpenReader.
	Path string
	// Kind says whether it is an archive, a folder or a bare library.
	Kind Kind
	// Version is the version of the archive format; empty where none is said.
	Version string
	// Root is the folder inside the archive that holds everything; empty for
	// archives of PyTorch 2.6.
	Root string
	// Notes are what a reader should know: an unknown version of the format, say.
	Notes []string

	source     io.ReaderAt // the archive
	sourceSize int64

	lim     Limits
	members map[string]*member
	order   []string
	models  []*Model
	closers []io.Closer
}

// Open opens an archive, a folder, or a bare library with the default limits.
func Open(path string) (*Package, error) { return Limits{}.Open(path) }

// OpenReader opens an archive or a library of size bytes that is read from r,
// which must stay readable until Close. name is for messages.
func OpenReader(r io.ReaderAt, size int64, name string) (*Package, error) {
	return Limits{}.OpenReader(r, size, name)
}

// Open opens an archive, a folder, or a bare library. What is not a package, or
// is a damaged one, is a *FormatError.
func (l Limits) Open(file string) (*Package, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("pt2: %w", err)
	}
	if info.IsDir() {
		return l.openFolder(file)
	}
	if !info.Mode().IsRegular() {
		return nil, &FormatError{Path: file, Problem: "not a plain file"}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("pt2: %w", err)
	}
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err == nil && string(magic) == "\x7fELF" {
		f.Close()
		return l.openLibrary(file)
	}
	p, err := l.openFile(f, info.Size(), file, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	p.closers = append(p.closers, f)
	return p, nil
}

// OpenReader opens an archive or a library as the function OpenReader does.
func (l Limits) OpenReader(r io.ReaderAt, size int64, name string) (*Package, error) {
	f, _ := r.(*os.File)
	return l.openFile(r, size, name, f)
}

func (l Limits) openFile(r io.ReaderAt, size int64, name string, f *os.File) (*Package, error) {
	p := &Package{Path: name, lim: l.orDefaults(), source: r, sourceSize: size}
	magic := make([]byte, min(4, max(size, 0)))
	if _, err := r.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("pt2: read %s: %w", name, err)
	}
	var members []member
	var err error
	switch {
	case string(magic) == "\x7fELF":
		p.Kind = KindLibrary
		members = []member{readerMember(r, size, f)}
	case bytes.HasPrefix(magic, []byte("PK")):
		members, err = archiveMembers(r, size, f, p.lim)
	default:
		err = problem("neither a zip archive nor a shared library")
	}
	if err == nil {
		err = p.build(members)
	}
	if err != nil {
		return nil, locate(err, name, "")
	}
	return p, nil
}

// readerMember is a library that was given as a reader.
func readerMember(r io.ReaderAt, size int64, f *os.File) member {
	return member{
		name: path.Join(aotiFolder, bareModel, bareModel+".so"),
		size: size,
		open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(r, 0, size)), nil },
		place: func() (*Section, error) {
			return &Section{ReaderAt: r, Size: size, File: f}, nil
		},
	}
}

func (l Limits) openFolder(dir string) (*Package, error) {
	return l.openRoot(dir, KindFolder, dir, func(root *os.Root, lim Limits) ([]member, error) {
		return folderMembers(root, lim)
	})
}

func (l Limits) openLibrary(file string) (*Package, error) {
	return l.openRoot(file, KindLibrary, filepath.Dir(file), func(root *os.Root, _ Limits) ([]member, error) {
		return siblingMembers(root, filepath.Base(file))
	})
}

func (l Limits) openRoot(name string, kind Kind, dir string, list func(*os.Root, Limits) ([]member, error)) (*Package, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("pt2: %w", err)
	}
	p := &Package{Path: name, Kind: kind, lim: l.orDefaults(), closers: []io.Closer{root}}
	members, err := list(root, p.lim)
	if err == nil {
		err = p.build(members)
	}
	if err != nil {
		root.Close()
		return nil, locate(err, name, "")
	}
	return p, nil
}

// build makes the package of its members.
func (p *Package) build(members []member) error {
	root, err := findRoot(members)
	if err != nil {
		return err
	}
	p.Root = root
	p.members = make(map[string]*member, len(members))
	for i := range members {
		m := &members[i]
		name, ok := m.name, true
		if root != "" {
			name, ok = strings.CutPrefix(m.name, root+"/")
		}
		if !ok {
			continue // what lies beside the root is not the package's
		}
		m.name = name
		p.members[name] = m
		p.order = append(p.order, name)
	}
	slices.Sort(p.order)
	if p.Kind == KindFolder {
		p.adoptFlatFolder()
	}
	if err := p.readVersion(); err != nil {
		return err
	}
	if err := p.findModels(); err != nil {
		return err
	}
	if len(p.models) == 0 && !p.lim.programs {
		return p.noModels()
	}
	return nil
}

// findRoot returns the folder inside the package that holds everything.
func findRoot(members []member) (string, error) {
	roots := map[string]bool{}
	for _, m := range members {
		if path.Base(m.name) == formatName && strings.Count(m.name, "/") <= 1 {
			roots[strings.TrimSuffix(path.Dir(m.name), ".")] = true
		}
	}
	if len(roots) == 0 {
		for _, m := range members {
			if i := strings.Index("/"+m.name, "/"+aotiPrefix); i >= 0 && !strings.Contains(m.name[:max(i-1, 0)], "/") {
				roots[m.name[:max(i-1, 0)]] = true
			}
		}
	}
	if len(roots) > 1 {
		return "", problem("it holds %d packages, not one", len(roots))
	}
	for r := range roots {
		return r, nil
	}
	return "", nil
}

// adoptFlatFolder takes a folder that holds the files of one model, without the
// folders of an archive around them.
func (p *Package) adoptFlatFolder() {
	for name := range p.members {
		if strings.HasPrefix(name, aotiPrefix) || name == formatName || strings.HasPrefix(name, "models/") {
			return
		}
	}
	flat := map[string]*member{}
	for i, name := range p.order {
		if !strings.Contains(name, "/") {
			p.members[name].name = path.Join(aotiFolder, bareModel, name)
			p.order[i] = p.members[name].name
		}
		flat[p.order[i]] = p.members[name]
	}
	p.members = flat
}

// readVersion checks what the archive says of its format.
func (p *Package) readVersion() error {
	small := func(name string) (string, bool, error) {
		m := p.members[name]
		if m == nil {
			return "", false, nil
		}
		b, err := m.read(256)
		return strings.TrimSpace(string(b)), true, err
	}
	format, ok, err := small(formatName)
	if err != nil {
		return err
	}
	if ok && format != "pt2" {
		return &FormatError{Member: formatName, Problem: fmt.Sprintf("the archive's format is %q, not \"pt2\"", printable(format))}
	}
	order, ok, err := small("byteorder")
	if err != nil {
		return err
	}
	if ok && order != "little" {
		return &FormatError{Member: "byteorder", Problem: fmt.Sprintf("the byte order is %q; only \"little\" can be read", printable(order))}
	}
	for _, name := range []string{"archive_version", "version"} {
		v, ok, err := small(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		p.Version = printable(v)
		if v != "0" && name == "archive_version" {
			p.Notes = append(p.Notes, fmt.Sprintf("the archive's version is %q; 0 is the newest one known", p.Version))
		}
		break
	}
	return nil
}

// Models returns the models in the order of their names.
func (p *Package) Models() []*Model { return slices.Clone(p.models) }

// Model returns the model of a name. An empty name means the only one, or
// "model" of several, as in PyTorch.
func (p *Package) Model(name string) (*Model, error) {
	want := name
	if name == "" {
		if len(p.models) == 1 {
			return p.models[0], nil
		}
		want = bareModel
	}
	var names []string
	for _, m := range p.models {
		if m.Name == want {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("pt2: %s has no model %q; its models are %s", p.Path, want, strings.Join(names, ", "))
}

// Files returns the names of all files, sorted, relative to the root.
func (p *Package) Files() []string { return slices.Clone(p.order) }

// Verify reads every file whole, on all processors, and checks what archives say of them.
// The first of those that are damaged is a *FormatError.
func (p *Package) Verify() error {
	errs := make([]error, len(p.order))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range p.order {
		g.Go(func() error {
			errs[i] = locate(p.members[name].verify(), p.Path, name)
			return nil
		})
	}
	_ = g.Wait() // it has no errors
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the files. Sections and libraries of the package can't be read
// afterwards; private copies can.
func (p *Package) Close() error {
	var errs []error
	for _, c := range p.closers {
		errs = append(errs, c.Close())
	}
	p.closers = nil
	return errors.Join(errs...)
}
