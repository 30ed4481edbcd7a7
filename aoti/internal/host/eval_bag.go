//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

var bagEvals = map[string]evalFunc{"_embedding_bag": embeddingBag}

// The ways in which a bag's rows become one.
const (
	bagSum = iota
	bagMean
	bagMax
)

// embeddingBag sums, averages or maximises the rows of weight that each bag
// names. It returns them, the bag of each index, the sizes of the bags, and where
// the largest came from.
func embeddingBag(v values) ([]*tensor, error) {
	w, idx, err := v.two("weight", "indices")
	if err != nil {
		return nil, err
	}
	off, err := v.tensor("offsets")
	if err != nil {
		return nil, err
	}
	b := bags{mode: v.int("mode", bagSum), skip: int64(v.int("padding_idx", -1))}
	if b.rows, err = load[float64](w); err != nil {
		return nil, err
	}
	if b.indices, err = load[int64](idx); err != nil {
		return nil, err
	}
	if b.offsets, err = load[int64](off); err != nil {
		return nil, err
	}
	if t, ok := v["per_sample_weights"].(*tensor); ok {
		if b.scales, err = load[float64](t); err != nil {
			return nil, err
		}
	}
	n := len(b.offsets.data)
	if v.bool("include_last_offset", false) && n > 0 {
		n--
	}
	if err := b.run(n); err != nil {
		return nil, err
	}
	d := dtypeOf(idx)
	var outs []*tensor
	for _, make := range []func() (*tensor, error){
		func() (*tensor, error) { return save(b.out, dtypeOf(w)) },
		func() (*tensor, error) { return save(b.bag, d) },
		func() (*tensor, error) { return save(b.sizes, d) },
		func() (*tensor, error) { return save(b.largest, d) },
	} {
		t, err := make()
		if err != nil {
			return all(err, outs...)
		}
		outs = append(outs, t)
	}
	return outs, nil
}

type bags struct {
	rows, scales        array[float64]
	indices, offsets    array[int64]
	mode                int
	skip                int64
	out                 array[float64]
	bag, sizes, largest array[int64]
}

func (b *bags) run(n int) error {
	if len(b.rows.dims) != 2 || b.scales.data != nil && len(b.scales.data) != len(b.indices.data) {
		return fmt.Errorf("%w: embedding_bag of %v with %d indices", ir.ErrShape, b.rows.dims, len(b.indices.data))
	}
	width := b.rows.dims[1]
	b.out = array[float64]{make([]float64, n*width), []int{n, width}}
	b.bag = array[int64]{make([]int64, len(b.indices.data)), []int{len(b.indices.data)}}
	b.sizes = array[int64]{make([]int64, n), []int{n}}
	b.largest = array[int64]{make([]int64, n), []int{n}}
	if b.mode == bagMax {
		b.largest = array[int64]{make([]int64, n*width), []int{n, width}}
	}
	for i := range n {
		end := int64(len(b.indices.data))
		if i+1 < len(b.offsets.data) {
			end = b.offsets.data[i+1]
		}
		if from := b.offsets.data[i]; from < 0 || from > end || end > int64(len(b.indices.data)) {
			return fmt.Errorf("%w: embedding_bag offsets %v of %d indices", ir.ErrShape, b.offsets.data, len(b.indices.data))
		}
		if err := b.one(i, b.offsets.data[i], end, width); err != nil {
			return err
		}
	}
	return nil
}

// one computes bag i, of the indices from..end-1.
func (b *bags) one(i int, from, end int64, width int) error {
	out := b.out.data[i*width:][:width]
	for k := from; k < end; k++ {
		b.bag.data[k] = int64(i)
		at := b.indices.data[k]
		if at < 0 || at >= int64(b.rows.dims[0]) {
			return fmt.Errorf("%w: embedding_bag index %d of %d rows", ir.ErrShape, at, b.rows.dims[0])
		}
		if at == b.skip {
			continue
		}
		scale := 1.0
		if b.scales.data != nil {
			scale = b.scales.data[k]
		}
		for j, x := range b.rows.data[int(at)*width:][:width] {
			switch {
			case b.mode != bagMax:
				out[j] += scale * x
			case b.sizes.data[i] == 0 || x > out[j]:
				out[j], b.largest.data[i*width+j] = x, at
			}
		}
		b.sizes.data[i]++
	}
	if b.mode == bagMean && b.sizes.data[i] > 0 {
		for j := range out {
			out[j] /= float64(b.sizes.data[i])
		}
	}
	return nil
}
