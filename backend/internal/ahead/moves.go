package ahead

import (
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/strided"
)

// full makes a literal of one element and expands it.
func (c *call) full() {
	d := c.Shapes[0].DType()
	if d.IsComplex() {
		c.unsupported("numbers of %v have no literals", d)
		return
	}
	c.Results = append(c.Results, c.e.Constant(ir.MakeShape(d), elements.AppendNumber(nil, d, c.Get("fill_value"))).Expand(c.Shapes[0].Dims()))
}

// arange makes a literal.
func (c *call) arange() {
	s := c.Shapes[0]
	var data []byte
	if start, istart := c.Number("start"); s.DType().IsFloat() {
		step, _ := c.Number("step")
		all := make([]float64, s.Numel())
		kernels.ArangeFloat(all, start, step, 0)
		data = elements.EncodeFloats(s.DType(), all)
	} else {
		_, step := c.Number("step")
		all := make([]int64, s.Numel())
		kernels.ArangeInt(all, istart, step, 0)
		data = elements.EncodeInts(s.DType(), all)
	}
	c.Results = append(c.Results, c.e.Constant(s, data))
}

// linspace makes a literal.
func (c *call) linspace() {
	s := c.Shapes[0]
	if !s.DType().IsFloat() {
		c.unsupported("evenly spaced numbers of %v have no literals", s.DType())
		return
	}
	start, _ := c.Number("start")
	end, _ := c.Number("end")
	all := make([]float64, s.Numel())
	kernels.Linspace(all, start, end, c.Int("steps"), 0)
	c.Results = append(c.Results, c.e.Constant(s, elements.EncodeFloats(s.DType(), all)))
}

// cat has the operands computed where they belong, or copied there.
func (c *call) cat() {
	for i, part := range c.CatParts() {
		c.WritePart(part, c.Operands[i])
	}
	if len(c.Operands) == 0 || c.Shapes[0].Numel() == 0 {
		c.e.nothing(c.Instr, nil, c.Results[0].Buf)
	}
}

// Functions of the object that is part of each library.
const (
	gather      = "lx_gather"
	indexSelect = "lx_index_select"
)

// indexSelect copies rows.
func (c *call) indexSelect() {
	c.Compute()
	s := ir.AtLeast1D(c.Operands[0].Shape)
	outer, size, inner := s.Around(c.Dim("dim", s.Rank()))
	index, _ := c.Operand("index")
	x, at := c.memory(c.Operands[0]), c.memory(index)
	out := c.Result()
	c.emit(indexSelect, 1, c.memory(out), x, at, ahead.Int(index.Size()), ahead.Int(outer), ahead.Int(index.Shape.Numel()), ahead.Int(size), ahead.Int(inner*out.Size()))
}

// gather copies elements.
func (c *call) gather() {
	c.Compute()
	s := ir.AtLeast1D(c.Operands[0].Shape)
	index, _ := c.Operand("index")
	dim := c.Dim("dim", s.Rank())
	x, at := c.memory(c.Operands[0]), c.memory(index)
	out := c.Result()
	var sizes, strides ahead.List
	view := strided.Dense(s.Dims())
	for d, n := range ir.AtLeast1D(index.Shape).Dims() {
		sizes, strides = append(sizes, int64(n)), append(strides, int64(view.Strides[d]*out.Size()))
	}
	c.emit(gather, 1, c.memory(out), x, at, ahead.Int(index.Size()), ahead.Int(out.Size()), ahead.Int(len(sizes)), sizes, strides, ahead.Int(dim), ahead.Int(s.Dim(dim)))
}

// sort calls sort_stable.
func (c *call) sort() {
	c.Compute()
	rank := c.Operands[0].Shape.Rank()
	x := c.tensor(c.Operands[0])
	c.emit("aoti_torch_cpu_sort_stable", 0, x, ahead.List{1}, ahead.Int(c.Dim("dim", max(rank, 1))), flag(c.Bool("descending")),
		c.returned(strided.Dense(c.Shapes[0].Dims())), c.returned(strided.Dense(c.Shapes[1].Dims())))
}

// cumulate calls cumsum or cumprod.
func cumulate(function string) func(c *call) {
	return func(c *call) {
		c.Compute()
		x := c.Operands[0]
		if c.Shapes[0].DType() == ir.Bool {
			c.unsupported("bools have no running sums: ask for those of i64")
			return
		}
		code, _ := ahead.TypeCode(c.Shapes[0].DType())
		c.emit(function, 0, c.tensor(x), ahead.Int(c.Dim("dim", max(x.Shape.Rank(), 1))), ahead.List{code},
			c.returned(strided.Dense(c.Shapes[0].Dims())))
	}
}

// fourier calls _fft_c2c, of the last dimension and without a factor.
func (c *call) fourier() {
	c.Compute()
	x := c.tensor(c.Dense(c.Operands[0]))
	c.emit("aoti_torch_cpu__fft_c2c", 0, x, ahead.List{int64(x.View.Rank - 1)}, ahead.Int(1), ahead.Int(0), flag(c.Bool("forward")),
		c.returned(strided.Dense(c.Shapes[0].Dims())))
}
