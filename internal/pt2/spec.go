package pt2

import (
	"fmt"
	"math"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/escape"
	"github.com/loris-ml/loris/internal/ir"
)

// Spec says what a model takes and gives, as far as the generated source tells.
type Spec struct {
	// Inputs and Outputs in the order of the call.
	Inputs  []InputSpec
	Outputs []string
	// Constants are the model's constants in its own order.
	Constants []ConstantSpec
	// InSpec and OutSpec say how inputs and outputs nest (PyTorch's pytree, JSON).
	InSpec, OutSpec string

	symbols []symbol
}

// InputSpec describes one input.
type InputSpec struct {
	// Name is the name inside the model.
	Name string
	// TypeName is PyTorch's name of the element type ("float32"); empty where the
	// source does not say. DType is the same, or Invalid for a type that Loris does
	// not have.
	TypeName string
	DType    ir.DType
	// Known says that Dims is known.
	Known bool
	// Dims are the dimensions.
	Dims []DimSpec
	// Device is the type of the device that it must be on; empty where unknown.
	Device string
	// RowMajor says that the strides must be those of a dense row-major tensor;
	// otherwise [Strides] tells them.
	RowMajor bool
}

// DimSpec describes one dimension of an input.
type DimSpec struct {
	// Min and Max bound the size; Max is -1 without a bound. Both are the size of a
	// fixed dimension.
	Min, Max int64
	// AtMostTwo says that the least size is 0, 1 or 2 and that the package does not tell
	// which: PyTorch writes 2 for all of them. Min is 0 then, so that no size is refused
	// that the export allowed.
	AtMostTwo bool
	// Size and Stride are the size and the stride as expressions of the symbols of
	// dynamic sizes ("8", "s0", "2*s0"); empty where unknown.
	Size, Stride string

	size, stride *expr
}

// Fixed reports whether the dimension has one size only.
func (d *DimSpec) Fixed() bool { return d.Min == d.Max }

// String returns "8" for a fixed dimension, and else "s0 in 3..16", or "s0 in 0|1|2..16"
// where AtMostTwo.
func (d *DimSpec) String() string {
	if d.Fixed() {
		return fmt.Sprint(d.Min)
	}
	s := fmt.Sprintf("%d..", d.Min)
	if d.AtMostTwo {
		s = "0|1|2.."
	}
	if d.Max >= 0 {
		s += fmt.Sprint(d.Max)
	}
	if d.Size != "" {
		s = d.Size + " in " + s
	}
	return s
}

// String returns the input as "name: float32[s0 in 2..16, 8] on cpu".
func (in *InputSpec) String() string {
	var b strings.Builder
	typ := in.TypeName
	if typ == "" {
		typ = "?"
	}
	fmt.Fprintf(&b, "%s: %s[", in.Name, typ)
	if !in.Known {
		b.WriteByte('?')
	}
	for i := range in.Dims {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(in.Dims[i].String())
	}
	b.WriteByte(']')
	if !in.RowMajor && in.Known {
		b.WriteString(" strides [")
		for i := range in.Dims {
			if i > 0 {
				b.WriteString(", ")
			}
			if s := in.Dims[i].Stride; s != "" {
				b.WriteString(s)
			} else {
				b.WriteByte('?')
			}
		}
		b.WriteByte(']')
	}
	if in.Device != "" {
		b.WriteString(" on " + in.Device)
	}
	return b.String()
}

// ConstantSpec describes one constant.
type ConstantSpec struct {
	backend.Constant
	// TypeName is PyTorch's name of the element type. Shape is the zero Shape for
	// one that Loris does not have, and where the source does not give a stride for
	// each size of a constant that is not folded.
	TypeName string
	// Sizes and Strides are in elements, and Offset is where in its storage the
	// constant begins.
	Sizes, Strides []int64
	Offset         int64
	// Device is the type of the device that it lives on.
	Device string
	// Opaque describes packed weights, whose layout only oneDNN knows; nil for
	// plain ones.
	Opaque []byte
	// ReadOnly says that no function of the source writes it, so that instances
	// may share one copy.
	ReadOnly bool
}

// symbol is a dynamic size: a dimension of an input.
type symbol struct {
	name       string
	input, dim int // -1 where no input gives it
	same       int // index of the symbol that it is an alias of; -1
}

// torchDTypes maps PyTorch's names to dtypes.
var torchDTypes = map[string]ir.DType{
	"bool": ir.Bool, "uint8": ir.U8, "int8": ir.I8, "int16": ir.I16, "int32": ir.I32, "int64": ir.I64,
	"float16": ir.F16, "bfloat16": ir.BF16, "float32": ir.F32, "float64": ir.F64,
	"complex64": ir.C64, "complex128": ir.C128, "float8_e4m3fn": ir.F8E4M3FN, "float8_e5m2": ir.F8E5M2,
}

// TorchName returns PyTorch's name of a dtype ("float32" for f32).
func TorchName(d ir.DType) string {
	for name, t := range torchDTypes {
		if t == d {
			return name
		}
	}
	return d.String()
}

// Spec parses the generated source of the model. The result is empty, but not
// nil, for a package without source.
func (m *Model) Spec() (*Spec, error) {
	m.specOnce.Do(func() {
		src, err := m.Source()
		if err != nil {
			m.specErr = err
			return
		}
		m.spec = ParseSource(src)
	})
	return m.spec, m.specErr
}

// InputError says that an input is not what the model was compiled for.
type InputError struct {
	// Index and Name say which input; Index is -1 if their number is wrong.
	Index int
	Name  string
	// What is the property: "count", "dtype", "rank", "size" or "device"; Dim is
	// the dimension if it is "size".
	What string
	Dim  int
	// Want and Got are what was expected and what came.
	Want, Got string
}

// Error names the input, what was expected and what came.
func (e *InputError) Error() string {
	what := e.What
	switch e.What {
	case "count":
		return fmt.Sprintf("aoti: the model takes %s inputs, got %s", e.Want, e.Got)
	case "size":
		what = fmt.Sprintf("dimension %d", e.Dim)
	}
	return escape.Text(fmt.Sprintf("aoti: input %d (%s): %s must be %s, got %s", e.Index, e.Name, what, e.Want, e.Got))
}

// Tensor is what a check looks at; every backend.Buffer is one.
type Tensor interface {
	Shape() ir.Shape
	Device() ir.Device
}

// maxSymbols16 is how many symbols a check holds without allocating.
const maxSymbols16 = 16

// Check tells whether a model can be called with these inputs: their number,
// dtypes, ranks, fixed sizes, ranges, sizes that depend on each other, and
// devices, as far as the source tells. The error is an *InputError.
func Check[T Tensor](s *Spec, inputs []T) error {
	if len(inputs) != len(s.Inputs) {
		return &InputError{Index: -1, What: "count", Want: fmt.Sprint(len(s.Inputs)), Got: fmt.Sprint(len(inputs))}
	}
	for i := range s.Inputs {
		if err := s.Inputs[i].check(i, inputs[i].Shape(), inputs[i].Device()); err != nil {
			return err
		}
	}
	if len(s.symbols) == 0 {
		return nil
	}
	var room [maxSymbols16]int64
	values := bind(s, inputs, room[:0])
	for i := range s.Inputs {
		shape := inputs[i].Shape()
		for d := range s.Inputs[i].Dims {
			dim := &s.Inputs[i].Dims[d]
			if dim.size == nil {
				continue
			}
			if want, ok := dim.size.eval(values); ok && want != int64(shape.Dim(d)) {
				return &InputError{
					Index: i, Name: s.Inputs[i].Name, What: "size", Dim: d,
					Want: fmt.Sprintf("%d (%s)", want, s.explain(dim)), Got: fmt.Sprint(shape.Dim(d)),
				}
			}
		}
	}
	return nil
}

func (in *InputSpec) check(i int, shape ir.Shape, device ir.Device) error {
	fail := func(what string, dim int, want, got any) error {
		return &InputError{Index: i, Name: in.Name, What: what, Dim: dim, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
	}
	if in.TypeName != "" && shape.DType() != in.DType {
		return fail("dtype", 0, in.TypeName, TorchName(shape.DType()))
	}
	if in.Device != "" && !device.IsAny() && device.Type.String() != in.Device {
		return fail("device", 0, in.Device, device)
	}
	if !in.Known {
		return nil
	}
	if shape.Rank() != len(in.Dims) {
		return fail("rank", 0, len(in.Dims), shape.Rank())
	}
	for d := range in.Dims {
		n := int64(shape.Dim(d))
		dim := &in.Dims[d]
		switch {
		case n >= dim.Min && (dim.Max < 0 || n <= dim.Max):
		case dim.Fixed():
			return fail("size", d, dim.Min, n)
		case dim.Max < 0:
			return fail("size", d, fmt.Sprintf("at least %d", dim.Min), n)
		case dim.Min == 0:
			return fail("size", d, fmt.Sprintf("at most %d", dim.Max), n)
		default:
			return fail("size", d, fmt.Sprintf("%d to %d", dim.Min, dim.Max), n)
		}
	}
	return nil
}

// bind gives each symbol its value, appending to dst. The ranks were checked.
func bind[T Tensor](s *Spec, inputs []T, dst []int64) []int64 {
	for _, sym := range s.symbols {
		v := int64(unbound)
		switch {
		case sym.same >= 0:
			v = dst[sym.same]
		case sym.input >= 0:
			if shape := inputs[sym.input].Shape(); sym.dim < shape.Rank() {
				v = int64(shape.Dim(sym.dim))
			}
		}
		dst = append(dst, v)
	}
	return dst
}

// explain says where the symbols of a size come from.
func (s *Spec) explain(d *DimSpec) string {
	text := d.Size
	d.size.each(func(i int) {
		for s.symbols[i].same >= 0 {
			i = s.symbols[i].same
		}
		if sym := s.symbols[i]; sym.input >= 0 {
			text += fmt.Sprintf("; %s is dimension %d of %s", sym.name, sym.dim, s.Inputs[sym.input].Name)
		}
	})
	return text
}

// each calls fn for every symbol in e.
func (e *expr) each(fn func(int)) {
	switch e.op {
	case 'n':
	case 's':
		fn(e.sym)
	default:
		e.l.each(fn)
		e.r.each(fn)
	}
}

// Strides appends to dst the strides that input i must have, for these inputs,
// which passed Check. Where the source does not tell one it is that of a dense
// row-major tensor.
func Strides[T Tensor](s *Spec, inputs []T, i int, dst []int64) []int64 {
	var room [maxSymbols16]int64
	values := bind(s, inputs, room[:0])
	shape := inputs[i].Shape()
	at := len(dst)
	dense := int64(1)
	for range shape.Rank() {
		dst = append(dst, 0)
	}
	for d := shape.Rank() - 1; d >= 0; d-- {
		dst[at+d] = dense
		dense *= int64(max(shape.Dim(d), 1))
		if d < len(s.Inputs[i].Dims) && s.Inputs[i].Dims[d].stride != nil {
			if v, ok := s.Inputs[i].Dims[d].stride.eval(values); ok {
				dst[at+d] = v
			}
		}
	}
	return dst
}

// samplePoints returns values of the symbols at which expressions are compared:
// polynomials that agree at points that have nothing in common are equal.
func samplePoints(symbols []symbol) [][]int64 {
	points := [][]int64{{3, 5, 7, 11, 13}, {17, 19, 23, 29, 31}}
	for p, primes := range points {
		values := make([]int64, len(symbols))
		for i, sym := range symbols {
			values[i] = primes[i%len(primes)] + int64(i/len(primes))*40
			if sym.same >= 0 {
				values[i] = values[sym.same]
			}
		}
		points[p] = values
	}
	return points
}

// rowMajor tells whether the strides of an input are those of a dense row-major
// tensor, whatever the symbols. The stride of a dimension of size 1 is free.
func (in *InputSpec) rowMajor(points [][]int64) bool {
	for _, values := range points {
		dense, known := int64(1), true
		for d := len(in.Dims) - 1; d >= 0; d-- {
			dim := &in.Dims[d]
			if dim.stride != nil && known && !(dim.Fixed() && dim.Min <= 1) {
				if v, ok := dim.stride.eval(values); ok && v != dense {
					return false
				}
			}
			n, ok := dim.Min, dim.Fixed()
			if !ok && dim.size != nil {
				n, ok = dim.size.eval(values)
			}
			if known = known && ok && n < math.MaxInt32 && dense < math.MaxInt32; known {
				dense *= max(n, 1)
			}
		}
	}
	return true
}
