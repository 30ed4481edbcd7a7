package kernels

import (
	"math"
	"slices"
)

// OthersRoom is how many numbers ProductsOfOthers needs room for.
const OthersRoom = 2 * othersTogether

// othersTogether is how many products are rounded together, while they are in the first cache.
const othersTogether = 256

// ProductsOfOthers sets each of dst to the product of all others of its row of n elements of x: of those
// before it and of those behind, which are rounded, by round too unless it is nil, before they are
// multiplied. It goes along a row from both ends at once; rows are lo..hi-1. room is OthersRoom numbers of any value,
// which the caller keeps since what round gets would be allocated for each row.
func ProductsOfOthers[T Float](dst, x []T, n int, round func([]T), room []T, lo, hi int) {
	for ; lo < hi; lo++ {
		to, from := dst[lo*n:(lo+1)*n], x[lo*n:(lo+1)*n]
		OthersOfPart(to, from, Ends{1, 1}, round, room)
	}
}

// Ends are the products of what is before a part of a row and of what is behind it.
type Ends struct{ Left, Right float64 }

// OthersOfPart is ProductsOfOthers of a part of a row between its ends.
func OthersOfPart[T Float](to, from []T, ends Ends, round func([]T), room []T) {
	left, right := productsToMiddle(to, from, ends)
	if round == nil {
		productsFromMiddle(to, from, left, right)
	} else {
		roundedProducts(to, from, left, right, round, room)
	}
}

// productsToMiddle sets the elements of a row to the products of those between them and the end that they are nearer
// to, with that end, and returns those of the halves. An element in the middle is 1, which both are multiplied with then.
func productsToMiddle[T Float](to, from []T, ends Ends) (left, right float64) {
	left, right = ends.Left, ends.Right
	i, j := 0, len(from)-1
	for ; i < j; i, j = i+1, j-1 {
		to[i], to[j] = T(left), T(right)
		left, right = left*float64(from[i]), right*float64(from[j])
	}
	if i == j {
		to[i] = 1
	}
	return left, right
}

// productsFromMiddle multiplies the elements of a row, which productsToMiddle has set, with the products of those
// between them and the end that they are further from.
func productsFromMiddle[T Float](to, from []T, left, right float64) {
	to = to[:len(from)]
	for i, j := len(from)/2, (len(from)-1)/2; i < len(from); i, j = i+1, j-1 {
		to[i] *= T(left)
		to[j] *= T(right)
		left, right = left*float64(from[i]), right*float64(from[j])
	}
}

// roundedProducts is productsFromMiddle that rounds the factors.
func roundedProducts[T Float](to, from []T, left, right float64, round func([]T), room []T) {
	round(to)
	n := len(from)
	for i := n / 2; i < n; {
		k, j := min(n-i, othersTogether), n-1-i
		before, behind := (*[othersTogether]T)(room), (*[othersTogether]T)(room[othersTogether:])
		for t := range k {
			before[t], behind[t] = T(left), T(right)
			left, right = left*float64(from[i+t]), right*float64(from[j-t])
		}
		round(before[:k])
		round(behind[:k])
		for t := range k {
			to[i+t] *= before[t]
			to[j-t] *= behind[t]
		}
		i += k
	}
}

// OthersPart is how many elements of a long row are a part, of which processors compute several at once.
const OthersPart = 2048

// Product returns the product of all elements of x, by eight chains of multiplications.
func Product[T Float](x []T) float64 {
	a, b, c, d, e, f, g, h := 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0
	for ; len(x) >= 8; x = x[8:] {
		a, b, c, d = a*float64(x[0]), b*float64(x[1]), c*float64(x[2]), d*float64(x[3])
		e, f, g, h = e*float64(x[4]), f*float64(x[5]), g*float64(x[6]), h*float64(x[7])
	}
	for _, v := range x {
		a *= float64(v)
	}
	return ((a * b) * (c * d)) * ((e * f) * (g * h))
}

// PartEnds sets ends to those of the parts of a row, whose products are given. An end that may be another one element
// after element, as products leave the range of numbers, is multiplied with each of a part.
func PartEnds[T Float](ends []Ends, products []float64, part func(i int) []T) {
	left, right := 1.0, 1.0
	for i, last := 0, len(products)-1; i <= last; i++ {
		ends[i].Left, ends[last-i].Right = left, right
		if next := left * products[i]; staysThrough(left, products[i]) || normal(left, products[i], next) {
			left = next
		} else {
			for _, v := range part(i) {
				left *= float64(v)
			}
		}
		if next := right * products[last-i]; staysThrough(right, products[last-i]) || normal(right, products[last-i], next) {
			right = next
		} else {
			for _, v := range slices.Backward(part(last - i)) {
				right *= float64(v)
			}
		}
	}
}

// AlikeOthers returns what all elements of a part are multiplied with for their products of others, where these are
// all zero, infinite or NaN since both ends are that all along the part.
func AlikeOthers[T Float](ends Ends, product float64) (by T, ok bool) {
	if !staysThrough(ends.Left, product) || !staysThrough(ends.Right, product) {
		return 0, false
	}
	by = T(ends.Left) * T(ends.Right)
	if math.Signbit(product) {
		by = -by // the sign of all others is that of all with that of the element
	}
	return by, true
}

// staysThrough reports whether a number times elements of the given product is zero, infinite or NaN after each of
// them: a product that is finite has no element that is not, and one that is neither 0 nor NaN none that is 0.
func staysThrough(x, product float64) bool {
	switch {
	case x == 0:
		return product-product == 0
	case math.IsInf(x, 0):
		return product != 0 && product == product
	}
	return x != x
}

// normal reports whether numbers have all their digits.
func normal(numbers ...float64) bool {
	for _, x := range numbers {
		if m := math.Abs(x); !(m >= 0x1p-1022 && m <= math.MaxFloat64) {
			return false
		}
	}
	return true
}
