package data

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// Column says how a column of a table becomes an array.
type Column struct {
	Name string // in the table's first line
	// DType is a float, an integer or bool; the zero DType is f32, or i64 of Categories. Numbers that
	// an integer dtype cannot hold are errors; bools are what strconv.ParseBool takes.
	DType loris.DType
	// Categories, unless nil, are the texts that may be in the column: the array has their indices.
	Categories []string
	// Empty is the text that an empty field counts as. Without it an empty field is an error, but
	// where it is a category.
	Empty string
}

// ReadCSV reads columns of a table whose first line names them, and returns an array of one dimension
// for each, which Rows and Matrix take. The reader's settings say what separates fields. Space around
// numbers is ignored. Errors name line and column; those of the table's form are *csv.ParseError, a
// name that the table lacks, or has twice, wraps ErrArg.
func ReadCSV(r *csv.Reader, columns ...Column) ([]Array, error) {
	head, err := r.Read()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("data: csv: %w", err)
	}
	head = slices.Clone(head) // the reader may use its memory again
	at := make([]int, len(columns))
	values := make([][]byte, len(columns))
	columns = slices.Clone(columns)
	for k := range columns {
		c := &columns[k]
		if at[k] = slices.Index(head, c.Name); at[k] < 0 || slices.Contains(head[at[k]+1:], c.Name) {
			return nil, fmt.Errorf("data: csv: %w: the table has no column %q, or several: it has %q", loris.ErrArg, c.Name, head)
		}
		if c.DType == ir.Invalid {
			c.DType = loris.F32
			if c.Categories != nil {
				c.DType = loris.I64
			}
		}
		if !c.DType.IsFloat() && !c.DType.IsInt() && c.DType != loris.Bool {
			return nil, fmt.Errorf("data: csv: column %q: %w: %v", c.Name, loris.ErrDType, c.DType)
		}
	}
	rows := 0
	for ; ; rows++ {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("data: csv: %w", err)
		}
		for k, c := range columns {
			if values[k], err = c.append(values[k], row[at[k]]); err != nil {
				line, position := r.FieldPos(at[k])
				return nil, fmt.Errorf("data: csv: line %d, position %d, column %q: %w", line, position, c.Name, err)
			}
		}
	}
	arrays := make([]Array, len(columns))
	for k, c := range columns {
		arrays[k] = Array{loris.MakeShape(c.DType, rows), values[k]}
	}
	return arrays, nil
}

// append appends the value of a field.
func (c *Column) append(b []byte, field string) ([]byte, error) {
	if field == "" && c.Empty != "" {
		field = c.Empty
	}
	bits := 8 * c.DType.Size()
	if c.Categories != nil {
		i := slices.Index(c.Categories, field)
		if i < 0 {
			return b, fmt.Errorf("%q is none of the categories %q", field, c.Categories)
		}
		field = strconv.Itoa(i)
	}
	field = strings.TrimSpace(field)
	switch {
	case c.DType == loris.Bool:
		v, err := strconv.ParseBool(field)
		if v {
			return append(b, 1), err
		}
		return append(b, 0), err
	case c.DType == loris.U8:
		v, err := strconv.ParseUint(field, 10, bits)
		return append(b, uint8(v)), err
	case c.DType.IsInt():
		v, err := strconv.ParseInt(field, 10, bits)
		return elements.AppendInt(b, c.DType, v), err
	}
	v, err := strconv.ParseFloat(field, 64)
	return elements.AppendFloat(b, c.DType, v), err
}

// Matrix returns an array [n, k] whose columns are k arrays [n] of one dtype. Other arrays, or none,
// are an error wrapping ErrShape.
func Matrix(columns ...Array) (Array, error) {
	if len(columns) == 0 {
		return Array{}, fmt.Errorf("data: matrix: %w: no columns", loris.ErrShape)
	}
	first := columns[0].Shape
	if first.Rank() != 1 {
		return Array{}, fmt.Errorf("data: matrix: %w: column 0 is %v", loris.ErrShape, first)
	}
	for k, c := range columns {
		if c.Shape != first || len(c.Data) != first.Bytes() {
			return Array{}, fmt.Errorf("data: matrix: %w: column %d is %v with %d bytes, the first %v", loris.ErrShape, k, c.Shape, len(c.Data), first)
		}
	}
	n, size := first.Dim(0), first.DType().Size()
	out := Array{first.WithDims(n, len(columns)), make([]byte, len(columns)*first.Bytes())}
	for k, c := range columns {
		for i := range n {
			copy(out.Data[(i*len(columns)+k)*size:], c.Data[i*size:(i+1)*size])
		}
	}
	return out, nil
}
