package data

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

// Dataset is samples that can be read in any order.
type Dataset[T any] interface {
	// Len returns the number of samples.
	Len() int
	// At returns sample i, from 0 to Len()-1. Several goroutines call it at once. It may block,
	// until ctx ends. Random transforms take their numbers from r, which is seeded for each sample
	// of each epoch and valid during the call.
	At(ctx context.Context, i int, r *rand.Rand) (T, error)
}

// Func returns a dataset of n samples that fn makes.
func Func[T any](n int, fn func(ctx context.Context, i int, r *rand.Rand) (T, error)) Dataset[T] {
	return function[T]{n, fn}
}

type function[T any] struct {
	n  int
	fn func(ctx context.Context, i int, r *rand.Rand) (T, error)
}

func (f function[T]) Len() int { return f.n }

func (f function[T]) At(ctx context.Context, i int, r *rand.Rand) (T, error) { return f.fn(ctx, i, r) }

// Slice returns a dataset of the values.
func Slice[T any](values []T) Dataset[T] {
	return Func(len(values), func(_ context.Context, i int, _ *rand.Rand) (T, error) { return values[i], nil })
}

// Map returns a dataset of what fn makes of each sample.
func Map[T, U any](ds Dataset[T], fn func(T) (U, error)) Dataset[U] {
	return Augment(ds, func(_ *rand.Rand, s T) (U, error) { return fn(s) })
}

// Augment is Map with random numbers, which depend on the loader's seed, the epoch and the sample
// alone: neither on other samples nor on goroutines.
func Augment[T, U any](ds Dataset[T], fn func(r *rand.Rand, s T) (U, error)) Dataset[U] {
	return Func(ds.Len(), func(ctx context.Context, i int, r *rand.Rand) (U, error) {
		s, err := ds.At(ctx, i, r)
		if err != nil {
			var zero U
			return zero, err
		}
		return fn(r, s)
	})
}

// Subset returns a dataset of the samples at the indices, in that order. It panics with an *OpError
// if one is not from 0 to Len()-1.
func Subset[T any](ds Dataset[T], indices []int) Dataset[T] {
	for _, i := range indices {
		if i < 0 || i >= ds.Len() {
			panic(ir.NewOpError("data.Subset", loris.ErrArg, nil, "index %d of %d samples", i, ds.Len()))
		}
	}
	return Func(len(indices), func(ctx context.Context, i int, r *rand.Rand) (T, error) { return ds.At(ctx, indices[i], r) })
}

// Split divides a dataset at random, in the order of Permutation(ds.Len(), seed), into one of n
// samples and one of the others. It panics with an *OpError if n is not from 0 to Len().
func Split[T any](ds Dataset[T], n int, seed uint64) (first, rest Dataset[T]) {
	if n < 0 || n > ds.Len() {
		panic(ir.NewOpError("data.Split", loris.ErrArg, nil, "%d of %d samples", n, ds.Len()))
	}
	order := Permutation(ds.Len(), seed)
	return Subset(ds, order[:n]), Subset(ds, order[n:])
}

// Concat returns a dataset of all samples of several, one after the other.
func Concat[T any](sets ...Dataset[T]) Dataset[T] {
	n := 0
	for _, ds := range sets {
		n += ds.Len()
	}
	return Func(n, func(ctx context.Context, i int, r *rand.Rand) (T, error) {
		for _, ds := range sets[:len(sets)-1] {
			if i < ds.Len() {
				return ds.At(ctx, i, r)
			}
			i -= ds.Len()
		}
		return sets[len(sets)-1].At(ctx, i, r)
	})
}

// Rows returns a dataset of the rows of arrays, which have the same first dimension: sample i is row
// i of each. The samples share the arrays' memory. Arrays that do not fit are an error wrapping
// ErrShape.
func Rows(arrays ...Array) (Dataset[Sample], error) {
	n, err := commonRows(len(arrays), func(k int) (string, loris.Shape) { return fmt.Sprint("array ", k), arrays[k].Shape })
	if err != nil {
		return nil, err
	}
	for k, a := range arrays {
		if len(a.Data) != a.Shape.Bytes() {
			return nil, fmt.Errorf("data: %w: array %d has %d bytes of data for %v", loris.ErrShape, k, len(a.Data), a.Shape)
		}
	}
	rows := make([]loris.Shape, len(arrays))
	for k, a := range arrays {
		rows[k] = rowOf(a.Shape)
	}
	return Func(n, func(_ context.Context, i int, _ *rand.Rand) (Sample, error) {
		s := make(Sample, len(arrays))
		for k, a := range arrays {
			n := rows[k].Bytes()
			s[k] = Array{rows[k], a.Data[i*n : (i+1)*n : (i+1)*n]}
		}
		return s, nil
	}), nil
}

// rowOf returns the shape without its first dimension.
func rowOf(s loris.Shape) loris.Shape { return s.WithDims(s.Dims()[1:]...) }

// commonRows returns the first dimension of n shapes, which all must have.
func commonRows(n int, shape func(k int) (name string, s loris.Shape)) (int, error) {
	if n == 0 {
		return 0, fmt.Errorf("data: %w: rows of no arrays", loris.ErrArg)
	}
	firstName, first := shape(0)
	for k := range n {
		name, s := shape(k)
		if s.Rank() == 0 {
			return 0, fmt.Errorf("data: %w: %s, %v, has no rows", loris.ErrShape, name, s)
		}
		if s.Dim(0) != first.Dim(0) {
			return 0, fmt.Errorf("data: %w: %s, %v, has other rows than %s, %v", loris.ErrShape, name, s, firstName, first)
		}
	}
	return first.Dim(0), nil
}

// Tensors returns a dataset of the rows of the named tensors of a safetensors file, which stays open
// meanwhile: sample i is row i of each. Rows are read from the file when they are asked for, so
// that it may be larger than memory. A tensor that is missing is safetensors.ErrNotFound, one whose
// dtype Loris lacks wraps ErrDType, rows that do not fit ErrShape.
func Tensors(f *safetensors.File, names ...string) (Dataset[Sample], error) {
	shapes := make([]loris.Shape, len(names))
	sections := make([]*io.SectionReader, len(names))
	for k, name := range names {
		var err error
		if sections[k], err = f.Section(name); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		info, _ := f.Lookup(name)
		if shapes[k], err = tensorfile.Shape(info); err != nil {
			return nil, fmt.Errorf("data: tensor %q: %w", name, err)
		}
	}
	n, err := commonRows(len(names), func(k int) (string, loris.Shape) { return fmt.Sprintf("tensor %q", names[k]), shapes[k] })
	if err != nil {
		return nil, err
	}
	for k, s := range shapes {
		shapes[k] = rowOf(s)
	}
	return Func(n, func(ctx context.Context, i int, _ *rand.Rand) (Sample, error) {
		s := make(Sample, len(names))
		for k, row := range shapes {
			s[k] = Array{row, make([]byte, row.Bytes())}
			if got, err := sections[k].ReadAt(s[k].Data, int64(i)*int64(row.Bytes())); got < len(s[k].Data) {
				return nil, fmt.Errorf("row %d of tensor %q: %w", i, names[k], err)
			}
		}
		return s, ctx.Err()
	}), nil
}

// ReadTensor reads a tensor of a safetensors file as an array, for Rows. Errors are those of
// Tensors.
func ReadTensor(f *safetensors.File, name string) (Array, error) {
	s, b, err := tensorfile.Read(f, name)
	if err != nil {
		return Array{}, fmt.Errorf("data: %w", err)
	}
	return Array{s, b}, nil
}

// Files returns a dataset of files, each decoded when it is asked for. Errors name the file.
func Files[T any](fsys fs.FS, paths []string, decode func(path string, r io.Reader) (T, error)) Dataset[T] {
	return Func(len(paths), func(ctx context.Context, i int, _ *rand.Rand) (s T, err error) {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		f, err := fsys.Open(paths[i])
		if err != nil {
			return s, err
		}
		defer f.Close()
		if s, err = decode(paths[i], f); err != nil {
			return s, fmt.Errorf("%s: %w", paths[i], err)
		}
		return s, nil
	})
}
