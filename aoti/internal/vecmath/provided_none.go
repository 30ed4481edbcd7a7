//go:build !(linux && cgo && (amd64 || arm64))

package vecmath

const provided = false
