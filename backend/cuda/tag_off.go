//go:build !cuda

package cuda

// tagged says whether the tag cuda was given.
const tagged = false
