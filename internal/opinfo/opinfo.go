// Package opinfo reads test vectors made from PyTorch's OpInfo samples: for each op calls with inputs, attributes and
// expected outputs, for f64 also gradients, over all dtypes that PyTorch's CPU backend supports for the op. Names of ops
// and arguments are ATen's. The vectors are embedded; scripts/opinfo makes them and documents the format.
//
// The package knows nothing of Loris's own types, so that every layer can be tested with it.
package opinfo

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed testdata/*.json.gz
var files embed.FS

const (
	folder = "testdata/"
	suffix = ".json.gz"
)

// A Case is one call of an op and what PyTorch made of it.
type Case struct {
	Op    string
	DType DType // the sample's; operands of mixed cases may have others

	Inputs []Arg  // operands, in ATen's order; absent optional ones are missing
	Attrs  []Attr // the other arguments, in ATen's order; those that equal ATen's defaults are missing

	Outputs []Tensor
	// Mutated holds the new values of inputs that ATen updates in place (the running statistics of batch_norm in training).
	Mutated []Arg

	// Grads are the gradients of sum(Outputs[i] * Cotangents[i]) with respect to f64 inputs. An output that has no
	// gradient has a nil cotangent. Both are empty when the case has no gradients.
	Cotangents []*Tensor
	Grads      []Grad

	// ATol, when positive, replaces the default absolute tolerance: PyTorch rounds intermediate results of this case and
	// is itself that far from the exact result.
	ATol float64
}

// An Arg is an operand: one tensor, a list of tensors, or a number in the place of a tensor. Exactly one of the three
// fields is set (List may be empty but is then not nil).
type Arg struct {
	Name   string
	Tensor *Tensor
	List   []*Tensor // a nil element is a hole, as in the index list x[:, i] of index_put
	Scalar any       // bool, int64 or float64: a Python number, whose kind decides type promotion
}

// An Attr is a named argument that is not an operand. Value is a bool, int64, float64, string, [DType], []int64 or
// []float64.
type Attr struct {
	Name  string
	Value any
}

// A Grad is the gradient with respect to one input, or to element Index of a list.
type Grad struct {
	Input  string
	Index  int
	Tensor Tensor
}

// Ops returns the names of all ops that have vectors, sorted.
func Ops() []string {
	entries, err := files.ReadDir("testdata")
	if err != nil {
		return nil // the folder is embedded: it can't be absent
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), suffix)
	}
	return names
}

// Load returns the cases of an op. For an op without vectors the error wraps [io/fs.ErrNotExist].
func Load(op string) ([]Case, error) {
	f, err := files.Open(folder + op + suffix)
	if err != nil {
		return nil, fmt.Errorf("opinfo: vectors of %q: %w", op, err)
	}
	defer f.Close()
	cases, err := decode(f, op)
	if err != nil {
		return nil, fmt.Errorf("opinfo: vectors of %q: %w", op, err)
	}
	return cases, nil
}

// Input returns the operand of that name, or nil when the case has none.
func (c *Case) Input(name string) *Arg {
	for i := range c.Inputs {
		if c.Inputs[i].Name == name {
			return &c.Inputs[i]
		}
	}
	return nil
}

// Attr returns the value of the attribute of that name, or nil when the case leaves it at ATen's default.
func (c *Case) Attr(name string) any {
	for _, a := range c.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// Tolerance returns the tolerance for outputs of a dtype: the default one, widened where the case says so.
func (c *Case) Tolerance(dtype DType) Tolerance {
	tol := DefaultTolerance(dtype)
	if tol != (Tolerance{}) && c.ATol > tol.ATol {
		tol.ATol = c.ATol
	}
	return tol
}

// Check compares results with the expected outputs; the error names the case and wraps [ErrMismatch].
func (c *Case) Check(got []Tensor) error {
	if len(got) != len(c.Outputs) {
		return fmt.Errorf("%v: %w: %d outputs, want %d", c, ErrMismatch, len(got), len(c.Outputs))
	}
	for i, want := range c.Outputs {
		if err := c.Tolerance(want.DType).Compare(got[i], want); err != nil {
			return fmt.Errorf("%v: output %d: %w", c, i, err)
		}
	}
	return nil
}

// String returns the call on one line, such as add(self=f32[5,5], other=2.5, alpha=2).
func (c *Case) String() string {
	var parts []string
	for _, in := range c.Inputs {
		parts = append(parts, in.String())
	}
	for _, a := range c.Attrs {
		parts = append(parts, fmt.Sprintf("%s=%v", a.Name, a.Value))
	}
	return c.Op + "(" + strings.Join(parts, ", ") + ")"
}

// String returns name=value with the dtype and shape of tensors.
func (a Arg) String() string {
	switch {
	case a.Tensor != nil:
		return a.Name + "=" + a.Tensor.String()
	case a.List != nil:
		parts := make([]string, len(a.List))
		for i, t := range a.List {
			parts[i] = "none"
			if t != nil {
				parts[i] = t.String()
			}
		}
		return a.Name + "=[" + strings.Join(parts, " ") + "]"
	default:
		return fmt.Sprintf("%s=%v", a.Name, a.Scalar)
	}
}
