package conv

import "github.com/loris-ml/loris/internal/kernels/tile"

// The gradient of filters is a convolution of many images, one for each input channel, to as few
// positions as the filters have, with a kernel of the size of the images. A row of its outputs is
// shorter than a tile. Where there are more images than such a row has positions, the rows of a tile
// are the same position of several images instead. Each sum is of the same products in the same order.

const (
	// acrossTiles is how many tiles of images a unit aims at, for each of which it reads the filters
	// again from a cache near by.
	acrossTiles = 4
	// acrossBytes bounds the copies of these images, of which a block of filters meets a small part.
	acrossBytes = 4 << 20
	// acrossUnits is how many units a processor gets at least, if the work can be cut so.
	acrossUnits = 2
)

// tileRows returns the most rows of the tiles that most panels are computed with.
func (p *Plan[A]) tileRows() int {
	if p.panels > 1 {
		return p.set.Rows(tile.Two)
	}
	return p.set.Rows(tile.One)
}

// acrossImages reports whether rows of n outputs leave tiles so much emptier than images do that
// tiles go across these.
func (p *Plan[A]) acrossImages(n int) bool {
	most := p.tileRows()
	// Average rows of a tile are count/ceil(count/most).
	return 2*p.g.N*ceil(n, most) >= 3*n*ceil(p.g.N, most)
}

// blockAcross chooses the outputs of a unit whose tiles go across images.
func (p *Plan[A]) blockAcross(procs int, most, span [3]int) {
	tall := p.tileRows()
	p.cols, p.chunk = most[2], p.panels
	size := func() int { return p.extent(p.rows, p.cols, span) * p.size }
	p.images = min(acrossTiles*tall, p.g.N)
	p.rows = min(max(blockPixels/(p.cols*p.images), 1), most[1])
	if !p.direct {
		p.fewerRows(span, regionBytes/p.images)
		for p.images > tall && p.images*size() > acrossBytes {
			p.images = max(p.images/2, tall)
		}
	}
	p.images = ceil(p.g.N, ceil(p.g.N, p.images))
	if !p.direct && !p.wholeAcross(tall, most, size) {
		p.moreAcross(most[0], size)
	}
	for procs > 1 && p.total() < acrossUnits*procs {
		switch {
		case p.images > tall:
			p.images = max((p.images+1)/2, tall)
		case p.chunk > 2:
			p.chunk = (p.chunk + 1) / 2
		case p.depths > 1:
			p.depths = (p.depths + 1) / 2
		case p.rows > 1:
			p.rows = (p.rows + 1) / 2
		case p.images > tall/2:
			p.images = (p.images + 1) / 2
		default:
			return
		}
		p.images = ceil(p.g.N, ceil(p.g.N, p.images))
	}
}

// wholeAcross makes units of whole results of one tile of images, if units of some rows would copy twice as much
// of an image together, and reports whether it did.
func (p *Plan[A]) wholeAcross(tall int, most [3]int, size func() int) bool {
	images, rows, depths := p.images, p.rows, p.depths
	parts := size() * ceil(most[1], rows) * ceil(most[0], depths)
	p.images, p.rows, p.depths = ceil(p.g.N, ceil(p.g.N, tall)), most[1], most[0]
	if whole := size(); p.images*whole <= regionBytes && 2*whole <= parts {
		return true
	}
	p.images, p.rows, p.depths = images, rows, depths
	return false
}

// moreAcross makes units as deep as the results where that needs hardly more of an image.
func (p *Plan[A]) moreAcross(most int, size func() int) {
	one := size()
	if p.depths = most; 4*size() > 5*one {
		p.depths = 1
	}
}
