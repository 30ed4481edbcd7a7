package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris/internal/escape"
	"github.com/loris-ml/loris/nn"
)

// ErrNotFound is wrapped where a repository, a revision or a file is not there.
var ErrNotFound = errors.New("not found")

// Folder is a folder with the files of a model.
type Folder struct {
	dir    string
	commit string
}

// Open returns the folder at a path.
func Open(path string) (*Folder, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("hub: %w: %w", ErrNotFound, err)
	case err != nil:
		return nil, fmt.Errorf("hub: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("hub: %s is a file, not a folder", path)
	}
	return &Folder{dir: path}, nil
}

// Dir returns the path of the folder.
func (f *Folder) Dir() string { return f.dir }

// Commit returns the commit that the folder is a snapshot of; empty for a folder outside of a cache.
func (f *Folder) Commit() string { return f.commit }

// Path returns the path of a file of the folder, whose name has slashes. Names that leave the folder are
// errors, files that it lacks wrap ErrNotFound.
func (f *Folder) Path(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("hub: %w: %w", ErrNotFound, err)
		}
		return "", fmt.Errorf("hub: %w", err)
	}
	return path, nil
}

// maxJSON bounds the JSON that is read whole: configurations and lists of files.
const maxJSON = 64 << 20

// Config decodes config.json into v, as json.Unmarshal does.
func (f *Folder) Config(v any) error {
	path, err := f.Path("config.json")
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	defer file.Close()
	if err := decodeJSON(file, v); err != nil {
		return fmt.Errorf("hub: %s: %w", path, err)
	}
	return nil
}

// decodeJSON decodes all of r.
func decodeJSON(r io.Reader, v any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return err
	}
	if len(b) > maxJSON {
		return fmt.Errorf("more than %d bytes of JSON", maxJSON)
	}
	return json.Unmarshal(b, v)
}

// Weights returns the path of the weights, for nn.Load and safetensors.Open: model.safetensors, the
// index of a model in several files, or the only safetensors file that there is.
func (f *Folder) Weights() (string, error) {
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json"} {
		if path, err := f.Path(name); err == nil || !errors.Is(err, ErrNotFound) {
			return path, err
		}
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return "", fmt.Errorf("hub: %w", err)
	}
	var found, pickles []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".safetensors":
			found = append(found, e.Name())
		case ".bin", ".pt", ".pth":
			pickles = append(pickles, e.Name())
		}
	}
	switch {
	case len(found) == 1:
		return filepath.Join(f.dir, found[0]), nil
	case len(found) > 1:
		return "", fmt.Errorf("hub: %s has several files of weights and no index: %s; give one of them to nn.Load", f.dir, strings.Join(found, ", "))
	case len(pickles) > 0:
		return "", fmt.Errorf("hub: %w: %s has weights as pickles only (%s): save them with save_pretrained(..., safe_serialization=True)", ErrNotFound, f.dir, strings.Join(pickles, ", "))
	}
	return "", fmt.Errorf("hub: %w: %s has no weights (*.safetensors)", ErrNotFound, f.dir)
}

// Load reads the weights into a module, as nn.Load does with the same options.
func (f *Folder) Load(ctx context.Context, m nn.Module, opts ...nn.LoadOption) (map[string]string, error) {
	path, err := f.Weights()
	if err != nil {
		return nil, err
	}
	return nn.Load(ctx, path, m, opts...)
}

// checkName refuses names of files that are not below their folder on every system, or not text.
func checkName(name string) error {
	if escape.Text(name) != name || strings.ContainsAny(name, "\n\t") || !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("hub: %q is no name of a file in a folder", name)
	}
	return nil
}
