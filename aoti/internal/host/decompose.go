//go:build linux && cgo

package host

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// decomposition is one call of an op as a Program, which a device runs on tensors where
// they lie. It depends on the operands' shapes and layouts and on what only.
type decomposition struct {
	what  []byte // names the op and its attributes
	in    []*tensor
	build builder // of in, then of tables, then of the seed
	// tables are operands that follow from what and the shapes.
	tables []table
	// draws says that the op is random: a seed, an i64 scalar, is the last operand.
	draws bool
	// strides returns those of result i where a new tensor is made for it; nil for
	// row-major ones, as the function may be.
	strides func(i int, s ir.Shape) []int64
	// places has, by result, the number of the op's result that it is, which may leave
	// some undefined; nil for all in order.
	places []int
	// results is how many results the op has where places leaves some undefined.
	results int
	// into has the tensors that results go to; nil makes new ones.
	into []*tensor
	// zeros are further results, after the others, which are 0.
	zeros []zeroTensor
	// numbers are the results that are no tensors.
	numbers []int64
}

// zeroTensor is a tensor of zeros, of any of PyTorch's dtypes.
type zeroTensor struct {
	code int32
	dims []int64
}

// table is a constant operand. Its data are made when they are first needed.
type table struct {
	shape ir.Shape
	data  func() []byte
}

// decomposeFunc reads the arguments of an op.
type decomposeFunc func(v values) (*decomposition, error)

// shapes returns those of all operands.
func (r *decomposition) shapes() ([]ir.Shape, error) {
	var out []ir.Shape
	for i, t := range r.in {
		s, err := shapeOf(t)
		if err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
		out = append(out, s)
	}
	for _, t := range r.tables {
		out = append(out, t.shape)
	}
	if r.draws {
		out = append(out, ir.MakeShape(ir.I64))
	}
	return out, nil
}

// program records the op. into has the shapes that results are converted to and
// broadcast, which are Invalid for those that may be what they are.
func (r *decomposition) program(into []ir.Shape) (p *graph.Program, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = recovered(x)
		}
	}()
	shapes, err := r.shapes()
	if err != nil {
		return nil, err
	}
	vals := newParams(shapes)
	b := ir.NewConsing(0)
	outs := r.build(b, vals)
	for i, s := range into {
		if i < len(outs) && s.DType() != ir.Invalid {
			x := b.Cast(outs[i], s.DType())
			if n := x.Rank() - s.Rank(); n > 0 && product(x.Shape().Dims()[:n]) == 1 {
				x = b.Reshape(x, x.Shape().Dims()[n:]...)
			}
			outs[i] = b.Expand(x, s.Dims()...)
		}
	}
	return graph.FromValues("eager", vals, outs), nil
}

// allResults returns what the Program made, which it takes over, with undefined tensors in the
// places of other results.
func (r *decomposition) allResults(made []*tensor, err error) ([]*tensor, error) {
	if err != nil || r.places == nil {
		return made, err
	}
	outs := make([]*tensor, max(r.results, slices.Max(append(r.places, -1))+1))
	for i, t := range made {
		outs[r.places[i]] = t
	}
	for i, t := range outs {
		if t == nil && err == nil {
			outs[i], err = newUndefined()
		}
	}
	return all(err, outs...)
}

// key is what two calls with the same Program have in common, but for layouts.
func (r *decomposition) key() ([]byte, error) {
	key := append([]byte(nil), r.what...)
	key = append(key, '|')
	for i, t := range r.in {
		s, err := shapeOf(t)
		if err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
		key = append(s.Append(key), ';')
	}
	return key, nil
}

// errNoDecomposition says that what an op is called with has no decomposition.
var errNoDecomposition = fmt.Errorf("%w: it has no Program", backend.ErrUnsupported)
