package safetensors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/atomicfile"
)

// openIndex opens a model in several files by its index: which file of the same directory has each
// tensor.
func openIndex(path string) (*File, error) {
	shards, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	f := &File{header: header{index: map[string]int{}}, sources: map[string]source{}}
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		if err := f.addShard(filepath.Join(filepath.Dir(path), name), name, shards[name]); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return f, nil
}

// addShard opens a file and adds the tensors that the index finds in it.
func (f *File) addShard(path, name string, tensors []string) error {
	part, err := openFile(path, name)
	if err != nil {
		return err
	}
	f.sources[name] = part.sources[name]
	wanted := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		if _, ok := part.index[t]; !ok {
			return fmt.Errorf("safetensors: tensor %q of %s: %w", t, name, ErrNotFound)
		}
		wanted[t] = true
	}
	for _, t := range part.tensors {
		if wanted[t.Name] {
			f.index[t.Name] = len(f.tensors)
			f.tensors = append(f.tensors, t)
		}
	}
	for k, v := range part.metadata {
		if f.metadata == nil {
			f.metadata = map[string]string{}
		}
		if _, ok := f.metadata[k]; !ok {
			f.metadata[k] = v
		}
	}
	return nil
}

// readIndex reads an index and returns the names of the tensors of each file.
func readIndex(path string) (map[string][]string, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	defer osFile.Close()
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(osFile, maxHeader+1))
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if n > maxHeader {
		err = &FormatError{0, fmt.Sprintf("an index of more than %d bytes", maxHeader)}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	shards, err := parseIndex(text.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return shards, nil
}

func parseIndex(text string) (map[string][]string, error) {
	s := &scanner{data: text}
	if err := s.checkUTF8(); err != nil {
		return nil, err
	}
	var shards map[string][]string
	err := s.object(func(key string, pos int) error {
		if key != "weight_map" {
			return s.skip()
		}
		if shards != nil {
			return s.fail(pos, "%.80q appears twice", key)
		}
		shards = map[string][]string{}
		seen := map[string]bool{}
		return s.object(func(name string, pos int) error {
			if seen[name] {
				return s.fail(pos, "%.80q appears twice", name)
			}
			seen[name] = true
			s.peek()
			at := s.pos
			file, err := s.str()
			if err != nil {
				return err
			}
			// The index may name files of its own directory only.
			if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." {
				return s.fail(at, "%.80q is no name of a file beside the index", file)
			}
			shards[file] = append(shards[file], name)
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, err
	case s.peek() != 0 || s.pos < len(text):
		return nil, s.unexpected("the end of the index")
	case shards == nil:
		return nil, s.fail(0, "no weight_map")
	}
	return shards, nil
}

// WriteShards writes a model of files of at most maxShard bytes of data each, beside path, whose
// name ends in ".safetensors". What fits in one file is written there. More becomes files such as
// model-00001-of-00003.safetensors and the index model.safetensors.index.json, which names each
// tensor's file and which Open, transformers and others read. Tensors are taken in the order given;
// one larger than maxShard has a file for itself. Each file has the metadata.
//
// It calls data for each tensor, file by file. Each file appears whole or not at all, the index
// last; then the files of a model that was there before under the same name, with another number of
// shards, are removed. Errors are those of WriteFileFrom.
func WriteShards(path string, tensors []Info, metadata map[string]string, maxShard int64, data Source) error {
	stem, ok := strings.CutSuffix(path, ".safetensors")
	if !ok {
		return fmt.Errorf("safetensors: %s: %w: the name of a model in shards ends in .safetensors", path, ErrInvalidTensor)
	}
	if maxShard <= 0 {
		return fmt.Errorf("safetensors: %w: files of at most %d bytes", ErrInvalidTensor, maxShard)
	}
	if _, err := arrange(tensors, metadata); err != nil { // nothing is written if one cannot be
		return err
	}
	shards := split(tensors, maxShard)
	if len(shards) == 1 {
		if err := WriteFileFrom(path, shards[0], metadata, data); err != nil {
			return err
		}
		return removeStale(stem, map[string]bool{path: true})
	}
	index := newIndex()
	written := map[string]bool{path + ".index.json": true}
	for i, shard := range shards {
		name := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(shards))
		if err := WriteFileFrom(name, shard, metadata, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		written[name] = true
		index.add(filepath.Base(name), shard)
	}
	if err := index.write(path + ".index.json"); err != nil {
		return err
	}
	return removeStale(stem, written)
}

// split divides tensors, which were checked, into files. There is at least one.
func split(tensors []Info, maxShard int64) [][]Info {
	shards := [][]Info{nil}
	room := maxShard
	for _, t := range tensors {
		size, _ := byteSize(t.DType, t.Shape)
		last := &shards[len(shards)-1]
		if size > room && len(*last) > 0 {
			shards = append(shards, nil)
			last = &shards[len(shards)-1]
			room = maxShard
		}
		*last = append(*last, t)
		room -= min(room, size)
	}
	return shards
}

// index is the file that says where each tensor is.
type index struct {
	Metadata struct {
		TotalSize int64 `json:"total_size"`
	} `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// WriteIndex writes the index of a model whose tensors are in several files of the index's folder, whole or not
// at all: Open reads the model by it. files has the tensors by the file's name.
func WriteIndex(path string, files map[string][]Info) error {
	x := newIndex()
	for name, tensors := range files {
		if _, err := arrange(tensors, nil); err != nil {
			return err
		}
		x.add(name, tensors)
	}
	return x.write(path)
}

func newIndex() *index { return &index{WeightMap: map[string]string{}} }

func (x *index) add(file string, tensors []Info) {
	for _, t := range tensors {
		size, _ := byteSize(t.DType, t.Shape)
		x.Metadata.TotalSize += size
		x.WeightMap[t.Name] = file
	}
}

func (x *index) write(path string) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(x)
	})
}

var shardName = regexp.MustCompile(`^-\d{5}-of-\d{5}\.safetensors$`)

// removeStale removes files of a model of the same name that were not written now.
func removeStale(stem string, written map[string]bool) error {
	dir, base := filepath.Split(stem)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), base)
		if !ok || !shardName.MatchString(rest) && rest != ".safetensors" && rest != ".safetensors.index.json" {
			continue
		}
		if name := dir + e.Name(); !written[name] {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("safetensors: %w", err)
			}
		}
	}
	return nil
}
