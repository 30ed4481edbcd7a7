package fuse

import "github.com/loris-ml/loris/internal/graph"

// Uses says what becomes of the values of a Program, by ID.
type Uses struct {
	// Users are the instructions that use a value, once for each operand that it is.
	Users [][]int32
	// Kept marks what the Program returns.
	Kept []bool
}

// UsesOf returns the uses of the values of a Program whose operands are in range.
func UsesOf(p *graph.Program) *Uses {
	u := &Uses{make([][]int32, len(p.Shapes)), make([]bool, len(p.Shapes))}
	count, all := make([]int32, len(p.Shapes)), 0
	for i := range p.Instrs {
		for _, id := range p.Instrs[i].Args {
			count[id]++
			all++
		}
	}
	room := make([]int32, all)
	for id, n := range count {
		u.Users[id], room = room[:0:n], room[n:]
	}
	for i := range p.Instrs {
		for _, id := range p.Instrs[i].Args {
			u.Users[id] = append(u.Users[id], int32(i))
		}
	}
	for _, id := range p.Returns {
		u.Kept[id] = true
	}
	return u
}
