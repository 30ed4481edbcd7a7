package graph

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// widenParts returns a Program in which slices of a 16-bit float that was made f32, such as its halves, are taken before and
// each made f32 by the kernels that use it: the whole would be written to memory for them. It returns p itself if there
// are none.
func widenParts(p *Program) *Program {
	w := widening{p: p}
	casts, parts := map[ID]*Instr{}, map[ID]bool{}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if w.widens(in) {
			casts[in.Out] = in
		} else if in.Op == aten.Slice && casts[in.Args[0]] != nil {
			parts[in.Out] = true
		}
	}
	whole := map[ID]bool{} // casts that something else than parts uses
	for _, id := range p.Returns {
		delete(parts, id)
		whole[id] = true
	}
	for i := 0; i < len(p.Instrs) && len(parts) > 0; i++ {
		for _, id := range p.Instrs[i].Args {
			if parts[id] && !w.p.InKernel(&p.Instrs[i], id) {
				delete(parts, id)
			}
		}
	}
	if len(parts) == 0 {
		return p
	}
	for i := range p.Instrs {
		if in := &p.Instrs[i]; !parts[in.Out] {
			for _, id := range in.Args {
				whole[id] = true
			}
		}
	}
	out := newWriter(p, len(parts))
	for i := range p.Instrs {
		in := &p.Instrs[i]
		switch {
		case parts[in.Out]:
			cast := casts[in.Args[0]]
			narrow := out.append(in, func(ID) ID { return out.now(cast.Args[0]) })
			dims := p.Shape(in.Out).Dims()
			out.to.Shapes[narrow] = ir.MakeShape(p.Shape(cast.Args[0]).DType(), dims...)
			out.ids[in.Out] = out.append(cast, func(ID) ID { return narrow })
			out.to.Shapes[out.ids[in.Out]] = p.Shape(in.Out)
		case casts[in.Out] != nil && !whole[in.Out]: // only parts use it
		default:
			out.write(in, out.now)
		}
	}
	return out.program()
}
