package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// widenParts returns a Program in which slices of a 16-bit float that was made f32, such as its halves, are taken before and
// each made f32 by the kernels that use it: the whole would be written to memory for them. It returns p itself if there
// are none.
func widenParts(p *Program) *Program {
	w := widening{p: p}
	casts, users := map[ID]*Instr{}, make([][]*Instr, len(p.Shapes))
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if w.widens(in) {
			casts[in.Out] = in
		}
		for _, id := range in.Args {
			users[id] = append(users[id], in)
		}
	}
	part := func(in *Instr) bool {
		return in.Op == aten.Slice && casts[in.Args[0]] != nil && !slices.Contains(p.Returns, in.Out) &&
			!slices.ContainsFunc(users[in.Out], func(user *Instr) bool { return !w.inKernel(user, in.Out) })
	}
	parts := map[ID]bool{}
	for i := range p.Instrs {
		if in := &p.Instrs[i]; part(in) {
			parts[in.Out] = true
		}
	}
	if len(parts) == 0 {
		return p
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
		case casts[in.Out] != nil && !slices.Contains(p.Returns, in.Out) && len(users[in.Out]) > 0 &&
			!slices.ContainsFunc(users[in.Out], func(user *Instr) bool { return !parts[user.Out] }):
			// Only slices use it.
		default:
			out.write(in, out.now)
		}
	}
	return out.program()
}
