// Package hostile feeds every reader of Loris with damaged and hostile files, made from whole ones,
// and counts what happens. A reader may accept an input or refuse it with an error. It must not
// panic, end the process, take more than a time and a memory in proportion to the input, nor use
// data that a checksum covers and that is not what was written.
package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/data/images"
	"github.com/loris-ml/loris/data/tokenizer"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/safetensors"
)

// Target is a reader.
type Target struct {
	Name string
	// Seeds are whole files.
	Seeds [][]byte
	// Mutate makes an input of a seed; other is another seed.
	Mutate func(r *rand.Rand, b, other []byte) []byte
	// Runs says that an input is a program that runs, which may take memory out of proportion to its
	// text, up to the limit of tensors.
	Runs bool
	read func(w *workspace, b []byte) error
}

// wrong is a result that nothing may have.
type wrong struct{ error }

// workspace is what readers of files need. It is used by one goroutine.
type workspace struct {
	dir  string
	disk *cache.Disk
}

func newWorkspace(dir string) (*workspace, error) {
	disk, err := cache.OpenDisk(filepath.Join(dir, "cache"), cache.DiskOptions{MaxBytes: -1})
	w := &workspace{dir: dir, disk: disk}
	for i, name := range []string{"a", "b"} { // the shards of index
		var b bytes.Buffer
		shard := []safetensors.Tensor{{Name: name, DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}}
		err = errors.Join(err, safetensors.Write(&b, shard, nil))
		_, fileErr := w.file(fmt.Sprintf("m-0000%d-of-00002.safetensors", i+1), b.Bytes())
		err = errors.Join(err, fileErr)
	}
	return w, err
}

// file writes an input where readers of paths find it.
func (w *workspace) file(name string, b []byte) (string, error) {
	p := filepath.Join(w.dir, name)
	return p, os.WriteFile(p, b, 0o600)
}

// memory bounds the tensors of programs that run, in bytes.
const memory = 128 << 20

// Targets returns the readers, with seeds from the repository whose root is given.
func Targets(root fs.FS) ([]Target, error) {
	var all []Target
	var failed error
	add := func(seeds [][]byte, err error, targets ...Target) {
		failed = errors.Join(failed, err)
		for _, t := range targets {
			if t.Seeds = seeds; t.Mutate == nil {
				t.Mutate = Mutate
			}
			all = append(all, t)
		}
	}

	packages, err := readFiles(root, "aoti/testdata/", "bounds.pt2", "conv.pt2", "dynamic_batch.pt2",
		"folding_2_6.pt2", "int4.pt2", "conv_2_11.pt2")
	add(packages, err,
		Target{Name: "package", read: readPackage},
		Target{Name: "package members", Mutate: mutateMember, read: readPackage},
		Target{Name: "package load", read: loadPackage})
	libraries, sources, err := membersOf(packages)
	add(libraries, err, Target{Name: "library", read: readLibrary})
	add(sources, nil, Target{Name: "generated source", read: readSource})
	weights, err := readFiles(root, "aoti/testdata/", "bounds.safetensors", "lstm.safetensors", "integers.safetensors")
	add(weights, err, Target{Name: "safetensors", read: readSafetensors})
	add([][]byte{[]byte(index)}, nil, Target{Name: "safetensors index", read: readIndex})
	programs, err := programSeeds(root)
	add(programs, err,
		Target{Name: "program", read: readProgram},
		Target{Name: "program run", Runs: true, read: runProgram})
	seed, err := checkpointSeed()
	add([][]byte{seed}, err, Target{Name: "checkpoint", read: readCheckpoint})
	add([][]byte{[]byte(config)}, nil, Target{Name: "config", read: readConfig})
	seed, err = entrySeed()
	add([][]byte{seed}, err, Target{Name: "cache entry", read: readEntry})
	seeds, err := readFiles(root, "data/tokenizer/testdata/", "tokenizer.json")
	add(seeds, err, Target{Name: "tokenizer", read: readTokenizer})
	seeds, err = imageSeeds()
	add(seeds, err, Target{Name: "image", read: readImage})
	add([][]byte{idxSeed()}, nil, Target{Name: "idx", read: readIDX})
	seeds, err = tree(root, "torchexport/testdata", ".pt2")
	add(seeds, err,
		Target{Name: "exported program", Runs: true, read: readExported},
		Target{Name: "exported program members", Runs: true, Mutate: mutateMember, read: readExported})
	seeds, err = tree(root, "onnx/testdata", ".onnx")
	add(seeds, err, Target{Name: "onnx", Runs: true, read: readONNX})
	return all, failed
}

func readPackage(_ *workspace, b []byte) error {
	p, err := pt2.OpenReader(bytes.NewReader(b), int64(len(b)), "input")
	if err != nil {
		return err
	}
	defer p.Close()
	r, err := p.Inspect(pt2.Host{Target: pt2.HostTarget()})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		return err
	}
	if strings.ContainsAny(text.String(), "\x1b\x07\x00") {
		return wrong{errors.New("the report has control characters of the file")}
	}
	return nil
}

// loadPackage loads damaged packages, and so runs code of those that are accepted: only those whose
// libraries are as they were can be, since checksums cover them.
func loadPackage(_ *workspace, b []byte) error {
	r, err := aoti.LoadFrom(context.Background(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	return r.Close()
}

func readLibrary(_ *workspace, b []byte) error {
	l, err := pt2.ReadLibrary(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	_, err = l.HostEdits()
	return err
}

func readSource(_ *workspace, b []byte) error {
	s := pt2.ParseSource(b)
	for i := range s.Inputs {
		_ = s.Inputs[i].String()
	}
	return nil
}

func readSafetensors(_ *workspace, b []byte) error {
	f, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	_, errStream := safetensors.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if errStream != nil {
		return wrong{fmt.Errorf("the file is accepted, the stream is not: %w", errStream)}
	}
	for _, info := range f.Tensors() {
		if _, err := f.Bytes(info.Name); err != nil {
			return wrong{err}
		}
	}
	return nil
}

const index = `{"metadata":{"total_size":8},"weight_map":{"a":"m-00001-of-00002.safetensors","b":"m-00002-of-00002.safetensors"}}`

func readIndex(w *workspace, b []byte) error {
	p, err := w.file("m.safetensors.index.json", b)
	if err != nil {
		return err
	}
	f, err := safetensors.Open(p)
	if err != nil {
		return err
	}
	return f.Close()
}

func readProgram(_ *workspace, b []byte) error {
	p, err := graph.Parse(string(b))
	if err != nil {
		return err
	}
	q, err := graph.Parse(p.String())
	if err != nil {
		return wrong{fmt.Errorf("what was printed does not parse: %w", err)}
	}
	if p.Hash() != q.Hash() {
		return wrong{errors.New("printing changed the hash")}
	}
	return nil
}

func runProgram(_ *workspace, b []byte) error {
	p, err := graph.Parse(string(b))
	if err != nil {
		return err
	}
	total := int64(0)
	for _, q := range p.Params {
		if total += int64(q.Shape.Bytes()); total > memory {
			return errors.New("the inputs are too large")
		}
	}
	ctx := context.Background()
	d := cpu.Device
	be, err := backend.For(d)
	if err != nil {
		return wrong{err}
	}
	lowered, _ := graph.Optimize(p, graph.Options{Supports: be.Supports})
	m, err := be.Compile(ctx, lowered, d, backend.CompileOptions{MemoryLimit: memory})
	if err != nil {
		return err
	}
	defer m.Close()
	inputs := make([]backend.Buffer, len(p.Params))
	for i, q := range p.Params {
		if inputs[i], err = be.Upload(ctx, q.Shape, d, ones(q.Shape)); err != nil {
			return err
		}
		defer inputs[i].Release()
	}
	outs, err := m.Run(ctx, inputs, nil)
	for _, o := range outs {
		o.Release()
	}
	return err
}

// ones returns data in which integers are 1, an index and a divisor that most programs take, and floats
// are subnormal.
func ones(s ir.Shape) []byte {
	b := make([]byte, s.Bytes())
	for i := 0; i < len(b); i += s.DType().Size() {
		b[i] = 1
	}
	return b
}

func readCheckpoint(w *workspace, b []byte) error {
	p, err := w.file("checkpoint.safetensors", b)
	if err != nil {
		return err
	}
	return loadInSession(func(ctx context.Context, in loris.Maker) error {
		_, err := nn.Load(ctx, p, nn.NewLinear(3, 2, nn.With(in)))
		return err
	})
}

// readEntry puts an input in the place of a file of the disk cache. The cache gives back what was put
// there, or nothing.
func readEntry(w *workspace, b []byte) error {
	key := cache.NewDiskKey([]byte("key"))
	if err := w.disk.Put(key, entryPayload); err != nil {
		return wrong{err}
	}
	files, err := filepath.Glob(filepath.Join(w.disk.Dir(), key.String()+"*"))
	if err != nil || len(files) != 1 {
		return wrong{fmt.Errorf("%d files of one entry: %v", len(files), err)}
	}
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		return wrong{err}
	}
	got, ok, err := w.disk.Get(key)
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("refused")
	case !bytes.Equal(got, entryPayload):
		return wrong{fmt.Errorf("the cache gave %d bytes that nobody has put there", len(got))}
	}
	return nil
}

func readTokenizer(w *workspace, b []byte) error {
	p, err := w.file("tokenizer.json", b)
	if err != nil {
		return err
	}
	t, err := tokenizer.Open(p)
	if err != nil {
		return err
	}
	_, err = t.Encode("hello world")
	return err
}

func readImage(_ *workspace, b []byte) error {
	_, err := images.Decode(bytes.NewReader(b))
	return err
}

func readIDX(_ *workspace, b []byte) error {
	_, err := data.ReadIDX(bytes.NewReader(b))
	return err
}

// readFiles reads the files of a directory.
func readFiles(root fs.FS, dir string, names ...string) (files [][]byte, err error) {
	for _, name := range names {
		b, err := fs.ReadFile(root, dir+name)
		if err != nil {
			return nil, err
		}
		files = append(files, b)
	}
	return files, nil
}
