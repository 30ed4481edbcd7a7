//go:build cuda && !(linux && cgo)

package cuda

// tagged says whether the tag cuda was given.
const tagged = true
