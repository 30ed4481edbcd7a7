package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/weights"
)

// weightFiles is what a model remembers of the files that its weights came from.
type weightFiles struct {
	tensors  []string // names of those of the last file, sorted
	set      string   // the named set that the last file became
	stateful bool
}

// updateFrom sets those constants that a file has.
func (m *Model) updateFrom(ctx context.Context, path string) error {
	values, err := readTensors(path)
	if err != nil {
		return err
	}
	defer releaseAll(values)
	m.files.tensors = slices.Sorted(maps.Keys(values))
	if err := m.runner.Update(ctx, values, aoti.Active, aoti.Partial()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// SwapWeights has runs that begin from now on compute with the tensors of another file, as if the
// model had been opened with it, and without a second instance. It returns false where that is not
// the same: the file has other tensors than the one before, the model has a state, or its weights
// were changed by somebody else. One call is made at a time.
func (m *Model) SwapWeights(ctx context.Context, path string) (bool, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	var names []string
	for _, info := range f.Tensors() {
		names = append(names, info.Name)
	}
	slices.Sort(names)
	if m.files.stateful || !slices.Equal(names, m.files.tensors) {
		return false, nil
	}
	if m.weights != nil {
		return m.swapSet(ctx, path)
	}
	values, err := readTensors(path)
	if err != nil {
		return false, err
	}
	defer releaseAll(values)
	c := m.container
	err = c.Update(ctx, values, container.Inactive, container.Partial(), container.UserManaged())
	if errors.Is(err, container.ErrNoConstants) {
		return false, nil
	}
	if err == nil {
		err = c.Fold(ctx, container.Inactive)
	}
	if err == nil {
		err = c.Swap(ctx)
	}
	if err = errors.Join(err, c.FreeInactive(ctx)); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// swapSet is SwapWeights of a model with named sets: the file becomes one, or is one already.
func (m *Model) swapSet(ctx context.Context, path string) (bool, error) {
	if m.weights.Active() != m.files.set {
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	done, err := m.weights.Update(ctx, f, weights.Update{Partial: true, Source: filepath.Base(path)})
	var e *inference.Error
	if errors.As(err, &e) && e.Kind == inference.AlreadyExists {
		return m.swapBack(ctx, f)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	m.files.set = done.Name
	return true, nil
}

// swapBack activates the set that a file has become before; false if there is none.
func (m *Model) swapBack(ctx context.Context, f *os.File) (bool, error) {
	digest := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	if _, err := io.Copy(digest, f); err != nil {
		return false, err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	for _, s := range m.weights.List() {
		if s.SHA256 == sum {
			_, _, err := m.weights.Activate(ctx, s.Name)
			if err == nil {
				m.files.set = s.Name
			}
			return err == nil, err
		}
	}
	return false, nil
}

func readTensors(path string) (_ map[string]backend.Buffer, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string]backend.Buffer{}
	defer func() {
		if err != nil {
			releaseAll(values)
		}
	}()
	for _, info := range f.Tensors() {
		shape, data, err := tensorfile.Read(f, info.Name)
		if err == nil {
			values[info.Name], err = aoti.FromBytes(data, shape.DType(), shape.Dims()...)
		}
		if err != nil {
			delete(values, info.Name)
			return values, fmt.Errorf("%s: tensor %q: %w", path, info.Name, err)
		}
	}
	return values, nil
}

func releaseAll(values map[string]backend.Buffer) {
	for _, b := range values {
		b.Release()
	}
}
