// Package sample reads planes of pixels at the places of a list, and does what the gradients of that need. A place
// has taps: pixels of each plane and their weights, which are those of all channels.
//
// Channels are gone through in one of two forms. In rows each pixel has its channels beside each other, which
// are read by vectors; with few channels planes are read as they lie, many places at a time.
package sample

import "github.com/loris-ml/loris/internal/kernels"

// Float is the types of pixels.
type Float interface{ float32 | float64 }

// fewestRows is the channels from which on rows pay for what it takes to make them.
const fewestRows = 8

// InRows reports whether so many planes are better read as rows, at so many taps in all.
func InRows(channels, pixels, taps int) bool { return channels >= fewestRows && 2*taps >= pixels }

// Taps is what n places read. Tap t of place i is pixel At[t·Step+i], which counts for nothing below 0, with the
// weight at the same index.
type Taps[T Float] struct {
	At       []int32
	Weights  []T
	Step     int
	Taps, N  int
	greatest int32
}

// NewTaps returns taps of n places. One that is not below pixels makes it panic with an IndexError.
func NewTaps[T Float](at []int32, weights []T, step, taps, n, pixels int) Taps[T] {
	k := Taps[T]{At: at, Weights: weights, Step: step, Taps: taps, N: n, greatest: -1}
	for t := range taps {
		k.greatest = max(k.greatest, greatest(at[t*step:][:n]))
	}
	if int(k.greatest) >= pixels {
		panic(kernels.IndexError{Index: int64(k.greatest), Size: pixels})
	}
	return k
}

// greatest returns the greatest of some numbers, or -1 if that is greater.
func greatest(x []int32) int32 {
	if use != nil && len(x) > 0 {
		return use.greatest(&x[0], len(x))
	}
	most := int32(-1)
	for _, v := range x {
		most = max(most, v)
	}
	return most
}

// loops are those of one kind of processor, on float32.
type loops struct {
	weighRows     func(dst, rows *float32, width int, at *int32, weights *float32, step, taps, n int)
	addRows       func(rows, src *float32, width int, at *int32, weights *float32, step, taps, n int)
	multiplyRows  func(dst, src, rows *float32, width int, at *int32, step, n int)
	weighPlane    func(dst, plane *float32, at *int32, weights *float32, step, taps, n int, add bool)
	weighPairs    func(dst, planes *float32, at *int32, weights *float32, step, n, channels, places, pixels int, add bool) int
	multiplyPlane func(dst, src, plane *float32, at *int32, step, taps, n int)
	greatest      func(x *int32, n int) int32
}

// The loops that read two taps at once take so many taps, of a vector of places.
const (
	pairedTaps = 4
	vector     = 16
)

// use is nil if the processor has no loops; tests change it.
var use = native()

// fast returns a slice as elements of the loops, false if there are none for it.
func fast[T Float](x []T) ([]float32, bool) {
	f, ok := any(x).([]float32)
	return f, ok && use != nil
}

// width returns the columns of rows that each of n has.
func (k *Taps[T]) width(rows int) int {
	if k.N == 0 {
		return 0
	}
	return rows / k.N
}

// check panics unless rows or planes have all taps, so many elements for a pixel.
func (k *Taps[T]) check(elements, width int) {
	if last := (k.Taps-1)*k.Step + k.N; len(k.At) < last || k.Weights != nil && len(k.Weights) < last {
		panic("sample: taps are missing")
	}
	if (int(k.greatest)+1)*width > elements {
		panic("sample: pixels are missing")
	}
}

// WeighRows sets dst, a row for each place, to the weighted sums of rows.
func (k *Taps[T]) WeighRows(dst, rows []T) {
	width := k.width(len(dst))
	if k.check(len(rows), width); width == 0 {
		return
	}
	if to, ok := fast(dst); ok && len(rows) > 0 {
		from, weights := any(rows).([]float32), any(k.Weights).([]float32)
		use.weighRows(&to[0], &from[0], width, &k.At[0], &weights[0], k.Step, k.Taps, k.N)
		return
	}
	for i := range k.N {
		to := dst[i*width:][:width]
		clear(to)
		for t := range k.Taps {
			if at := int(k.At[t*k.Step+i]); at >= 0 {
				w := k.Weights[t*k.Step+i]
				for j, v := range rows[at*width:][:width] {
					to[j] += w * v
				}
			}
		}
	}
}

// AddRows adds the rows of src, one for each place, times weights to rows.
func (k *Taps[T]) AddRows(rows, src []T) {
	width := k.width(len(src))
	if k.check(len(rows), width); width == 0 {
		return
	}
	if from, ok := fast(src); ok && len(rows) > 0 {
		to, weights := any(rows).([]float32), any(k.Weights).([]float32)
		use.addRows(&to[0], &from[0], width, &k.At[0], &weights[0], k.Step, k.Taps, k.N)
		return
	}
	for i := range k.N {
		from := src[i*width:][:width]
		for t := range k.Taps {
			if at := int(k.At[t*k.Step+i]); at >= 0 {
				w, to := k.Weights[t*k.Step+i], rows[at*width:][:width]
				for j, v := range from {
					to[j] += w * v
				}
			}
		}
	}
}

// MultiplyRows sets an element of dst for each tap, which lie as the taps do, to the product of the place's row in src and
// the tap's.
func (k *Taps[T]) MultiplyRows(dst, src, rows []T) {
	width := k.width(len(src))
	k.check(len(rows), width)
	t := 0
	if from, ok := fast(src); ok && width > 0 && len(rows) > 0 {
		to, right := any(dst).([]float32), any(rows).([]float32)
		for ; t+4 <= k.Taps; t += 4 {
			_ = to[(t+3)*k.Step+k.N-1]
			use.multiplyRows(&to[t*k.Step], &from[0], &right[0], width, &k.At[t*k.Step], k.Step, k.N)
		}
	}
	for ; t < k.Taps; t++ {
		for i := range k.N {
			var sum T
			if at := int(k.At[t*k.Step+i]); at >= 0 {
				row := rows[at*width:][:width]
				for j, v := range src[i*width:][:width] {
					sum += v * row[j]
				}
			}
			dst[t*k.Step+i] = sum
		}
	}
}

// WeighPlanes sets an element of dst for each place and channel to the weighted sums of the pixels of the channel's
// plane. The places of a channel are step behind those of the one before.
func (k *Taps[T]) WeighPlanes(dst []T, step int, planes []T, channels, pixels int) {
	if k.check(len(planes), 1); k.N == 0 || channels == 0 {
		return
	}
	_, _ = dst[(channels-1)*step+k.N-1], planes[channels*pixels-1]
	if to, ok := fast(dst); ok {
		k.weighByVectors(to, step, any(planes).([]float32), any(k.Weights).([]float32), channels, pixels)
		return
	}
	for c := range channels {
		to, plane := dst[c*step:][:k.N], planes[c*pixels:][:pixels]
		clear(to)
		for t := range k.Taps {
			weights := k.Weights[t*k.Step:][:len(to)]
			for i, at := range k.At[t*k.Step:][:len(to)] {
				if at >= 0 {
					to[i] += weights[i] * plane[at]
				}
			}
		}
	}
}

// weighByVectors is WeighPlanes by loops, which read two taps at once where these adjoin.
func (k *Taps[T]) weighByVectors(dst []float32, step int, planes, weights []float32, channels, pixels int) {
	each, paired := k.Taps, k.Taps%pairedTaps == 0 && pixels > 1
	if paired {
		each = pairedTaps
	}
	for t := 0; t < k.Taps; t += each {
		for i := 0; i < k.N; {
			at, w, n := &k.At[t*k.Step+i], &weights[t*k.Step+i], k.N-i
			if paired {
				i += use.weighPairs(&dst[i], &planes[0], at, w, k.Step, n, channels, step, pixels, t > 0)
				if i == k.N {
					break
				}
				at, w, n = &k.At[t*k.Step+i], &weights[t*k.Step+i], min(k.N-i, vector)
			}
			for c := range channels {
				use.weighPlane(&dst[c*step+i], &planes[c*pixels], at, w, k.Step, each, n, t > 0)
			}
			i += n
		}
	}
}

// AddPlane adds the elements of src, one for each place, times weights to a plane.
func (k *Taps[T]) AddPlane(plane, src []T) {
	src = src[:k.N]
	for t := range k.Taps {
		weights := k.Weights[t*k.Step:][:len(src)]
		for i, at := range k.At[t*k.Step:][:len(src)] {
			if at >= 0 {
				plane[at] += weights[i] * src[i]
			}
		}
	}
}

// MultiplyPlane adds the products of the place's element of src and each tap's pixel to those of dst, which lie as the taps
// do.
func (k *Taps[T]) MultiplyPlane(dst, src, plane []T) {
	k.check(len(plane), 1)
	if src = src[:k.N]; k.N == 0 {
		return
	}
	if from, ok := fast(src); ok && len(plane) > 0 {
		to, right := any(dst).([]float32), any(plane).([]float32)
		_ = to[(k.Taps-1)*k.Step+k.N-1]
		use.multiplyPlane(&to[0], &from[0], &right[0], &k.At[0], k.Step, k.Taps, k.N)
		return
	}
	for t := range k.Taps {
		to := dst[t*k.Step:][:len(src)]
		for i, at := range k.At[t*k.Step:][:len(src)] {
			if at >= 0 {
				to[i] += src[i] * plane[at]
			}
		}
	}
}
