package strided

// A block is the few runs of adjacent elements of the last two dimensions. Where blocks are many, it is
// quicker to go through the first run of each, then through the second.

const (
	// fewRuns is how many runs a block has at most.
	fewRuns = 8
	// blockBytes is how many bytes of blocks stay in the first-level cache from one run to the next.
	blockBytes = 16 << 10
)

// blocks returns how many whole blocks follow from a coordinate on, of as many elements as are left, without
// the last one of their dimension; 0 where runs are not few.
func (v *View) blocks(at *[MaxRank]int, left int) int {
	last := v.Rank - 1
	if last < 2 || at[last-1] != 0 || v.Dims[last-1] > fewRuns {
		return 0
	}
	if n := min(v.Dims[last-2]-at[last-2]-1, left/(v.Dims[last-1]*v.Dims[last])); n > v.Dims[last-1] {
		return n
	}
	return 0
}

// eachBlock calls f for run j of k blocks from the first on, until all blocks have had all runs of so many
// bytes.
func (v *View) eachBlock(blocks, bytes int, f func(j, first, k int)) {
	few := v.Dims[v.Rank-2]
	together := max(1, blockBytes/(few*bytes))
	for first := 0; first < blocks; first += together {
		for j := range few {
			f(j, first, min(together, blocks-first))
		}
	}
}
