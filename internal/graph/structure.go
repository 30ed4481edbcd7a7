package graph

import (
	"encoding/binary"

	"github.com/loris-ml/loris/internal/ir"
)

// Structure returns a hash of the Program without sizes: it covers ops, operands, dtypes, ranks and
// those attributes that are no sizes. Programs of equal structure that are not equal differ in sizes,
// or in constants that were computed from them.
func (p *Program) Structure() ir.Hash {
	b := make([]byte, 0, 24*len(p.Instrs)+2*len(p.Shapes))
	b = binary.AppendUvarint(b, uint64(len(p.Params)))
	for i := range p.Shapes {
		b = append(b, byte(p.Shapes[i].DType()), byte(p.Shapes[i].Rank()))
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		b = binary.AppendUvarint(b, uint64(in.Op))
		b = binary.AppendUvarint(b, uint64(len(in.Args)))
		for _, id := range in.Args {
			b = binary.AppendUvarint(b, uint64(id))
		}
		b = in.Op.Spec().AppendStructure(b, in.Attr)
	}
	for _, id := range p.Returns {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return ir.HashBytes(b)
}

// Resized returns the first instruction that has a result of another shape in p than in q, a Program of
// as many instructions, and these shapes; nil if there is none.
func (p *Program) Resized(q *Program) (in *Instr, was, is ir.Shape) {
	for i := range p.Instrs {
		in, other := &p.Instrs[i], &q.Instrs[i]
		for k := range min(in.NOut, other.NOut) {
			if was, is := q.Outs(other)[k], p.Outs(in)[k]; was != is {
				return in, was, is
			}
		}
	}
	return nil, ir.Shape{}, ir.Shape{}
}
