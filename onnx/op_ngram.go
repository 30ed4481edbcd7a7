package onnx

import (
	"slices"
	"strconv"

	"github.com/loris-ml/loris/onnx/internal/pb"
)

// ngramRows are the ops that count stretches of integers.
var ngramRows = map[string]*row{"TfIdfVectorizer": one(1, 1, tfIdf)}

// ngrams are the stretches that a node counts, by their elements.
type ngrams struct {
	column         map[string]int // where the count of a stretch stands
	weight         map[int]float64
	least, longest int
	skips, width   int
}

func gramKey(g []int64) string {
	var b []byte
	for _, v := range g {
		b = append(strconv.AppendInt(b, v, 36), ' ')
	}
	return string(b)
}

// grams reads the pool of a node: all stretches of one element, then those of two, and so on.
func (c *call) grams() ngrams {
	pool := c.typed("pool_int64s", pb.AttrInts)
	if pool == nil {
		c.unsupported("a pool of strings")
	}
	starts, columns, weights := c.list("ngram_counts"), c.list("ngram_indexes"), c.floatList("weights")
	g := ngrams{column: map[string]int{}, weight: map[int]float64{}, least: c.int("min_gram_length", 1), longest: c.int("max_gram_length", 1), skips: c.int("max_skip_count", 0)}
	id := 0
	for i, from := range starts {
		to := len(pool.Ints)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		if from < 0 || to < from || to > len(pool.Ints) {
			c.fail("ngram_counts %v do not fit a pool of %d", starts, len(pool.Ints))
		}
		for at := from; at+i+1 <= to; at += i + 1 {
			if id >= len(columns) || columns[id] < 0 || columns[id] > 1<<24 {
				c.fail("ngram_indexes %v do not fit the pool", columns)
			}
			if i+1 >= g.least && i+1 <= g.longest {
				g.column[gramKey(pool.Ints[at:at+i+1])] = columns[id]
			}
			g.width = max(g.width, columns[id]+1)
			if weights != nil && id < len(weights) {
				g.weight[columns[id]] = weights[id]
			}
			id++
		}
	}
	return g
}

// count adds the stretches of a row to its counts. Elements of a stretch are next to each other, or up to
// skips elements apart; single ones are counted once.
func (g ngrams) count(row []int64, counts []float64) {
	for apart := 1; apart <= min(g.skips, len(row)-1)+1; apart++ {
		for size := max(g.least, 1); size <= min(g.longest, len(row)); size++ {
			if size == 1 && apart > 1 {
				continue
			}
			for at := 0; at+(size-1)*apart < len(row); at++ {
				gram := make([]int64, size)
				for k := range gram {
					gram[k] = row[at+k*apart]
				}
				if col, ok := g.column[gramKey(gram)]; ok {
					counts[col]++
				}
			}
		}
	}
}

// tfIdf counts stretches of integers, which it waits for.
func tfIdf(c *call, in []*value) *value {
	v := in[0]
	if v.rank() < 1 || v.rank() > 2 {
		c.fail("rows of integers are expected, not %v", v)
	}
	g := c.grams()
	data := c.ints(v)
	length := v.dims[v.rank()-1]
	dims := append(slices.Clone(v.dims[:v.rank()-1]), g.width)
	c.table(dims...)
	counts := make([]float64, product(dims))
	for r := range product(v.dims[:v.rank()-1]) {
		row := counts[r*g.width : (r+1)*g.width]
		g.count(data[r*length:(r+1)*length], row)
		for i, n := range row {
			w, weighted := g.weight[i]
			if !weighted {
				w = 1
			}
			switch c.text("mode", "") {
			case "IDF":
				row[i] = min(n, 1) * w
			case "TFIDF":
				row[i] = n * w
			}
		}
	}
	return foldedFloats(tFloat, dims, counts)
}
