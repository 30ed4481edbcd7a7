package loris

import (
	"context"
	"fmt"
)

// The functions here return tensors whose shapes depend on data. Each blocks until the operand and
// a count are computed, or ctx ends, and returns errors of the run and of ctx; inside a function
// given to Compile or the body of a Scan, where nothing has elements, it fails. Mistakes in the
// operand panic with an *OpError.

// Nonzero returns the places of the elements of t that are not zero, i64[count, rank] in row-major
// order. It blocks until the count is known. As torch.nonzero.
func Nonzero(ctx context.Context, t *Tensor) (*Tensor, error) {
	n, err := t.CountNonzero().Item(ctx)
	if err != nil {
		return nil, fmt.Errorf("loris: nonzero: %w", err)
	}
	return t.NonzeroStatic(int(n)), nil
}

// NMS returns the places of the boxes [n, 4], from (x1, y1) to (x2, y2), that remain, i64[count] from
// the best of scores [n] on, when each is left out that overlaps a better one by more than
// iouThreshold of what both cover. It blocks until the count is known; [NMSStatic], whose result has
// a size that the caller chooses, does not. As torchvision.ops.nms.
func NMS(ctx context.Context, boxes, scores *Tensor, iouThreshold float64) (*Tensor, error) {
	kept := NMSStatic(boxes, scores, iouThreshold, scores.Numel())
	n, err := kept.Ge(0).CountNonzero().Item(ctx)
	if err != nil {
		return nil, fmt.Errorf("loris: nms: %w", err)
	}
	return kept.Narrow(0, 0, int(n)), nil
}

// Unique returns the different elements of t in order, [count], for each element of t its place among
// them, i64 of t's dimensions, and how often each is there, i64[count]. Each NaN is different. It
// blocks until the count is known. As torch.unique with sorted.
func Unique(ctx context.Context, t *Tensor) (values, inverse, counts *Tensor, err error) {
	flat := t.Flatten()
	n := t.Numel()
	if n == 0 {
		empty := t.Session().With(On(t.Device()), As(I64))
		return flat, empty.Zeros(t.Dims()...), empty.Zeros(0), nil
	}
	sorted, from := flat.Sort()
	first := t.Session().With(On(t.Device()), As(Bool)).Ones(1)
	if n > 1 {
		first = Cat([]*Tensor{first, sorted.Narrow(0, 1, n-1).Ne(sorted.Narrow(0, 0, n-1))})
	}
	ranks := first.Cumsum(0).Sub(1)
	count, err := first.CountNonzero().Item(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("loris: unique: %w", err)
	}
	k := int(count)
	places := first.NonzeroStatic(k).Squeeze(Dim(1))
	ends := t.Session().With(On(t.Device()), As(I64)).Full(n, 1)
	if k > 1 {
		ends = Cat([]*Tensor{places.Narrow(0, 1, k-1), ends})
	}
	inverse = ranks.ZerosLike().Scatter(0, from, ranks).Reshape(t.Dims()...)
	return sorted.IndexSelect(0, places), inverse, ends.Sub(places), nil
}
