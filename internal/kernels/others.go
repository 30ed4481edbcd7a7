package kernels

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
		if round == nil {
			left, right := productsToMiddle(to, from)
			productsFromMiddle(to, from, left, right)
		} else {
			roundedProducts(to, from, round, room)
		}
	}
}

// productsToMiddle sets the elements of a row to the products of those between them and the end that they are nearer
// to, and returns those of the halves. An element in the middle is 1, which both are multiplied with then.
func productsToMiddle[T Float](to, from []T) (left, right float64) {
	left, right = 1, 1
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

// roundedProducts sets the elements of a row to their products of others, of which it rounds the factors.
func roundedProducts[T Float](to, from []T, round func([]T), room []T) {
	left, right := productsToMiddle(to, from)
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
