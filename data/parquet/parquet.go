// Package parquet reads columns of Parquet files as arrays for package data. It is a module of its
// own, so that programs which do without have nothing of what it needs.
//
//	f, err := parquet.Open("train.parquet")
//	defer f.Close()
//	x, err := f.Array("x")
//	y, err := f.Array("label")
//	ds, err := data.Rows(x, y)
//
// Files that are larger than memory are read by row groups: Groups, and Group(i) with the same
// methods.
package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

// ErrColumn is returned for a column that the file lacks, or whose kind cannot be what was asked for.
var ErrColumn = errors.New("no such column")

// File is an opened file, or some of its row groups. Several goroutines may use it.
type File struct {
	schema *parquet.Schema
	groups []parquet.RowGroup
	closer io.Closer
}

// Open opens the file at path. One that is not of the format is an error wrapping data.ErrFormat.
func Open(path string) (*File, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	info, err := osFile.Stat()
	if err == nil {
		var f *File
		if f, err = Read(osFile, info.Size()); err == nil {
			f.closer = osFile
			return f, nil
		}
	}
	osFile.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

// Read reads the footer of the file of the given size that r holds. One that is not of the format is
// an error wrapping data.ErrFormat.
func Read(r io.ReaderAt, size int64) (f *File, err error) {
	defer recovered(&err)
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w: %w", data.ErrFormat, err)
	}
	return &File{schema: file.Schema(), groups: file.RowGroups()}, nil
}

// recovered makes a panic of the library, which some damaged files cause, an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("parquet: %w: %v", data.ErrFormat, p)
	}
}

// Close closes a file that Open opened; for others it does nothing.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Columns returns the names of the columns that are not nested, in the order of the file.
func (f *File) Columns() []string {
	var names []string
	for _, path := range f.schema.Columns() {
		if len(path) == 1 {
			names = append(names, path[0])
		}
	}
	return names
}

// Rows returns the number of rows.
func (f *File) Rows() int {
	n := int64(0)
	for _, g := range f.groups {
		n += g.NumRows()
	}
	return int(n)
}

// Groups returns the number of row groups.
func (f *File) Groups() int { return len(f.groups) }

// Group returns row group i alone, from 0 to Groups()-1. It needs no Close.
func (f *File) Group(i int) *File { return &File{schema: f.schema, groups: f.groups[i : i+1]} }

// Array reads a column of booleans or numbers: bool, i32, i64, f32 or f64, as the file has them, of
// one dimension. A row without a value is an error that names it, as is a nested column or one of
// another kind, which wraps ErrColumn. A damaged file wraps data.ErrFormat.
func (f *File) Array(name string) (a data.Array, err error) {
	defer recovered(&err)
	leaf, err := f.column(name)
	if err != nil {
		return data.Array{}, err
	}
	switch kind := leaf.Node.Type().Kind(); kind {
	case parquet.Boolean:
		return array(f, name, leaf, parquet.Value.Boolean)
	case parquet.Int32:
		return array(f, name, leaf, parquet.Value.Int32)
	case parquet.Int64:
		return array(f, name, leaf, parquet.Value.Int64)
	case parquet.Float:
		return array(f, name, leaf, parquet.Value.Float)
	case parquet.Double:
		return array(f, name, leaf, parquet.Value.Double)
	default:
		return data.Array{}, fmt.Errorf("parquet: column %q: %w: %v is not a number; Strings reads bytes", name, ErrColumn, kind)
	}
}

func array[E loris.Elem](f *File, name string, leaf parquet.LeafColumn, value func(parquet.Value) E) (data.Array, error) {
	values, err := read(f, name, leaf, value)
	if err != nil {
		return data.Array{}, err
	}
	return data.Of(values), nil
}

// Strings reads a column of bytes, such as texts or whole image files. Errors are those of Array.
func (f *File) Strings(name string) (list []string, err error) {
	defer recovered(&err)
	leaf, err := f.column(name)
	if err != nil {
		return nil, err
	}
	if kind := leaf.Node.Type().Kind(); kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
		return nil, fmt.Errorf("parquet: column %q: %w: %v is not bytes; Array reads numbers", name, ErrColumn, kind)
	}
	return read(f, name, leaf, func(v parquet.Value) string { return string(v.ByteArray()) })
}

func (f *File) column(name string) (parquet.LeafColumn, error) {
	leaf, ok := f.schema.Lookup(name)
	if !ok {
		return leaf, fmt.Errorf("parquet: column %q: %w: the file has %q", name, ErrColumn, f.Columns())
	}
	if leaf.MaxRepetitionLevel > 0 {
		return leaf, fmt.Errorf("parquet: column %q: %w: lists cannot be read", name, ErrColumn)
	}
	return leaf, nil
}

// read reads a column of all row groups.
func read[E any](f *File, name string, leaf parquet.LeafColumn, value func(parquet.Value) E) ([]E, error) {
	var out []E
	for g, group := range f.groups {
		pages := group.ColumnChunks()[leaf.ColumnIndex].Pages()
		var err error
		if out, err = appendPages(out, pages, value); err != nil {
			err = fmt.Errorf("parquet: column %q, row group %d: %w", name, g, err)
		}
		if err := errors.Join(err, pages.Close()); err != nil {
			return nil, err
		}
	}
	if rows := f.Rows(); len(out) != rows {
		return nil, fmt.Errorf("parquet: column %q: %w: %d values in %d rows", name, data.ErrFormat, len(out), rows)
	}
	return out, nil
}

func appendPages[E any](out []E, pages parquet.Pages, value func(parquet.Value) E) ([]E, error) {
	buf := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", data.ErrFormat, err)
		}
		values := page.Values()
		for err == nil {
			var n int
			n, err = values.ReadValues(buf)
			for _, v := range buf[:n] {
				if v.IsNull() {
					return nil, fmt.Errorf("row %d has no value", len(out))
				}
				if len(out) == math.MaxInt32 {
					return nil, errors.New("more than 2,147,483,647 rows; read it by groups")
				}
				out = append(out, value(v))
			}
		}
		parquet.Release(page)
		if err != io.EOF {
			return nil, fmt.Errorf("%w: %w", data.ErrFormat, err)
		}
	}
}
