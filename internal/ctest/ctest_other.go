//go:build !linux || !cgo

// Package ctest runs tests that are written in C. It is empty where there is no
// cgo.
package ctest
