package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/sample"
)

func init() {
	composites[aten.SamplePixels], composites[aten.SpreadPixels], composites[aten.PixelProducts] = true, true, true
	lowerings[aten.SamplePixels] = singleOrDouble(samplePixels[float32], samplePixels[float64])
	lowerings[aten.SpreadPixels] = singleOrDouble(spreadPixels[float32], spreadPixels[float64])
	lowerings[aten.PixelProducts] = singleOrDouble(pixelProducts[float32], pixelProducts[float64])
}

const (
	// tapCost is for one channel of one tap.
	tapCost = 0.3
	// rowPlaces and planePlaces are the places of a unit.
	rowPlaces, planePlaces = 64, 256
	// transposedPixels is the pixels of a unit that makes rows of planes.
	transposedPixels = 256
	// groupChannels is the channels of a unit where places add to rows.
	groupChannels = 32
)

// sampling is the sizes of a use of the ops, with the operands that they have in common.
type sampling struct {
	images, channels, pixels, places, taps int
	at, weights                            operand
}

func (c *call) sampling(channels, pixels int, at, weights int) sampling {
	d := c.Operands[at].Shape.Dims()
	s := sampling{images: d[1], channels: channels, pixels: pixels, places: d[2], taps: d[0], at: c.dense(c.Operands[at])}
	if weights >= 0 {
		s.weights = c.dense(c.Operands[weights])
	}
	return s
}

func (s *sampling) inRows() bool { return sample.InRows(s.channels, s.pixels, s.taps*s.places) }

// cost is about how long n places take.
func (s *sampling) cost(n int) float64 { return tapCost * float64(n*s.taps*s.channels) }

// tapsOf returns what places from..from+n-1 of an image read.
func tapsOf[T sample.Float](m *memory, s *sampling, image, from, n int, weighted bool) sample.Taps[T] {
	first, step := image*s.places+from, s.images*s.places
	var weights []T
	if weighted {
		weights = elements[T](m, s.weights)[first:]
	}
	return sample.NewTaps(elements[int32](m, s.at)[first:], weights, step, s.taps, n, s.pixels)
}

// emitPlaces emits f for parts of at most most places of each image.
func (c *call) emitPlaces(s *sampling, most int, out operand, reads []operand, f func(w *worker, image, from, n int)) {
	parts := ceilDiv(s.places, most)
	c.emit(s.images*parts, c.l.grain(s.cost(min(most, s.places))), []operand{out}, reads, func(lo, hi int) {
		w := workers.Get().(*worker)
		for u := lo; u < hi; u++ {
			from := u % parts * most
			f(w, u/parts, from, min(most, s.places-from))
		}
		workers.Put(w)
	})
}

// pixelRows emits the rows of planes x, in which each pixel has its channels beside each other.
func pixelRows[T sample.Float](c *call, s *sampling, x operand) operand {
	rows, m := c.l.bytesTemp(sizeOf[T](), x.n), c.l.mem
	parts, size := ceilDiv(s.pixels, transposedPixels), s.channels*s.pixels
	c.emit(s.images*parts, c.l.grain(float64(s.channels*min(s.pixels, transposedPixels))*0.2), []operand{rows}, []operand{x}, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			from := u % parts * transposedPixels
			to, src := elementsOf[T](m, rows, u/parts, size), elementsOf[T](m, x, u/parts, size)
			gemm.Transpose(to[from*s.channels:], s.channels, src[from:], s.pixels, s.channels, min(transposedPixels, s.pixels-from))
		}
	})
	return rows
}

func samplePixels[T sample.Float](c *call) {
	x := c.dense(c.Operands[0])
	d := c.Operands[0].Shape.Dims()
	s := c.sampling(d[1], d[2], 1, 2)
	out, m, size := c.result(), c.l.mem, s.channels*s.pixels
	if !s.inRows() {
		c.emitPlaces(&s, planePlaces, out, []operand{x, s.at, s.weights}, func(_ *worker, image, from, n int) {
			k := tapsOf[T](m, &s, image, from, n, true)
			to, planes := elementsOf[T](m, out, image, s.channels*s.places), elementsOf[T](m, x, image, size)
			k.WeighPlanes(to[from:], s.places, planes, s.channels, s.pixels)
		})
		return
	}
	rows := pixelRows[T](c, &s, x)
	c.emitPlaces(&s, rowPlaces, out, []operand{rows, s.at, s.weights}, func(w *worker, image, from, n int) {
		k := tapsOf[T](m, &s, image, from, n, true)
		sums := scratchOf[T](w, n*s.channels)
		k.WeighRows(sums, elementsOf[T](m, rows, image, size))
		gemm.Transpose(elementsOf[T](m, out, image, s.channels*s.places)[from:], s.places, sums, s.channels, n, s.channels)
	})
}

func pixelProducts[T sample.Float](c *call) {
	x, y := c.dense(c.Operands[0]), c.dense(c.Operands[1])
	d := c.Operands[1].Shape.Dims()
	s := c.sampling(d[1], d[2], 2, -1)
	out, m, size := c.result(), c.l.mem, s.channels*s.pixels
	if !s.inRows() {
		c.emitPlaces(&s, planePlaces, out, []operand{x, y, s.at}, func(_ *worker, image, from, n int) {
			k := tapsOf[T](m, &s, image, from, n, false)
			to, src := elements[T](m, out)[image*s.places+from:], elementsOf[T](m, x, image, s.channels*s.places)
			for t := range s.taps {
				clear(to[t*k.Step:][:n])
			}
			for p := range s.channels {
				k.MultiplyPlane(to, src[p*s.places+from:], elementsOf[T](m, y, image, size)[p*s.pixels:][:s.pixels])
			}
		})
		return
	}
	rows := pixelRows[T](c, &s, y)
	c.emitPlaces(&s, rowPlaces, out, []operand{x, rows, s.at}, func(w *worker, image, from, n int) {
		k := tapsOf[T](m, &s, image, from, n, false)
		src := scratchOf[T](w, n*s.channels)
		gemm.Transpose(src, s.channels, elementsOf[T](m, x, image, s.channels*s.places)[from:], s.places, s.channels, n)
		k.MultiplyRows(elements[T](m, out)[image*s.places+from:], src, elementsOf[T](m, rows, image, size))
	})
}

// spreadPixels has units of some channels of an image, in which places follow each other in their order.
func spreadPixels[T sample.Float](c *call) {
	x := c.dense(c.Operands[0])
	s := c.sampling(c.Operands[0].Shape.Dim(1), c.Int("pixels"), 1, 2)
	out, m := c.result(), c.l.mem
	group := 1
	if s.inRows() {
		group = min(groupChannels, s.channels)
	}
	groups := ceilDiv(s.channels, group)
	cost := tapCost*float64(s.taps*s.places*group) + 0.3*float64(s.pixels*group)
	c.emit(s.images*groups, c.l.grain(cost), []operand{out}, []operand{x, s.at, s.weights}, func(lo, hi int) {
		w := workers.Get().(*worker)
		for u := lo; u < hi; u++ {
			image, first := u/groups, u%groups*group
			n := min(group, s.channels-first)
			to := elements[T](m, out)[(image*s.channels+first)*s.pixels:][:n*s.pixels]
			src := elements[T](m, x)[(image*s.channels+first)*s.places:][:n*s.places]
			if s.inRows() {
				spreadRows(m, &s, w, to, src, image, n)
				continue
			}
			clear(to)
			k := tapsOf[T](m, &s, image, 0, s.places, true)
			k.AddPlane(to, src)
		}
		workers.Put(w)
	})
}

// spreadRows adds the places of n channels of an image to rows, and makes planes of these.
func spreadRows[T sample.Float](m *memory, s *sampling, w *worker, planes, src []T, image, n int) {
	scratch := scratchOf[T](w, n*(s.pixels+rowPlaces))
	rows, some := scratch[:n*s.pixels], scratch[n*s.pixels:]
	clear(rows)
	for from := 0; from < s.places; from += rowPlaces {
		count := min(rowPlaces, s.places-from)
		k := tapsOf[T](m, s, image, from, count, true)
		gemm.Transpose(some, n, src[from:], s.places, n, count)
		k.AddRows(rows, some[:n*count])
	}
	gemm.Transpose(planes, s.pixels, rows, n, s.pixels, n)
}
