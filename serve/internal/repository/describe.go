package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
)

// Describe says what a version is, loaded or idle. Its files are read whole by the first call of
// all, and by further ones if that fails.
func (r *Repository) Describe(name, number string) (*inference.Description, error) {
	v, err := r.lookup(name, number)
	if err != nil {
		return nil, err
	}
	v.describing.Lock()
	defer v.describing.Unlock()
	if v.description == nil {
		d, err := v.describe()
		if err != nil {
			return nil, inference.Errorf(inference.Unavailable, "model %q version %s cannot be described: %w", name, v.number, err)
		}
		v.description = d
	}
	return v.description, nil
}

func (v *version) describe() (*inference.Description, error) {
	d := &inference.Description{}
	before, err := v.files.fingerprint()
	if err != nil {
		return nil, err
	}
	for _, path := range append([]string{v.files.model, v.files.weights}, v.files.others...) {
		if path == "" {
			continue
		}
		f, err := describeFile(path)
		if err != nil {
			return nil, err
		}
		d.Files = append(d.Files, f)
	}
	p, err := model.Inspect(v.files.model, v.given.Parameters[paramModel].GetStringValue(), v.files.weights)
	if err != nil {
		return nil, err
	}
	d.Package = *p
	d.Changed = before.model != v.fingerprint.model || before.weights != v.fingerprint.weights
	v.model.Describe(d)
	switch rows := v.config.MaxBatchSize; {
	case v.model.FixedRows:
		d.Rows = fmt.Sprintf("compiled for %d; fewer are filled up", v.model.Rows)
	case rows > 0:
		d.Rows = fmt.Sprintf("up to %d, of several requests", rows)
	}
	return d, nil
}

// describeFile reads a file for its digest.
func describeFile(path string) (d inference.FileDescription, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	h := sha256.New()
	d.Name = filepath.Base(path)
	if d.Bytes, err = io.Copy(h, f); err != nil {
		return d, err
	}
	d.SHA256 = hex.EncodeToString(h.Sum(nil))
	return d, nil
}
