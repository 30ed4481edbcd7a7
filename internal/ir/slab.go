package ir

// Slabs grow with the step, so that a step of a few ops costs little. One that is like the last has slabs
// for as much as that used.
const (
	minSlab = 8
	maxSlab = 128
	// maxSpare bounds the slabs that are kept of steps that have ended.
	maxSpare = 64
)

// slabOf is what a new slab has where the step before took left more than this one has by now: as many, and
// grown beyond that.
func slabOf(left, most, grown int) int {
	if left > 0 {
		return min(left, most)
	}
	return grown
}

// slabs is the memory of a step's nodes, or of their operands. A slab lives as long as anything in it is used,
// so no two steps share one.
type slabs[T Node | Value] struct {
	left  []T   // of the last slab
	taken [][]T // the slabs of the step
	spare [][]T // zeroed slabs of earlier steps
}

// grow makes a slab of at least n elements the last one: a spare one, or one of the size of fresh.
func (s *slabs[T]) grow(n, fresh int) {
	if k := len(s.spare) - 1; k >= 0 && len(s.spare[k]) >= n {
		s.left, s.spare = s.spare[k], s.spare[:k]
	} else {
		s.left = make([]T, max(n, fresh))
	}
	s.taken = append(s.taken, s.left)
}

// drop leaves the slabs of the step to what is used of it.
func (s *slabs[T]) drop() {
	clear(s.taken)
	s.left, s.taken = nil, s.taken[:0]
}

// recycle makes the slabs of the step spare.
func (s *slabs[T]) recycle() {
	for i, slab := range s.taken {
		if len(s.spare) == maxSpare {
			break
		}
		if i == len(s.taken)-1 {
			clear(slab[:len(slab)-len(s.left)])
		} else {
			clear(slab)
		}
		s.spare = append(s.spare, slab)
	}
	s.drop()
}
